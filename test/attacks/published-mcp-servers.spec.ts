import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { JsonObj, McpRequirement, ToolResult } from '@sharedos/contracts';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ALICE, BOB, type McpWorld, codeOf, mcpWorld } from './mcp-tools-world.ts';

const require = createRequire(import.meta.url);
const entryOf = (name: string): string => join(dirname(require.resolve(`${name}/package.json`)), 'dist/index.js');

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

let world: McpWorld;
afterEach(() => world.stop());

const starting = (
  name: string,
  more: { readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> } = {},
): McpWorld => {
  const program = { command: process.execPath, args: [entryOf(name), ...(more.args ?? [])], env: { ...more.env }, secrets: [] };
  world = mcpWorld({}, { processes: new Map([['it', program]]) });
  return world;
};
const textOf = (result: ToolResult): string => JSON.stringify(result.status === 'succeeded' ? result.output : result.error);

describe('the server "everything"', () => {
  it('has its tools approved and used', async () => {
    const { own, approved, call } = starting('@modelcontextprotocol/server-everything');
    const it = own('it');
    const server = await approved(it);
    expect(server.tools.length).toBeGreaterThan(3);
    expect(textOf(await call(it, server, 'mcp.crm.echo', { message: 'hello from scout' }))).toContain('hello from scout');
  });
});

describe('the server "memory"', () => {
  it('remembers for one owner what no other owner finds', async () => {
    const { own, approved, call } = starting('@modelcontextprotocol/server-memory', { env: { MEMORY_FILE_PATH: '{folder}/memory.json' } });
    const [alices, bobs] = [own('it', ALICE), own('it', BOB)];
    const server = await approved(alices);
    const entities = [{ name: 'Acme', entityType: 'customer', observations: ['pays late'] }];
    expect(codeOf(await call(alices, server, 'mcp.crm.create_entities', { entities }))).toBe('succeeded');
    expect(textOf(await call(alices, server, 'mcp.crm.read_graph', {}))).toContain('pays late');
    const seen = await call(bobs, server, 'mcp.crm.read_graph', {});
    expect(codeOf(seen)).toBe('succeeded');
    expect(textOf(seen)).not.toContain('pays late');
  });
});

describe('the server "filesystem"', () => {
  const ROOTED: McpRequirement = { path: ['files', '{...arguments.path}'], action: 'read' };

  it('reads what was granted of its folder and nothing beside it', async () => {
    const { folder, own, approved, call } = starting('@modelcontextprotocol/server-filesystem', { args: ['{folder}'] });
    const it = own('it');
    const root = join(folder, 'state/demo/human/alice/crm');
    mkdirSync(join(root, 'notes'), { recursive: true });
    writeFileSync(join(root, 'notes/plan.md'), 'the plan');
    writeFileSync(join(root, 'diary.md'), 'the diary');
    const all = await approved(it);
    const server = {
      ...all,
      tools: all.tools.map((tool) => (tool.name === 'read_text_file' ? { ...tool, requirement: ROOTED } : tool)),
    };
    const granted = ['crm', 'files', ...root.slice(1).split('/'), 'notes'];
    const read = async (path: string, more: JsonObj = {}): Promise<ToolResult> =>
      call(it, server, 'mcp.crm.read_text_file', { path, ...more }, { paths: [granted] });
    expect(textOf(await read(join(root, 'notes/plan.md')))).toContain('the plan');
    for (const path of [
      join(root, 'diary.md'),
      `${root}/notes/../diary.md`,
      `${root}/notes//../diary.md`,
      `/${root}/notes/plan.md`,
      `${root}/notes\\..\\diary.md`,
      '/etc/passwd',
    ]) {
      const result = await read(path);
      expect([path, result.status === 'succeeded']).toEqual([path, false]);
      expect(textOf(result)).not.toContain('the diary');
    }
  });
});
