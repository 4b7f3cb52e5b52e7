import type { AuditEvent, CapabilityGrant, ExecutionRequest, ToolCall } from '@sharedos/contracts';
import {
  CapabilityAuthorizer,
  InMemoryAuditSink,
  InMemoryGrantStore,
  InMemoryGrantUsageStore,
  SharedOSKernel,
  type ToolHandler,
  agentExecutionCapability,
  escalateTool,
} from '@sharedos/kernel';
import { describe, expect, it } from 'vitest';
import { embeddedTurnKernel } from './embedded-turn-kernel.ts';
import { createEnvelope } from './envelope.ts';
import type { Runtime } from './runtime.ts';
import { READ, START, aCall, aRequest, countingIds, manualTime, runtimeOf } from './testing/index.ts';

const scout = { kind: 'agent', agentId: 'scout' } as const;
const maren = { kind: 'human', userId: 'maren' } as const;

const grant = (
  id: string,
  capability: CapabilityGrant['capabilities'][number],
  constraints: CapabilityGrant['constraints'] = {},
): CapabilityGrant => ({
  id,
  namespaceId: 'north',
  subject: scout,
  issuer: maren,
  capabilities: [capability],
  constraints,
  issuedAt: '2027-03-10T08:00:00Z',
});
const INVOKE = grant('g-invoke', agentExecutionCapability(scout, maren), { maxUses: 1 });
const VAULT = grant('g-read', { resource: { namespace: 'files', path: ['Vault'] }, actions: ['read'], scope: 'descendants' });
const ASK = grant('g-ask', { resource: { namespace: 'sharedos', path: ['escalation'] }, actions: ['request'], scope: 'exact' });

const reader: ToolHandler = {
  definition: READ,
  parseArguments: (raw) => raw,
  resolveRequirement: (_, call: ToolCall) => ({
    resource: { namespace: 'files', path: call.arguments['path'] as string[] },
    action: 'read',
  }),
  invoke: async (context, call) => ({ status: 'succeeded', callId: call.id, tool: call.tool, completedAt: context.now, output: 'text' }),
};

const aTurn = async (options: {
  readonly grants: readonly CapabilityGrant[];
  readonly runtime: Runtime;
  readonly audit?: { record(event: AuditEvent): Promise<void> };
  readonly request?: ExecutionRequest;
}) => {
  const store = new InMemoryGrantStore();
  for (const one of options.grants) store.issue(one);
  const audit = new InMemoryAuditSink();
  const kernel = new SharedOSKernel({
    grantSource: store,
    authorizer: new CapabilityAuthorizer({ usageStore: new InMemoryGrantUsageStore() }),
    audit: options.audit ?? audit,
  });
  kernel.registerTool(reader);
  kernel.registerTool(escalateTool);
  const time = manualTime(START);
  const envelope = createEnvelope({
    runtime: options.runtime,
    clock: time.clock,
    ids: countingIds('event'),
    timers: time.timers,
    defaults: {},
  });
  const result = await envelope.run(options.request ?? aRequest(), { kernel: embeddedTurnKernel(kernel) });
  return { result, kernel, store, recorded: audit.events.map(({ type, outcome }) => `${type} ${outcome}`), events: audit.events };
};

const calling = runtimeOf(async (host) => {
  const { status } = await host.invokeTool(aCall('c-1'));
  return { type: 'complete', output: status };
});

describe('a turn over the embedded kernel', () => {
  it('is admitted, listed, run and recorded in one process', async () => {
    const { result, recorded, events } = await aTurn({ grants: [INVOKE, VAULT], runtime: calling });
    expect(result).toMatchObject({ status: 'succeeded', output: 'succeeded' });
    expect(recorded).toEqual([
      'authority.resolved succeeded',
      'authorization.checked allowed',
      'tool.catalog.listed succeeded',
      'authorization.checked allowed',
      'tool.invoked succeeded',
      'turn.ended succeeded',
    ]);
    expect(events.at(-1)).toMatchObject({ operationId: 'exec-1', metadata: { source: 'envelope' } });
  });
  it('is refused without permission to run the agent, and says so once', async () => {
    const { result, recorded } = await aTurn({ grants: [VAULT], runtime: calling });
    expect(result).toMatchObject({ status: 'denied', error: { code: 'no_matching_grant' } });
    expect(recorded).toEqual(['authority.resolved succeeded', 'authorization.checked denied', 'turn.ended denied']);
  });
  it('leaves no authority behind: what comes after it is decided anew', async () => {
    const { kernel, store } = await aTurn({ grants: [INVOKE, VAULT], runtime: calling });
    store.revoke('north', 'g-read', START);
    const context = { ...aRequest().context, now: START };
    const decision = await kernel.authorize(context, { resource: { namespace: 'files', path: ['Vault'] }, action: 'read' });
    expect(decision.reasonCode).toBe('no_matching_grant');
  });
  it('carries the hash of what it was offered on each of its calls, refused ones too', async () => {
    const guessing = runtimeOf(async (host) => {
      await host.invokeTool(aCall('c-1', 'admin.grant.issue'));
      await host.invokeTool(aCall('c-2'));
      return { type: 'complete', output: null };
    });
    const { events } = await aTurn({ grants: [INVOKE, VAULT, ASK], runtime: guessing, request: aRequest({ tools: [READ] }) });
    const hashes = events.filter(({ type }) => type === 'tool.invoked').map(({ metadata }) => metadata?.['catalogHash']);
    expect(hashes).toHaveLength(2);
    expect(new Set(hashes).size).toBe(1);
    // It was offered less than it may see, so the hash is not the listing's.
    expect(hashes[0]).not.toBe(events.find(({ type }) => type === 'tool.catalog.listed')?.metadata?.['catalogHash']);
  });
  it('ends by asking a human only where it was given that', async () => {
    const asking = runtimeOf(() => ({ type: 'escalate', reason: 'may I?' }));
    const given = await aTurn({ grants: [INVOKE, ASK], runtime: asking });
    expect(given.result).toMatchObject({ status: 'escalated', escalation: { reason: 'may I?', reviewer: maren } });
    expect(given.recorded.slice(-2)).toEqual(['escalation.requested escalated', 'turn.ended escalated']);
    expect(given.events.at(-2)).toMatchObject({ type: 'escalation.requested', operationId: 'exec-1' });
    const without = await aTurn({ grants: [INVOKE], runtime: asking });
    expect(without.result).toMatchObject({ status: 'failed', error: { code: 'tool_unavailable' } });
    expect(without.recorded).not.toContain('escalation.requested escalated');
  });
  it.each(['authority.resolved', 'authorization.checked', 'tool.catalog.listed'])(
    'ends audit_unavailable when %s cannot be recorded',
    async (type) => {
      const audit = { record: async (event: AuditEvent) => (event.type === type ? Promise.reject(new Error('full')) : undefined) };
      const { result } = await aTurn({ grants: [INVOKE, VAULT], runtime: calling, audit });
      expect(result).toMatchObject({ status: 'failed', error: { code: 'audit_unavailable' } });
    },
  );
});
