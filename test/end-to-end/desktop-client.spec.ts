import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { type Address, inboxPrefix } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isAlive } from '../../libs/testing/src/alive.ts';
import { ALICE, NAMESPACE, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const DEADLINE_MS = 60_000;
const SHAREDOS = join(import.meta.dirname, '../../libs/cli/bin/sharedos.mjs');

let system: TestSystem;
let folder: string;

beforeAll(async () => {
  system = await startTestSystem();
  await system.files(ALICE, { 'notes/plan.md': 'Buy milk.', 'private/diary.md': 'Nobody reads this' });
  await system.letAliceRunScout();
  await system.grant('notes', { path: ['notes'], actions: ['read', 'search'] });
  const terms = { agentId: SCOUT.agentId, authority: ALICE, owner: ALICE, runtime: { runtime: 'remote', config: {} } };
  expect(await (await system.client(ALICE)).agents.register(terms)).toMatchObject({ ok: true });
  folder = await mkdtemp(join(tmpdir(), 'desktop-client-'));
  const credential = (name: string, principal: Address) => [
    name,
    { ...system.stack.credentials.principal(NAMESPACE, principal), inboxPrefix: inboxPrefix(NAMESPACE, principal) },
  ];
  const context = {
    version: 1,
    natsUrl: system.stack.natsUrl,
    namespaceId: NAMESPACE,
    defaultPrincipal: 'human:alice',
    principals: Object.fromEntries([credential('human:alice', ALICE), credential('agent:scout', SCOUT)]),
  };
  await writeFile(join(folder, 'context.json'), JSON.stringify(context));
}, 2 * DEADLINE_MS);
afterAll(async () => {
  await system?.stop();
  await rm(folder, { recursive: true, force: true });
});

let open: Client | undefined;
afterEach(() => open?.close());

const connect = async (...args: readonly string[]): Promise<{ readonly client: Client; readonly pid: number }> => {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [SHAREDOS, 'mcp', '--context', join(folder, 'context.json'), ...args],
    stderr: 'inherit',
  });
  const client = new Client({ name: 'desktop', version: '1' }, { capabilities: {} });
  await client.connect(transport as Transport, { timeout: DEADLINE_MS });
  open = client;
  return { client, pid: transport.pid ?? 0 };
};
const read = (client: Client, ...path: string[]) => client.callTool({ name: 'files.read', arguments: { path } });

describe('a desktop client that starts "sharedos mcp"', () => {
  it('lists what its principal let the agent use, and nothing else', { timeout: DEADLINE_MS }, async () => {
    const { client } = await connect();
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['files.read', 'files.search']);
    expect(client.getServerVersion()).toMatchObject({ name: 'sharedos' });
  });

  it('has each call decided, and is told why one is refused', { timeout: DEADLINE_MS }, async () => {
    const { client } = await connect('--purpose', 'read notes');
    expect(JSON.stringify(await read(client, 'notes', 'plan.md'))).toContain('Buy milk.');
    const refused = await read(client, 'private', 'diary.md');
    expect(refused).toMatchObject({ isError: true, _meta: { 'sharedos/status': 'denied', 'sharedos/code': 'no_matching_grant' } });
    expect(JSON.stringify(refused)).not.toContain('Nobody');
  });

  it('sees what is granted while it runs', { timeout: DEADLINE_MS }, async () => {
    const { client } = await connect();
    expect((await read(client, 'private', 'diary.md')).isError).toBe(true);
    await system.grant('diary', { path: ['private', 'diary.md'], actions: ['read'], scope: 'exact' });
    expect((await read(client, 'private', 'diary.md')).isError).toBe(false);
  });

  it('leaves no process behind when it closes its end', { timeout: DEADLINE_MS }, async () => {
    const { client, pid } = await connect();
    await client.ping();
    await client.close();
    await waitFor('the end of the server', () => !isAlive(pid), DEADLINE_MS);
  });
});
