import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliSystem, startCliSystem } from './cli-system.fixture.ts';
import { requirementOf } from './commands/mcp.ts';
import { CommandFailure } from './exit-code.ts';

const DEADLINE_MS = 60_000;
/** A server in a few lines, so that what it says is plain to see. */
const SERVER = `
import { createInterface } from 'node:readline';
const inputSchema = { type: 'object', properties: { customerId: { type: 'string' } } };
const results = {
  initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'crm', version: '1' } },
  'tools/list': { tools: [
    { name: 'read_customer', description: 'Reads a customer.', inputSchema, annotations: { readOnlyHint: true } },
    { name: 'rm -rf', inputSchema },
  ] },
};
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }));
});
`;

let system: CliSystem;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cli-mcp-'));
  await writeFile(join(folder, 'crm.mjs'), SERVER);
  const processes = { crm: { command: process.execPath, args: [join(folder, 'crm.mjs')], secrets: ['API_KEY'] } };
  await writeFile(join(folder, 'mcp.json'), JSON.stringify({ processes, hosts: ['https://crm.example'] }));
  system = await startCliSystem(['authorizer', 'tool-executor'], {
    SHAREDOS_TOOL_NAMESPACES: 'mcp',
    SHAREDOS_MCP_SERVERS: join(folder, 'mcp.json'),
    SHAREDOS_MCP_FOLDER: join(folder, 'kept'),
    SHAREDOS_MCP_SECRETS_KEY: Buffer.alloc(32, 3).toString('base64'),
  });
}, 2 * DEADLINE_MS);
afterAll(async () => {
  await system?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe('sharedos mcp', () => {
  it('adds, shows, approves and removes a server', { timeout: DEADLINE_MS }, async () => {
    expect(await system.run('mcp', 'list')).toMatchObject({ code: 0, out: 'you have no MCP servers\n' });
    expect((await system.run('mcp', 'add', 'crm', '--process', 'crm')).out).toContain('before you approve it');
    const seen = await system.run('mcp', 'inspect', 'crm');
    expect(seen.out).toContain('read_customer');
    expect(seen.out).toContain('"rm -rf" cannot be used');
    const [, hash = ''] = /--seen ([0-9a-f]{64})/.exec(seen.out) ?? [];
    const needs = 'read_customer=read:customers/{arguments.customerId}';
    const approved = await system.run('mcp', 'approve', 'crm', '--seen', hash, '--needs', needs);
    expect(approved).toMatchObject({ code: 0 });
    expect(approved.out).toContain('read on mcp:crm/customers/{arguments.customerId}');
    expect((await system.run('mcp', 'inspect', 'crm')).out).toMatch(/read_customer +approved +reads/);
    expect((await system.run('mcp', 'remove', 'crm')).out).toBe('you have no MCP servers\n');
  });

  it('keeps a secret from standard input, and shows its name alone', { timeout: DEADLINE_MS }, async () => {
    await system.run('mcp', 'add', 'crm', '--process', 'crm');
    const stdin = async function* () {
      yield 'sesame-4711\n';
    };
    const terminal = system.terminal as { stdin?: AsyncIterable<string> };
    terminal.stdin = stdin();
    expect(await system.run('mcp', 'secret', 'crm', 'API_KEY')).toMatchObject({ code: 0, out: 'crm has API_KEY\n' });
    expect((await system.run('mcp', 'list', '--json')).out).not.toContain('sesame');
    expect((await system.run('mcp', 'secret', 'crm', 'API_KEY', '--forget')).out).toBe('crm has no secrets\n');
    await system.run('mcp', 'remove', 'crm');
  });

  it.each([
    [['add', 'evil', '--process', 'sh'], 1, 'mcp_place_refused'],
    [['add', 'evil', '--url', 'http://127.0.0.1:1/'], 1, 'mcp_place_refused'],
    [['inspect', 'none'], 1, 'mcp_server_not_found'],
    [['approve', 'none', '--seen', 'f'.repeat(64)], 1, 'mcp_server_not_found'],
    [['remove', 'none'], 1, 'mcp_server_not_found'],
    [['add', 'both', '--process', 'crm', '--url', 'https://crm.example/'], 2, 'a server is either'],
    [['approve', 'crm'], 2, '--seen'],
  ])('answers %s with what is wrong', { timeout: DEADLINE_MS }, async (args, code, said) => {
    const ran = await system.run('mcp', ...(args as string[]));
    expect(ran.code).toBe(code);
    expect(ran.err).toContain(said);
  });
});

describe('what a call of a tool needs, on the command line', () => {
  it('is a tool, an action and a path', () =>
    expect(requirementOf('read.file=read:files/{...arguments.path}')).toEqual({
      name: 'read.file',
      requirement: { action: 'read', path: ['files', '{...arguments.path}'] },
    }));
  it.each(['read', 'read=', 'read=read', 'read=read:', '=read:x'])('is not "%s"', (text) =>
    expect(() => requirementOf(text)).toThrow(CommandFailure),
  );
});
