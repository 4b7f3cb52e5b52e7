import type { Address, McpCommand } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { type World, alice, authorizerWorld, carol } from '../authorizer.fixture.ts';
import { ownMcpServers } from './own-mcp-servers.ts';

const place = { kind: 'process', process: 'crm' } as const;
const tool = {
  name: 'read',
  description: 'Reads.',
  inputSchema: { type: 'object' },
  readOnly: true,
  hash: 'a'.repeat(64),
  requirement: { path: ['tools', 'read'], action: 'call' },
};
const add: McpCommand = { type: 'AddMcpServer', server: 'crm', place };
const approve: McpCommand = { type: 'ApproveMcpServer', server: 'crm', tools: [tool] };
const report: McpCommand = { type: 'ReportMcpToolsChanged', server: 'crm', tools: [{ name: 'read', hash: tool.hash }] };

const asking = (world: World) => {
  const handle = ownMcpServers(world.ports);
  let sent = 0;
  return {
    read: (owner: Address, known?: string) => handle({ owner, ...(known === undefined ? {} : { known }) }, world.delivery('authority.mcp')),
    change: (owner: Address, command: McpCommand, commandId = `c-${(sent += 1)}`) =>
      handle({ owner, change: { commandId, command } }, world.delivery('authority.mcp')),
  };
};

describe('the MCP servers of an owner', () => {
  it('are none until one is added', async () => {
    const { read } = asking(await authorizerWorld());
    expect(await read(alice)).toMatchObject({ ok: true, value: { servers: [] } });
  });

  it('are read by whoever asks after a change was acknowledged', async () => {
    const world = await authorizerWorld();
    const { change } = asking(world);
    await change(alice, add);
    await change(alice, approve);
    const another = asking(await authorizerWorld({ store: world.store, clock: world.clock, deadlineMs: 2_000 }));
    expect(await another.read(alice)).toMatchObject({
      ok: true,
      value: { servers: [{ server: 'crm', place, tools: [tool], changed: [] }] },
    });
  });

  it('are nobody else’s', async () => {
    const { change, read } = asking(await authorizerWorld());
    await change(alice, add);
    expect(await read(carol)).toMatchObject({ ok: true, value: { servers: [] } });
    expect(await change(carol, approve)).toMatchObject({ ok: false, error: { code: 'mcp_server_not_found' } });
  });

  it('are not told again to whoever knows them', async () => {
    const { change, read } = asking(await authorizerWorld());
    const first = await change(alice, add);
    if (!first.ok) throw new Error('not added');
    const again = await read(alice, first.value.hash);
    expect(again).toMatchObject({ ok: true, value: { hash: first.value.hash } });
    expect(again.ok && again.value.servers).toBeUndefined();
    await change(alice, approve);
    expect(await read(alice, first.value.hash)).toMatchObject({ ok: true, value: { servers: [{ tools: [tool] }] } });
  });

  it('are changed once by a command that is sent twice', async () => {
    const world = await authorizerWorld();
    const { change } = asking(world);
    await change(alice, add, 'same');
    expect(await change(alice, add, 'same')).toMatchObject({ ok: true });
    expect(new Set(world.records.filter(({ type }) => type === 'admin.changed').map(({ id }) => id)).size).toBe(1);
  });

  it('put each change and each refusal on record, in the name of whoever made it', async () => {
    const world = await authorizerWorld();
    const { change } = asking(world);
    await change(alice, add);
    await change(alice, approve);
    await change(alice, report);
    await change(alice, { type: 'RemoveMcpServer', server: 'mail' });
    const told = world.records.map(({ type, actor, action, metadata }) => [type, actor, action, metadata?.['about']]);
    const executor = { kind: 'service', serviceId: 'tool-executor' };
    expect(told).toEqual([
      ['admin.changed', alice, 'mcp.add', 'crm'],
      ['admin.changed', alice, 'mcp.approve', 'crm'],
      ['admin.changed', executor, 'mcp.changed', 'crm'],
      ['admin.refused', alice, 'authority.mcp', 'mail'],
    ]);
  });

  it('cannot be told while the log does not answer', async () => {
    const world = await authorizerWorld();
    world.store.stop();
    expect(await asking(world).read(alice)).toMatchObject({ ok: false, error: { code: 'authority_unavailable', retryable: true } });
  });
});
