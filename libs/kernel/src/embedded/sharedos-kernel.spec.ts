import {
  type AccessContext,
  AuditEvent,
  type CapabilityGrant,
  type MessageEnvelope,
  ToolCatalog,
  ToolNamespaceCatalog,
  type ToolResult,
} from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { agentCardCapability, directoryCapability } from '../agent-card.ts';
import { AuditUnavailableError } from '../audit-sink.ts';
import { turnAuthorityKey } from '../authority-resolver.ts';
import { CapabilityAuthorizer } from '../authorizer.ts';
import { ContractError, DuplicateRegistrationError, MissingRegistrationError } from '../contract-errors.ts';
import { escalateTool } from '../escalate-tool.ts';
import { InMemoryGrantStore, InMemoryGrantUsageStore, InMemoryMessageTransport, InMemoryToolNamespaceSettings } from '../memory-ports.ts';
import { RecipientScopedMessageCapabilityResolver } from '../message-ports.ts';
import type { ProviderErrorContext } from '../provider-error.ts';
import type { Span } from '../spans.ts';
import { agentExecutionCapability, messageSendCapability } from '../standard-capabilities.ts';
import { alice, at, bob, capability, dave, grantOf, read } from '../testing/base-world.ts';
import { call, context, opened, reader } from './kernel.fixture.ts';
import { SharedOSKernel } from './sharedos-kernel.ts';
import type { SharedOSKernelOptions } from './core.ts';

const envelope = (more: Partial<MessageEnvelope> = {}): MessageEnvelope => ({
  version: '1',
  id: 'm-1',
  sender: bob,
  receiver: dave,
  purpose: 'p1',
  payload: 'hello',
  traceId: 'trace-1',
  createdAt: at('10:00:00.000'),
  ...more,
});

const code = (result: ToolResult | { status: string; error?: { code: string } }): string =>
  'error' in result && result.error !== undefined ? `${result.status} ${result.error.code}` : result.status;

const g = grantOf();

describe('an embedded kernel', () => {
  it('decides, runs and records one call without any server', async () => {
    const { kernel, audit, recorded } = opened([g]);
    kernel.registerTool(reader());
    expect(await kernel.invokeTool(context(), call())).toEqual({
      status: 'succeeded',
      callId: 'c-1',
      tool: 'files.read',
      completedAt: at('10:00:00.000'),
      output: 'text',
    });
    expect(recorded()).toEqual(['authority.resolved succeeded', 'authorization.checked allowed', 'tool.invoked succeeded']);
    for (const event of audit.events) expect(AuditEvent.parse(event)).toEqual(event);
    expect(new Set(audit.events.map(({ id }) => id)).size).toBe(3);
  });
  it('needs a source of grants', () => expect(() => new SharedOSKernel({} as SharedOSKernelOptions)).toThrow(ContractError));
  it('without an audit sink decides all the same', async () => {
    const { kernel } = opened([g], { audit: undefined as never });
    expect((await kernel.authorize(context(), read(['Work']))).allowed).toBe(true);
  });
  it('is not changed by a caller that edits what it passed', async () => {
    const { kernel } = opened([g]);
    const mine = { ...context() };
    const asked = read(['Work']);
    const answer = kernel.authorize(mine, asked);
    mine.purpose = 'p2';
    asked.resource.path.push('..');
    expect((await answer).allowed).toBe(true);
  });
  it('refuses the same registration twice', () => {
    const { kernel } = opened([]);
    kernel.registerTool(reader());
    kernel.registerToolProvider({ id: 'mcp', listTools: async () => [] });
    kernel.registerResourceProvider({ namespace: 'files', invoke: async () => ({}) as never });
    expect(() => kernel.registerTool(reader())).toThrow(DuplicateRegistrationError);
    expect(() => kernel.registerToolProvider({ id: ' mcp ', listTools: async () => [] })).toThrow(DuplicateRegistrationError);
    expect(() => kernel.registerResourceProvider({ namespace: 'files', invoke: async () => ({}) as never })).toThrow(
      DuplicateRegistrationError,
    );
    expect(() => kernel.registerResourceProvider({ namespace: ' ', invoke: async () => ({}) as never })).toThrow(ContractError);
    expect(() => kernel.registerToolProvider({ id: ' ', listTools: async () => [] })).toThrow(ContractError);
  });
});

describe('a record that precedes an effect', () => {
  const failing = (type: string) => ({
    record: async (event: AuditEvent) => (event.type === type ? Promise.reject(new Error('full')) : undefined),
  });
  it.each(['authority.resolved', 'authorization.checked'])('of type %s that cannot be written stops the call', async (type) => {
    let entered = 0;
    const { kernel } = opened([g], { audit: failing(type) });
    kernel.registerTool(reader({ invoke: async () => Promise.reject(new Error(String((entered += 1)))) }));
    await expect(kernel.invokeTool(context(), call())).rejects.toThrow(AuditUnavailableError);
    expect(entered).toBe(0);
  });
  it('of a listing stops the listing', async () => {
    const { kernel } = opened([g], { audit: failing('tool.catalog.listed') });
    await expect(kernel.listTools(context())).rejects.toThrow(AuditUnavailableError);
  });
  it('of an escalation is durable before it is reported', async () => {
    const { kernel } = opened([], { audit: failing('escalation.requested') });
    await expect(kernel.recordEscalation(context(), 'may I?')).rejects.toThrow(AuditUnavailableError);
  });
  it('leaves a use that was taken spent', async () => {
    const { kernel, usage } = opened([grantOf('g', { maxUses: 1 })], { audit: failing('authorization.checked') });
    await expect(kernel.authorize(context(), read(['Work']), { consume: true })).rejects.toThrow(AuditUnavailableError);
    expect(await usage.getUsage('w1', 'g')).toBe(1);
  });
});

describe('a record of what has happened', () => {
  it('that cannot be written changes no result, and the host hears of it', async () => {
    const heard: string[] = [];
    const sink = { record: async (event: AuditEvent) => (event.type === 'tool.invoked' ? Promise.reject(new Error('full')) : undefined) };
    const { kernel } = opened([g], {
      audit: sink,
      onAuditError: (_error, event) => {
        heard.push(event.type);
        throw new Error('the hook fell too');
      },
    });
    kernel.registerTool(reader());
    expect(code(await kernel.invokeTool(context(), call()))).toBe('succeeded');
    expect(heard).toEqual(['tool.invoked']);
  });
});

describe('the authority of a turn', () => {
  it('is loaded once, and answers calls that a handler makes from inside', async () => {
    const { kernel, recorded } = opened([g]);
    kernel.registerTool(
      reader({
        invoke: async (inside, { id, tool }) => {
          const { allowed } = await kernel.authorize(inside, read(['Work', 'b']));
          return { status: 'succeeded', callId: id, tool, completedAt: inside.now, output: allowed };
        },
      }),
    );
    const scope = await kernel.openTurnAuthority(context());
    expect(await kernel.invokeTool(context(), call())).toMatchObject({ output: true });
    expect(recorded().filter((line) => line.startsWith('authority.resolved'))).toHaveLength(1);
    expect(scope).toMatchObject({ status: 'resolved', snapshot: { grantIds: ['g'] } });
    expect(JSON.stringify(scope)).not.toContain('capabilities');
    scope.close();
  });
  it('does not see a revocation until the next turn, but sees an expiry', async () => {
    const { kernel, store } = opened([g, grantOf('h', { expiresAt: at('10:05:00'), capabilities: [capability(['Short'])] })]);
    const scope = await kernel.openTurnAuthority(context());
    store.revoke('w1', 'g', at('09:59:00'));
    const later = context({ now: at('10:05:00') });
    expect((await kernel.authorize(later, read(['Work']))).allowed).toBe(true);
    expect((await kernel.authorize(later, read(['Short']))).reasonCode).toBe('no_matching_grant');
    scope.close();
    expect((await kernel.authorize(later, read(['Work']))).reasonCode).toBe('no_matching_grant');
  });
  it('is counted: the last close drops it, and closing twice counts once', async () => {
    const { kernel, store } = opened([g]);
    const first = await kernel.openTurnAuthority(context());
    const second = await kernel.openTurnAuthority(context());
    store.revoke('w1', 'g', at('09:59:00'));
    first.close();
    first.close();
    expect((await kernel.authorize(context(), read(['Work']))).allowed).toBe(true);
    second.close();
    expect((await kernel.authorize(context(), read(['Work']))).allowed).toBe(false);
  });
  it('is held by another turn only if nothing of its identity differs', async () => {
    const { kernel, store } = opened([g]);
    const scope = await kernel.openTurnAuthority(context());
    store.revoke('w1', 'g', at('09:59:00'));
    expect((await kernel.authorize(context({ traceId: 'trace-2' }), read(['Work']))).allowed).toBe(false);
    scope.close();
  });
  it('that cannot be established is held too, and is not tried again', async () => {
    let loads = 0;
    const { kernel } = opened([], { grantSource: { load: async () => Promise.reject(new Error(String((loads += 1)))) } });
    const scope = await kernel.openTurnAuthority(context());
    expect(scope).toMatchObject({ status: 'unavailable', code: 'grant_source_failed' });
    expect(await kernel.authorize(context(), read(['Work']))).toEqual({
      allowed: false,
      reasonCode: 'authority_unavailable',
      metadata: { authority: { code: 'grant_source_failed' } },
    });
    expect(await kernel.reach(context())).toEqual({ status: 'unavailable', reasonCode: 'authority_unavailable' });
    expect(await kernel.listTools(context())).toEqual([]);
    expect(loads).toBe(1);
    scope.close();
  });
  it('is registered before it is loaded: who comes meanwhile waits for the same load, and one cancel takes nothing from the others', async () => {
    let loads = 0;
    let answer: (grants: CapabilityGrant[]) => void = () => undefined;
    const grantSource = {
      load: () => {
        loads += 1;
        return new Promise<CapabilityGrant[]>((resolve) => (answer = resolve));
      },
    };
    const { kernel } = opened([], { grantSource });
    const cancel = new AbortController();
    const given = kernel.openTurnAuthority(context(), { signal: cancel.signal });
    const opening = kernel.openTurnAuthority(context());
    const asked = kernel.authorize(context(), read(['Work']));
    cancel.abort(new Error('gave up'));
    await expect(given).rejects.toThrow('gave up');
    answer([g]);
    expect((await asked).allowed).toBe(true);
    expect(loads).toBe(1);
    (await opening).close();
  });
});

describe('an answer that is not for its question', () => {
  it.each([{ callId: 'c-2' }, { tool: 'files.write' }])('is no result of a tool: %j', async (other) => {
    const { kernel } = opened([g]);
    kernel.registerTool(
      reader({
        invoke: async (inside, { id, tool }) => ({ status: 'succeeded', callId: id, tool, completedAt: inside.now, output: 1, ...other }),
      }),
    );
    expect(code(await kernel.invokeTool(context(), call()))).toBe('failed invalid_tool_result');
  });
  it.each<[string, Partial<MessageEnvelope>]>([
    ['another request', { replyTo: 'm-9' }],
    ['another sender', { sender: alice }],
    ['another receiver', { receiver: alice }],
    ['another purpose', { purpose: 'p2' }],
    ['another trace', { traceId: 'trace-2' }],
  ])('is no reply when it is of %s', async (_, other) => {
    const { kernel } = opened([grantOf('s', { capabilities: [messageSendCapability(dave, alice)] })], {
      messageTransport: new InMemoryMessageTransport(),
      createMessageId: () => 'm-1',
      messageRequestRouter: { resolveReply: async () => envelope({ id: 'r-1', sender: dave, receiver: bob, replyTo: 'm-1', ...other }) },
    });
    const asked = call({ tool: 'messages.request', arguments: { recipient: dave, payload: 1 } });
    expect(code(await kernel.invokeTool(context(), asked))).toBe('failed invalid_message_reply');
  });
});

describe('a cancelled caller', () => {
  it('is told so at once, as an abort and not as a refusal', async () => {
    const { kernel, recorded } = opened([g]);
    const signal = AbortSignal.abort(new Error('stopped'));
    await expect(kernel.authorize(context(), read(['Work']), { signal })).rejects.toThrow('stopped');
    await expect(kernel.invokeTool(context(), call(), { signal })).rejects.toThrow('stopped');
    expect(recorded()).toEqual([]);
  });
  it('leaves no record of what needs no authority either', async () => {
    const { kernel, recorded } = opened([]);
    const signal = AbortSignal.abort(new Error('stopped'));
    await expect(kernel.recordEscalation(context(), 'r', { signal })).rejects.toThrow('stopped');
    await expect(kernel.sendMessage(context(), envelope({ sender: dave }), { signal })).rejects.toThrow('stopped');
    expect(recorded()).toEqual([]);
  });
  it('leaves a tool that was entered on record as operation_aborted, and its hook untold', async () => {
    const cancel = new AbortController();
    const { kernel, recorded, errors } = opened([g]);
    kernel.registerTool(
      reader({
        invoke: async (_context, _call, signal) => {
          cancel.abort(new Error('stopped'));
          signal.throwIfAborted();
          throw new Error('never');
        },
      }),
    );
    await expect(kernel.invokeTool(context(), call(), { signal: cancel.signal })).rejects.toThrow('stopped');
    expect(recorded().at(-1)).toBe('tool.invoked failed operation_aborted');
    expect(errors).toEqual([]);
  });
  it('leaves a provider and a transport that were entered on record too', async () => {
    const cancel = new AbortController();
    const stop = async (): Promise<never> => {
      cancel.abort(new Error('stopped'));
      throw new Error('stopped');
    };
    const send = grantOf('s', { capabilities: [messageSendCapability(dave, alice)] });
    const first = opened([g], {});
    first.kernel.registerResourceProvider({ namespace: 'files', invoke: stop });
    const operation = { operationId: 'o-1', ...read(['Work']) };
    await expect(first.kernel.invokeResource(context(), operation, { signal: cancel.signal })).rejects.toThrow('stopped');
    expect(first.recorded().at(-1)).toBe('resource.invoked failed operation_aborted');
    const again = new AbortController();
    const second = opened([send], {
      messageTransport: {
        deliver: async () => {
          again.abort(new Error('stopped'));
          throw new Error('stopped');
        },
      },
    });
    await expect(second.kernel.sendMessage(context(), envelope(), { signal: again.signal })).rejects.toThrow('stopped');
    expect(second.recorded().at(-1)).toBe('message.sent failed operation_aborted');
  });
});

describe('what a port throws', () => {
  it('reaches the host alone, with the code that was answered instead', async () => {
    const thrown = new Error('password=hunter2hunter2');
    const { kernel, errors, audit } = opened([g]);
    kernel.registerTool(reader({ invoke: async () => Promise.reject(thrown) }));
    const result = await kernel.invokeTool(context(), call());
    expect(code(result)).toBe('failed tool_execution_failed');
    expect(errors).toEqual([
      [
        thrown,
        {
          kind: 'tool',
          reasonCode: 'tool_execution_failed',
          traceId: 'trace-1',
          namespaceId: 'w1',
          operationId: 'c-1',
          tool: 'files.read',
          ...read(['Work', 'a']),
        },
      ],
    ]);
    expect(JSON.stringify([result, audit.events])).not.toContain('hunter2');
  });
  it('in a catalogue names the catalogue, and its own error is the cause', async () => {
    const thrown = new Error('down');
    const { kernel, errors } = opened([g], { toolProviders: [{ id: 'mcp', listTools: async () => Promise.reject(thrown) }] });
    expect(code(await kernel.invokeTool(context(), call()))).toBe('failed tool_catalog_unavailable');
    expect(errors).toMatchObject([[{ cause: thrown }, { kind: 'tool_catalog', reasonCode: 'tool_catalog_unavailable' }]]);
    await expect(kernel.listTools(context())).rejects.toThrow('a tool provider could not list its tools');
  });
  it('in a policy source fails the policy of the turn, and is told once', async () => {
    const { kernel, errors } = opened([g], {
      policySource: { load: async () => Promise.reject(new Error('no policy')) },
      authorizer: new CapabilityAuthorizer({ hostCeiling: { narrow: (decision) => decision } }),
    });
    const scope = await kernel.openTurnAuthority(context());
    expect((await kernel.authorize(context(), read(['Work']))).reasonCode).toBe('host_policy_unavailable');
    expect((await kernel.authorize(context(), read(['Work']))).reasonCode).toBe('host_policy_unavailable');
    expect(errors).toMatchObject([[{ message: 'no policy' }, { kind: 'policy', reasonCode: 'host_policy_unavailable' }]]);
    scope.close();
  });
  it('in a ceiling is told to the authorizer that has it', async () => {
    const heard: ProviderErrorContext[] = [];
    const authorizer = new CapabilityAuthorizer({
      hostCeiling: {
        narrow: () => {
          throw new Error('fell');
        },
      },
      onProviderError: (_error, operation) => {
        heard.push(operation);
        throw new Error('the hook fell too');
      },
    });
    const { kernel } = opened([g], { authorizer });
    expect((await kernel.authorize(context(), read(['Work']))).reasonCode).toBe('host_policy_unavailable');
    expect(heard).toMatchObject([{ kind: 'policy', reasonCode: 'host_policy_unavailable', action: 'read' }]);
  });
  it('in a parser is told only where the tool may be seen: nobody else has it read anything', async () => {
    let parses = 0;
    const parseArguments = (): never => {
      parses += 1;
      throw new Error('no');
    };
    const seen = opened([g]);
    seen.kernel.registerTool(reader({ parseArguments }));
    expect(code(await seen.kernel.invokeTool(context(), call()))).toBe('failed invalid_tool_arguments');
    expect(seen.errors).toHaveLength(1);
    const hidden = opened([]);
    hidden.kernel.registerTool(reader({ parseArguments }));
    expect(code(await hidden.kernel.invokeTool(context(), call()))).toBe('denied tool_unavailable');
    expect(parses).toBe(1);
  });
});

describe('live revocation', () => {
  const source = (revoked: readonly string[]) => ({
    revoked: async (_namespaceId: string, grantIds: readonly string[]) => ({
      revision: 'r-7',
      revokedGrantIds: grantIds.filter((id) => revoked.includes(id)),
    }),
  });
  it('takes away inside a turn, says what it read, and lets another grant stand in', async () => {
    const { kernel } = opened([g, grantOf('h')], { authorizer: new CapabilityAuthorizer({ liveRevocation: source(['g']) }) });
    expect(await kernel.authorize(context(), read(['Work']))).toEqual({
      allowed: true,
      reasonCode: 'allowed',
      matchedGrantId: 'h',
      metadata: {
        revocationChecks: [
          { grantId: 'g', revision: 'r-7', revokedGrantIds: ['g'] },
          { grantId: 'h', revision: 'r-7', revokedGrantIds: [] },
        ],
      },
    });
  });
  it('that cannot be read leaves nothing decided, although another grant would match', async () => {
    const liveRevocation = { revoked: async () => Promise.reject(new Error('down')) };
    const { kernel } = opened([g, grantOf('h')], { authorizer: new CapabilityAuthorizer({ liveRevocation }) });
    expect((await kernel.authorize(context(), read(['Work']))).reasonCode).toBe('authority_unavailable');
    expect(await kernel.reach(context())).toEqual({ status: 'unavailable', reasonCode: 'authority_unavailable' });
  });
  it('is asked before the ceiling and before a use is taken', async () => {
    const usageStore = new InMemoryGrantUsageStore();
    let asked = 0;
    const narrow = (decision: never): never => {
      asked += 1;
      return decision;
    };
    const authorizer = new CapabilityAuthorizer({ usageStore, hostCeiling: { narrow }, liveRevocation: source(['g']) });
    const { kernel } = opened([grantOf('g', { maxUses: 1 })], { authorizer });
    expect((await kernel.authorize(context(), read(['Work']), { consume: true })).reasonCode).toBe('no_matching_grant');
    expect([asked, await usageStore.getUsage('w1', 'g')]).toEqual([0, 0]);
  });
});

describe('the tool sharedos.card', () => {
  const card = (view?: string) => call({ tool: 'sharedos.card', arguments: { subject: dave, ...(view === undefined ? {} : { view }) } });
  const davesGrant = grantOf('d', { subject: dave, capabilities: [capability(['Maps'])] });
  it('serves what the kernel serves, for one use of one grant', async () => {
    const { kernel, usage } = opened([grantOf('c', { maxUses: 1, capabilities: [agentCardCapability(dave, alice)] }), davesGrant], {
      agentCardTool: true,
    });
    expect((await kernel.listTools(context())).map(({ name }) => name)).toEqual(['sharedos.card']);
    expect(await kernel.invokeTool(context(), card())).toMatchObject({
      status: 'succeeded',
      output: { view: 'reach', subject: dave, reach: [{ namespace: 'files', path: ['Maps'] }] },
    });
    expect(await usage.getUsage('w1', 'c')).toBe(1);
    expect(code(await kernel.invokeTool(context(), card()))).toBe('denied tool_unavailable');
  });
  it('serves each view under its own grant', async () => {
    const { kernel } = opened([grantOf('c', { capabilities: [directoryCapability(alice)] }), davesGrant], { agentCardTool: true });
    expect(await kernel.invokeTool(context(), card('identity'))).toMatchObject({ output: { view: 'identity' } });
    expect(await kernel.invokeTool(context(), card('namespaces'))).toMatchObject({
      output: { namespaces: [{ namespace: 'files', entries: 1 }] },
    });
    const narrow = opened([grantOf('c', { capabilities: [agentCardCapability(dave, alice, 'identity')] })], { agentCardTool: true });
    expect(code(await narrow.kernel.invokeTool(context(), card('identity')))).toBe('succeeded');
    expect(code(await narrow.kernel.invokeTool(context(), card()))).toBe('denied no_matching_grant');
  });
  it.each([{}, { subject: dave, grants: [] }, { subject: { kind: 'agent' } }, { subject: dave, view: 'all' }])(
    'refuses %j',
    async (given) => {
      const { kernel } = opened([grantOf('c', { capabilities: [directoryCapability(alice)] })], { agentCardTool: true });
      expect(code(await kernel.invokeTool(context(), call({ tool: 'sharedos.card', arguments: given })))).toBe(
        'failed invalid_tool_arguments',
      );
    },
  );
  it('does not exist unless its host wants it', async () =>
    expect(await opened([grantOf('c', { capabilities: [directoryCapability(alice)] })]).kernel.listTools(context())).toEqual([]));
});

describe('the catalogue', () => {
  it('is published sorted, hashed and without what authorizes', async () => {
    const { kernel } = opened([g]);
    kernel.registerTool(reader());
    const catalog = await kernel.listPublishedTools(context(), { executionId: 'e-1' });
    expect(ToolCatalog.parse(catalog)).toEqual(catalog);
    expect(JSON.stringify(catalog)).not.toContain('requiredCapability');
  });
  it('of an authority that is unavailable is empty, and still a catalogue', async () => {
    const { kernel } = opened([], { grantSource: { load: async () => Promise.reject(new Error('down')) } });
    expect(await kernel.listPublishedTools(context(), { executionId: 'e-1' })).toMatchObject({
      tools: [],
      catalogHash: '4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945',
    });
  });
  it('is built once a turn for operations that race, and its hash goes on the calls of that turn', async () => {
    let listed = 0;
    const { kernel, audit } = opened([g], {
      toolProviders: [
        {
          id: 'mcp',
          listTools: async () => {
            listed += 1;
            return [reader()];
          },
        },
      ],
    });
    const scope = await kernel.openTurnAuthority(context());
    await Promise.all([kernel.listTools(context()), kernel.listTools(context())]);
    await kernel.invokeTool(context(), call());
    expect(listed).toBe(1);
    const hash = audit.events.find(({ type }) => type === 'tool.catalog.listed')?.metadata?.['catalogHash'];
    expect(audit.events.at(-1)?.metadata?.['catalogHash']).toBe(hash);
    scope.close();
  });
  it('asks its providers in order of their ids, whatever the order they were registered in', async () => {
    const asked: string[] = [];
    const provider = (id: string) => ({
      id,
      listTools: async () => {
        asked.push(id);
        return [];
      },
    });
    await opened([g], { toolProviders: ['b', 'a_b', 'B', 'a'].map(provider) }).kernel.listTools(context());
    expect(asked).toEqual(['B', 'a', 'a_b', 'b']);
  });
  it('says when an outage, and not a rule, withheld a tool', async () => {
    const { kernel, audit } = opened([grantOf('g', { maxUses: 1 })], { authorizer: new CapabilityAuthorizer() });
    kernel.registerTool(reader());
    expect(await kernel.listTools(context())).toEqual([]);
    expect(audit.events.at(-1)?.metadata).toMatchObject({ withheldCount: 1, failClosed: true });
    const ruled = opened([]);
    ruled.kernel.registerTool(reader());
    await ruled.kernel.listTools(context());
    expect(ruled.audit.events.at(-1)?.metadata).toMatchObject({ withheldCount: 1 });
    expect(ruled.audit.events.at(-1)?.metadata).not.toHaveProperty('failClosed');
  });
  it('has messages.request only where messages are carried and replies are found', async () => {
    const send = grantOf('s', { capabilities: [messageSendCapability(dave, alice)] });
    const messageTransport = new InMemoryMessageTransport();
    const messageRequestRouter = { resolveReply: async () => envelope() };
    const shown = async (ports: Partial<SharedOSKernelOptions>) =>
      (await opened([send], ports).kernel.listTools(context())).map(({ name }) => name);
    expect(await shown({ messageTransport })).toEqual([]);
    expect(await shown({ messageRequestRouter })).toEqual([]);
    expect(await shown({ messageTransport, messageRequestRouter })).toEqual(['messages.request']);
  });
  it('is not held when building it failed', async () => {
    let tries = 0;
    const { kernel } = opened([g], {
      toolProviders: [{ id: 'mcp', listTools: async () => ((tries += 1) === 1 ? Promise.reject(new Error('down')) : [reader()]) }],
    });
    const scope = await kernel.openTurnAuthority(context());
    expect(code(await kernel.invokeTool(context(), call()))).toBe('failed tool_catalog_unavailable');
    expect(code(await kernel.invokeTool(context(), call()))).toBe('succeeded');
    scope.close();
  });
});

describe('the authority of a turn', () => {
  it('is made ready once for all decisions of it', async () => {
    const { KernelCore, compiledAuthority } = await import('./core.ts');
    const store = new InMemoryGrantStore();
    store.issue(g);
    const core = new KernelCore({ grantSource: store });
    const lease = core.leases.open(turnAuthorityKey(context()));
    const ready = async () => {
      const { resolution } = await core.hold(context({ now: at('10:01:00') }), undefined);
      return resolution.status === 'resolved' ? compiledAuthority(core, resolution) : undefined;
    };
    const first = await ready();
    expect(first).toBeDefined();
    expect(await ready()).toBe(first);
    lease.close();
    expect(await ready()).not.toBe(first);
  });
});

describe('tool namespaces', () => {
  it('are listed for the management plane, without any grant', async () => {
    const { kernel } = opened([]);
    kernel.registerTool(reader());
    kernel.registerTool(escalateTool);
    const catalog = await kernel.listToolNamespaces(context({ enabledToolNamespaces: ['files'] }));
    expect(ToolNamespaceCatalog.parse(catalog)).toEqual(catalog);
    expect(catalog).toEqual({
      namespaces: [
        { namespace: 'files', sources: ['native'], toolCount: 1, enabled: true },
        { namespace: 'sharedos', sources: ['sharedos'], toolCount: 1, enabled: false },
      ],
      summary: { total: 2, enabled: 1, disabled: 1 },
    });
  });
  it('change only through a store, and answer with what took effect', async () => {
    const { kernel, recorded } = opened([], { toolNamespaceSettings: new InMemoryToolNamespaceSettings(['files']) });
    kernel.registerTool(reader());
    kernel.registerTool(escalateTool);
    const changed = await kernel.updateToolNamespaces(context({ enabledToolNamespaces: [] }), { enable: ['files', 'sharedos'] });
    expect(changed.namespaces.map(({ namespace, enabled }) => [namespace, enabled])).toEqual([
      ['files', true],
      ['sharedos', false],
    ]);
    expect(recorded()).toEqual(['tool.namespace.selection.updated succeeded']);
  });
  it.each([{}, { enable: ['a'], disable: ['a'] }, { enable: ['a', 'a'] }])('refuse the update %j', async (update) =>
    expect(opened([]).kernel.updateToolNamespaces(context(), update)).rejects.toThrow(ContractError),
  );
  it('cannot be changed without a store, or by one that answers with no selection', async () => {
    await expect(opened([]).kernel.updateToolNamespaces(context(), { enable: ['a'] })).rejects.toThrow(MissingRegistrationError);
    const { kernel } = opened([], { toolNamespaceSettings: { applyUpdate: async () => ['a', 'a'] } });
    await expect(kernel.updateToolNamespaces(context(), { enable: ['a'] })).rejects.toThrow(ContractError);
  });
});

describe('messages', () => {
  const send = grantOf('s', { capabilities: [messageSendCapability(dave, alice)] });
  const reply = async (_context: AccessContext, request: MessageEnvelope): Promise<MessageEnvelope> =>
    envelope({ id: 'r-1', sender: request.receiver, receiver: request.sender, payload: { for: request.receiver }, replyTo: request.id });
  it('that are none are a contract error, before anything is recorded', async () => {
    const { kernel, recorded } = opened([send]);
    await expect(kernel.sendMessage(context(), { ...envelope(), intent: 'x' } as MessageEnvelope)).rejects.toThrow(ContractError);
    expect(recorded()).toEqual([]);
  });
  it('whose requirement cannot be made fail as message_requirement_resolution_failed, before authority is loaded', async () => {
    const { kernel, recorded, errors } = opened([send], {
      messageTransport: new InMemoryMessageTransport(),
      messageCapabilityResolver: {
        resolve: () => {
          throw new Error('no');
        },
      },
    });
    expect(code(await kernel.sendMessage(context(), envelope()))).toBe('failed message_requirement_resolution_failed');
    expect(recorded()).toEqual(['message.sent failed message_requirement_resolution_failed']);
    expect(errors).toMatchObject([[{}, { kind: 'message' }]]);
  });
  it('without a transport fail after their use was taken', async () => {
    const { kernel, usage } = opened([grantOf('s', { maxUses: 1, capabilities: [messageSendCapability(dave, alice)] })]);
    expect(code(await kernel.sendMessage(context(), envelope()))).toBe('failed message_transport_not_configured');
    expect(await usage.getUsage('w1', 's')).toBe(1);
  });
  it('asked for by two calls with one id go each to its own recipient', async () => {
    const erin = { kind: 'agent', agentId: 'erin' } as const;
    const transport = new InMemoryMessageTransport();
    const both = grantOf('s', { capabilities: [messageSendCapability(dave, alice), messageSendCapability(erin, alice)] });
    const { kernel } = opened([both], { messageTransport: transport, messageRequestRouter: { resolveReply: reply } });
    const ask = (recipient: object) =>
      kernel.invokeTool(context(), call({ tool: 'messages.request', arguments: { recipient, payload: 1 } }));
    const [first, second] = await Promise.all([ask(dave), ask(erin)]);
    expect([first, second]).toMatchObject([{ output: { for: dave } }, { output: { for: erin } }]);
    expect(transport.delivered.map(({ receiver }) => receiver)).toEqual([dave, erin]);
  });
  it('are asked for in the namespace that the host keeps their grants in, and in no other', async () => {
    const elsewhere = new RecipientScopedMessageCapabilityResolver('acme.mail');
    const ports = { messageTransport: new InMemoryMessageTransport(), messageRequestRouter: { resolveReply: reply } };
    const ask = (grant: CapabilityGrant) =>
      opened([grant], { ...ports, messageCapabilityResolver: elsewhere }).kernel.invokeTool(
        context(),
        call({ tool: 'messages.request', arguments: { recipient: dave, payload: 1 } }),
      );
    const { resource, ...rest } = messageSendCapability(dave, alice);
    const mail = grantOf('s', { capabilities: [{ resource: { ...resource, namespace: 'acme.mail' }, ...rest }] });
    expect(code(await ask(mail))).toBe('succeeded');
    expect(code(await ask(send))).toBe('denied tool_unavailable');
  });
  it('are not asked for where the host says one namespace and needs another', async () => {
    const resolve = (inside: AccessContext, message: MessageEnvelope) =>
      new RecipientScopedMessageCapabilityResolver('acme.mail').resolve(inside, message);
    const ports = { messageTransport: new InMemoryMessageTransport(), messageRequestRouter: { resolveReply: reply } };
    const { kernel } = opened([send], { ...ports, messageCapabilityResolver: { resolve } });
    const asked = call({ tool: 'messages.request', arguments: { recipient: dave, payload: 1 } });
    expect(code(await kernel.invokeTool(context(), asked))).toBe('failed invalid_tool_requirement');
  });
  it('are not sent by a handler that got no prepared envelope: message_request_not_prepared', async () => {
    const { messageRequestTool } = await import('./message-request-tool.ts');
    const { KernelCore } = await import('./core.ts');
    const core = new KernelCore({ grantSource: new InMemoryGrantStore() });
    const tool = messageRequestTool(core, { resolveReply: reply });
    const stray = call({ tool: 'messages.request', arguments: { recipient: dave, payload: 1 } });
    expect(code(await tool.invoke(context(), stray, new AbortController().signal))).toBe('failed message_request_not_prepared');
  });
  it.each([
    { recipient: { kind: 'agent', agentId: ' dave' }, payload: 1 },
    { recipient: dave },
    { recipient: dave, payload: 1, purpose: 'p2' },
    { recipient: dave, payload: 1, sender: dave },
  ])('are not asked for with %j', async (given) => {
    const { kernel } = opened([send], { messageTransport: new InMemoryMessageTransport(), messageRequestRouter: { resolveReply: reply } });
    expect(code(await kernel.invokeTool(context(), call({ tool: 'messages.request', arguments: given })))).toBe(
      'failed invalid_tool_arguments',
    );
  });
});

describe('what a kernel records of a turn', () => {
  it('is its admission, its end, a refusal of the envelope, and a request to a human', async () => {
    const { kernel, recorded, audit } = opened([grantOf('i', { capabilities: [agentExecutionCapability(bob, alice)] })]);
    expect((await kernel.admitTurn(context(), bob)).allowed).toBe(true);
    await kernel.recordRefusedCall(context(), { callId: 'c-1', tool: 'x', reasonCode: 'tool_unavailable', cause: 'not_offered' });
    const escalation = await kernel.recordEscalation(context(), ' may I? ', { executionId: 'e-1' });
    await kernel.recordTurnEnd(context(), { executionId: 'e-1', status: 'cancelled', reasonCode: 'turn_cancelled', endedBy: 'envelope' });
    expect(escalation).toEqual({ reason: 'may I?', reviewer: alice, requestedAt: at('10:00:00.000'), status: 'pending' });
    expect(recorded()).toEqual([
      'authority.resolved succeeded',
      'authorization.checked allowed',
      'tool.invoked denied tool_unavailable',
      'escalation.requested escalated escalation_requested',
      'turn.ended failed turn_cancelled',
    ]);
    expect(audit.events[2]?.metadata).toMatchObject({ source: 'envelope', cause: 'not_offered' });
  });
  it.each(['', ' ', 'x'.repeat(513)])('is no request to a human without a fitting reason', async (reason) =>
    expect(opened([]).kernel.recordEscalation(context(), reason)).rejects.toThrow(ContractError),
  );
  it('is no request for an authority that nobody could grant', async () =>
    expect(opened([]).kernel.recordEscalation(context(), 'r', { requestedAuthority: { capabilities: [], purpose: 'p1' } })).rejects.toThrow(
      ContractError,
    ));
});

describe('measuring', () => {
  it("names each part of a call, the host's own apart, and fails nothing when its sink falls", async () => {
    const spans: Span[] = [];
    const sink = {
      record: (span: Span) => {
        spans.push(span);
        throw new Error('the sink fell');
      },
    };
    const { kernel } = opened([g], { spans: sink });
    kernel.registerTool(reader());
    await kernel.listTools(context());
    expect(code(await kernel.invokeTool(context(), call()))).toBe('succeeded');
    expect(new Set(spans.map(({ name }) => name))).toEqual(
      new Set([
        'kernel.authority.load',
        'kernel.tool.catalogue',
        'kernel.tool.discover',
        'kernel.authorize',
        'kernel.tool.handler',
        'kernel.tool.invoke',
      ]),
    );
    expect(spans.at(-1)).toMatchObject({ attributes: { callId: 'c-1', tool: 'files.read', status: 'succeeded' } });
  });
});
