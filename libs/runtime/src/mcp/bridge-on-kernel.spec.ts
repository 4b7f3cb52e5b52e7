import { type AccessContext, type CapabilityGrant, timestampOf } from '@sharedos/contracts';
import { InMemoryAuditSink, InMemoryGrantStore, SharedOSKernel, type ToolHandler, escalateTool } from '@sharedos/kernel';
import { describe, expect, it } from 'vitest';
import { manualTime } from '../testing/manual-time.ts';
import { READ, START, aRequest } from '../testing/turn-fixture.ts';
import { openMcpBridge } from './bridge.ts';

const { authority: maren, actor: scout } = aRequest().context;
const reading = (constraints: CapabilityGrant['constraints'] = {}): CapabilityGrant => ({
  id: 'g-read',
  namespaceId: 'north',
  subject: scout,
  issuer: maren,
  capabilities: [{ resource: { namespace: 'files', path: ['Vault'] }, actions: ['read'], scope: 'descendants' }],
  constraints,
  issuedAt: '2027-01-01T00:00:00Z',
});
const reader: ToolHandler = {
  definition: READ,
  parseArguments: (raw) => raw,
  resolveRequirement: (_, call) => ({ resource: { namespace: 'files', path: call.arguments['path'] as string[] }, action: 'read' }),
  invoke: async (context, call) => ({ status: 'succeeded', callId: call.id, tool: call.tool, completedAt: context.now, output: 'text' }),
};

/** A bridge that no turn stands behind: the host says what each operation's instant is. */
const onKernel = async (grant: CapabilityGrant) => {
  const store = new InMemoryGrantStore();
  store.issue(grant);
  const audit = new InMemoryAuditSink();
  const kernel = new SharedOSKernel({ grantSource: store, audit });
  kernel.registerTool(reader);
  kernel.registerTool(escalateTool);
  const time = manualTime(START);
  const now = (): AccessContext => ({ ...aRequest().context, now: timestampOf(time.clock()) });
  const bridge = openMcpBridge({
    catalog: await kernel.listPublishedTools(now(), { executionId: 'session-1' }),
    traceId: 'trace-1',
    requestedAt: START,
    serverInfo: { name: 'sharedos', version: '1' },
    invoke: (call) => kernel.invokeTool(now(), call),
  });
  const request = async (method: string, params: object = {}) => {
    const said = await bridge.handle(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
    return (said.kind === 'answered' ? (said.answer as { result?: Record<string, unknown> }).result : undefined) ?? {};
  };
  const read = async (...path: string[]) => {
    const { isError, _meta } = await request('tools/call', { name: 'files.read', arguments: { path } });
    return isError === true ? (_meta as Record<string, unknown>)['sharedos/code'] : 'read';
  };
  return { time, store, audit, request, read };
};

describe('a bridge on the kernel itself, outside any turn', () => {
  it('lists what may be seen, and decides each call from its own arguments', async () => {
    const { request, read, audit } = await onKernel(reading());
    expect((await request('tools/list'))['tools']).toMatchObject([{ name: 'files.read' }]);
    expect([await read('Vault', 'a'), await read('Home', 'a')]).toEqual(['read', 'no_matching_grant']);
    expect(audit.events.filter(({ type }) => type === 'tool.invoked').map(({ outcome }) => outcome)).toEqual(['succeeded', 'denied']);
  });

  it('sees a grant expire, and one that is revoked: each call is a turn of its own', async () => {
    const expiring = await onKernel(reading({ expiresAt: '2027-03-10T10:05:00Z' }));
    expect(await expiring.read('Vault')).toBe('read');
    await expiring.time.advance(5 * 60_000);
    expect(await expiring.read('Vault')).toBe('tool_unavailable');
    const revoked = await onKernel(reading());
    revoked.store.revoke('north', 'g-read', START);
    expect(await revoked.read('Vault')).toBe('tool_unavailable');
  });

  it('has no latch: what is forwarded to the tool for asking ends as its handler says', async () => {
    const { request } = await onKernel({
      ...reading(),
      capabilities: [{ resource: { namespace: 'sharedos', path: ['escalation'] }, actions: ['request'], scope: 'exact' }],
    });
    const said = await request('tools/call', { name: 'sharedos.escalate', arguments: { reason: 'why' } });
    expect(said).toMatchObject({ isError: true, _meta: { 'sharedos/status': 'failed', 'sharedos/code': 'escalation_not_terminated' } });
  });
});
