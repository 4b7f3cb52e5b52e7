import { AuditEvent, addressPath, canonicalJson } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import {
  agentCardCapability,
  agentCardPath,
  agentCardRequest,
  composeAgentCard,
  directoryCapability,
  DIRECTORY_NAMESPACE,
  DIRECTORY_READ_ACTION,
  DIRECTORY_RESOURCE_ROOT,
  subjectCardContext,
  summarizeReach,
} from './agent-card.ts';
import { CompositeAuditSink, NoopAuditSink, auditEvent } from './audit-sink.ts';
import { DuplicateRegistrationError, MissingRegistrationError } from './contract-errors.ts';
import { addressesEqual, hashJson, sha256Hex } from './core-words.ts';
import { RecipientScopedMessageCapabilityResolver } from './message-ports.ts';
import { reportContainedError } from './provider-error.ts';
import { ResourceProviderRegistry, toResourceOperation } from './resource-provider.ts';
import { SPAN, type Span, measure, measureSync } from './spans.ts';
import {
  AGENT_INVOKE_ACTION,
  EXECUTION_NAMESPACE,
  MESSAGE_SEND_ACTION,
  MESSAGING_NAMESPACE,
  agentExecutionCapability,
  messageSendCapability,
} from './standard-capabilities.ts';
import { alice, bob, carol, context, dave } from './testing/base-world.ts';
import { applyToolNamespaceUpdate } from './tool-namespace-settings.ts';

describe('a measured operation', () => {
  const spans: Span[] = [];
  const sink = { record: (span: Span) => spans.push(span) };
  it('without a sink is its own promise, and nothing is described', async () => {
    const own = Promise.resolve(1);
    expect(
      measure(
        undefined,
        SPAN.TURN,
        () => own,
        () => expect.unreachable(),
      ),
    ).toBe(own);
    expect(measureSync(undefined, SPAN.TURN, () => 2)).toBe(2);
    await own;
  });
  it('tells its sink once, with what it said of itself', async () => {
    expect(
      await measure(
        sink,
        'a',
        async (scope) => (scope.set('n', 1), 'done'),
        (value, scope) => scope.set('value', value),
      ),
    ).toBe('done');
    expect(measureSync(sink, 'b', () => 3)).toBe(3);
    expect(spans.map(({ name, attributes }) => [name, attributes])).toEqual([
      ['a', { n: 1, value: 'done' }],
      ['b', {}],
    ]);
    for (const { durationMs } of spans) expect(durationMs).toBeGreaterThanOrEqual(0);
  });
  it('is told also when it throws, and throws what it threw', async () => {
    spans.length = 0;
    await expect(measure(sink, 'a', async () => Promise.reject(new Error('fell')))).rejects.toThrow('fell');
    expect(() =>
      measureSync(sink, 'b', () => {
        throw new Error('fell');
      }),
    ).toThrow('fell');
    expect(spans.map(({ name }) => name)).toEqual(['a', 'b']);
  });
  it('is not failed by its sink', async () => {
    const falling = {
      record: () => {
        throw new Error('fell');
      },
    };
    expect(await measure(falling, 'a', async () => 1)).toBe(1);
  });
});

describe('a diagnostic hook', () => {
  it('is told, may be absent, and cannot make a second failure', () => {
    const heard: unknown[] = [];
    reportContainedError((error, at) => heard.push([error, at]), 'e', 'c');
    reportContainedError(undefined, 'e', 'c');
    reportContainedError(
      () => {
        throw new Error('fell');
      },
      'e',
      'c',
    );
    expect(heard).toEqual([['e', 'c']]);
  });
});

describe('audit sinks', () => {
  const event = auditEvent(context(), { type: 'turn.ended', outcome: 'succeeded', operationId: 'e-1' });
  it('are given records stamped from the trusted context, each with an id of its own', () => {
    expect(AuditEvent.parse(event)).toEqual(event);
    expect(event).toMatchObject({ actor: bob, authority: alice, owner: alice, purpose: 'p1', at: context().now });
    expect(auditEvent(context(), { type: 'turn.ended', outcome: 'succeeded' }).id).not.toBe(event.id);
    expect(auditEvent(context(), { type: 'turn.ended', outcome: 'succeeded' }, () => 'mine').id).toBe('mine');
  });
  it('may be several: in order, each with a copy of its own, and the first failure stops the rest', async () => {
    const seen: [string, AuditEvent][] = [];
    const keeping = (name: string) => ({ record: async (given: AuditEvent) => void seen.push([name, given]) });
    await new CompositeAuditSink([keeping('a'), new NoopAuditSink(), keeping('b')]).record(event);
    expect(seen.map(([name]) => name)).toEqual(['a', 'b']);
    expect(seen[0]?.[1]).toEqual(event);
    expect(seen[0]?.[1]).not.toBe(seen[1]?.[1]);
    expect(Object.isFrozen(seen[0]?.[1])).toBe(true);
    const full = { record: async () => Promise.reject(new Error('full')) };
    await expect(new CompositeAuditSink([full, keeping('c')]).record(event)).rejects.toThrow('full');
    expect(seen).toHaveLength(2);
  });
});

describe('an agent card', () => {
  const reach = [
    { namespace: 'files', path: ['b'], actions: ['read'], scope: 'exact' },
    { namespace: 'files', path: ['a'], actions: ['append', 'read'], scope: 'descendants' },
    { namespace: 'calendar', path: [], actions: ['read'], scope: 'descendants' },
  ] as const;
  const entries = reach.map((entry) => ({ ...entry, path: [...entry.path], actions: [...entry.actions] }));
  it('is a resource for each view, the widest at the subject itself', () => {
    expect(agentCardPath(dave)).toEqual(['directory', 'agent', 'dave']);
    expect(agentCardPath(dave, 'identity')).toEqual(['directory', 'agent', 'dave', 'identity']);
    expect(agentCardRequest(dave, alice, 'namespaces')).toEqual({
      resource: { namespace: DIRECTORY_NAMESPACE, path: ['directory', 'agent', 'dave', 'namespaces'], owner: alice },
      action: DIRECTORY_READ_ACTION,
    });
    expect(agentCardCapability(dave, alice)).toMatchObject({ scope: 'exact', actions: ['read'] });
    expect(directoryCapability(alice)).toMatchObject({ scope: 'descendants', resource: { path: [...DIRECTORY_RESOURCE_ROOT] } });
  });
  it('is made of the fields of its view and no others', () => {
    const described = { subject: dave, namespaceId: 'w1', readAt: context().now };
    expect(composeAgentCard('reach', dave, context(), entries)).toEqual({ view: 'reach', ...described, reach: entries });
    expect(composeAgentCard('identity', dave, context(), entries)).toEqual({ view: 'identity', ...described });
    expect(composeAgentCard('namespaces', dave, context(), entries)).toEqual({
      view: 'namespaces',
      ...described,
      namespaces: summarizeReach(entries),
    });
    expect(() => composeAgentCard('reach', { kind: 'agent' } as never, context(), [])).toThrow('meets its contract');
  });
  it('sums up by namespace, without paths', () =>
    expect(summarizeReach(entries)).toEqual([
      { namespace: 'calendar', actions: ['read'], entries: 1 },
      { namespace: 'files', actions: ['append', 'read'], entries: 2 },
    ]));
  it('shows what the subject holds under what the reader operates under', () =>
    expect(subjectCardContext(context(), dave)).toEqual({ ...context(), actor: dave }));
});

describe('standard capabilities', () => {
  it('are exact, of one owner and one action', () => {
    expect(messageSendCapability(dave, alice)).toEqual({
      resource: { namespace: MESSAGING_NAMESPACE, path: ['agent', 'dave'], owner: alice },
      actions: [MESSAGE_SEND_ACTION],
      scope: 'exact',
    });
    expect(agentExecutionCapability(dave, alice)).toEqual({
      resource: { namespace: EXECUTION_NAMESPACE, path: ['agent', 'dave'], owner: alice },
      actions: [AGENT_INVOKE_ACTION],
      scope: 'exact',
    });
  });
  it("of a message follow its receiver, in a namespace of the host's choice", () => {
    const envelope = { receiver: carol } as never;
    expect(new RecipientScopedMessageCapabilityResolver().resolve(context(), envelope).resource).toEqual({
      namespace: MESSAGING_NAMESPACE,
      path: ['human', 'carol'],
      owner: alice,
    });
    expect(new RecipientScopedMessageCapabilityResolver('mail').resolve(context(), envelope).resource.namespace).toBe('mail');
  });
});

describe('resource providers', () => {
  it('are one for each namespace', () => {
    const registry = new ResourceProviderRegistry();
    const files = { namespace: 'files', invoke: async () => ({}) as never };
    registry.register(files);
    expect([registry.get('files'), registry.has('files'), registry.has('repo'), registry.namespaces()]).toEqual([
      files,
      true,
      false,
      ['files'],
    ]);
    expect(() => registry.register(files)).toThrow(DuplicateRegistrationError);
  });
  it('always get an owner', () => {
    const request = { operationId: 'o', resource: { namespace: 'files', path: ['a'] }, action: 'read' };
    expect(toResourceOperation(context(), request)).toEqual({
      operationId: 'o',
      context: context(),
      resource: { namespace: 'files', path: ['a'], owner: alice },
      action: 'read',
    });
    expect(toResourceOperation(context(), { ...request, input: null, metadata: { a: 1 } })).toMatchObject({
      input: null,
      metadata: { a: 1 },
    });
  });
});

describe('words of the core API', () => {
  it('compare and hash by canonical form', async () => {
    expect([addressesEqual(bob, { ...bob }), addressesEqual(bob, dave)]).toEqual([true, false]);
    expect(addressPath(bob)).toEqual(['agent', 'bob']);
    expect(await hashJson({ b: 1, a: [2] })).toBe(await sha256Hex(canonicalJson({ a: [2], b: 1 })));
    expect(await sha256Hex('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  });
  it('patch a selection of namespaces the same way twice', () => {
    const once = applyToolNamespaceUpdate(['b', 'a'], { enable: ['c', 'b'], disable: ['a', 'x'] });
    expect(once).toEqual(['b', 'c']);
    expect(applyToolNamespaceUpdate(once, { enable: ['c', 'b'], disable: ['a', 'x'] })).toEqual(once);
  });
  it('name what is missing', () =>
    expect(new MissingRegistrationError('tool namespace settings', 'w1')).toMatchObject({
      kind: 'tool namespace settings',
      identifier: 'w1',
    }));
});
