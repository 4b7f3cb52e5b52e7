import type { AccessContext, Address, CapabilityGrant, Json, MessageEnvelope } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { InMemoryMessageTransport, InMemoryOperationReplayStore } from '../memory-ports.ts';
import type { OperationClaim, OperationKey, OperationReplayStore } from '../operation-replay.ts';
import { messageSendCapability } from '../standard-capabilities.ts';
import { alice, at, bob, dave, grantOf } from '../testing/base-world.ts';
import { call, context, opened as kernelOver, reader } from './kernel.fixture.ts';

/** A kernel that remembers operations where a store is given, and what of them was entered. */
const opened = (
  operationReplay: OperationReplayStore | undefined,
  more: { grants?: CapabilityGrant[]; invoke?: () => Promise<Json> } = {},
) => {
  const { grants = [grantOf('g', { maxUses: 5 })], invoke = async () => 'text' } = more;
  const transport = new InMemoryMessageTransport();
  const entered: string[] = [];
  const remembering = operationReplay === undefined ? {} : { operationReplay };
  const { kernel, usage, audit } = kernelOver(grants, { messageTransport: transport, ...remembering });
  const tool = reader({
    invoke: async (inside, asked) => {
      entered.push(asked.id);
      return { status: 'succeeded', callId: asked.id, tool: asked.tool, completedAt: inside.now, output: await invoke() };
    },
  });
  kernel.registerTool(tool);
  kernel.registerResourceProvider({
    namespace: 'files',
    invoke: async ({ operationId, context: inside }) => {
      entered.push(operationId);
      return { status: 'succeeded', operationId, completedAt: inside.now, output: 1 };
    },
  });
  const codeOf = async (given: object = {}, inside = context(), options = {}): Promise<string> => {
    const result = await kernel.invokeTool(inside, call(given), options);
    return result.status === 'succeeded' ? 'succeeded' : `${result.status} ${result.error.code}`;
  };
  return { kernel, usage, audit, transport, entered, codeOf };
};

describe('an operation that is presented again, where operations are remembered', () => {
  it('is done once, spends once, and is answered alike, at whatever instant', async () => {
    const { kernel, usage, entered, audit } = opened(new InMemoryOperationReplayStore());
    const first = await kernel.invokeTool(context(), call());
    const recorded = audit.events.length;
    const again = await kernel.invokeTool(context({ now: at('10:01:00') }), call({ requestedAt: at('10:01:00') }));
    expect(again).toEqual(first);
    expect(entered).toEqual(['c-1']);
    expect(await usage.getUsage('w1', 'g')).toBe(1);
    expect(audit.events).toHaveLength(recorded);
  });

  it('is done twice where nobody remembers', async () => {
    const { codeOf, entered } = opened(undefined);
    expect([await codeOf(), await codeOf()]).toEqual(['succeeded', 'succeeded']);
    expect(entered).toHaveLength(2);
  });

  it.each<[string, object, Partial<AccessContext>]>([
    ['other arguments', { arguments: { path: ['Work', 'b'] } }, {}],
    ['another tool', { tool: 'files.write' }, {}],
    ['another purpose', {}, { purpose: 'p2' }],
    ['another owner', {}, { owner: dave as Address }],
  ])('with %s is a conflict, and nothing runs', async (_, given, changes) => {
    const { codeOf, entered, audit } = opened(new InMemoryOperationReplayStore());
    await codeOf();
    expect(await codeOf(given, context(changes))).toBe('denied replay_conflict');
    expect(entered).toHaveLength(1);
    expect(audit.events.at(-1)).toMatchObject({ type: 'tool.invoked', outcome: 'denied', reason: 'replay_conflict', operationId: 'c-1' });
  });

  it.each<[string, object, Partial<AccessContext>, object]>([
    ['another id', { id: 'c-2' }, {}, {}],
    ['another trace', { traceId: 'trace-2' }, { traceId: 'trace-2' }, {}],
    ['another execution', {}, {}, { executionId: 'exec-2' }],
  ])('under %s is another operation', async (_, given, changes, options) => {
    const { codeOf, entered } = opened(new InMemoryOperationReplayStore());
    await codeOf();
    expect(await codeOf(given, context(changes), options)).toBe('succeeded');
    expect(entered).toHaveLength(2);
  });

  it('by another actor is another operation: nobody uses up the ids of others', async () => {
    const { codeOf } = opened(new InMemoryOperationReplayStore());
    await codeOf({}, context({ actor: dave }));
    expect(await codeOf()).toBe('succeeded');
  });

  it('is refused again as it was refused: a new attempt has a new id', async () => {
    const { codeOf, entered } = opened(new InMemoryOperationReplayStore());
    const home = { arguments: { path: ['Home'] } };
    expect([await codeOf(home), await codeOf(home)]).toEqual(['denied no_matching_grant', 'denied no_matching_grant']);
    expect(entered).toEqual([]);
  });

  it('while it is under way is told so at once', async () => {
    let finish = (): void => undefined;
    const gate = new Promise<void>((resolve) => (finish = resolve));
    const { codeOf, entered } = opened(new InMemoryOperationReplayStore(), { invoke: async () => (await gate, 'text') });
    const first = codeOf();
    await expect.poll(() => entered.length).toBe(1);
    expect(await codeOf()).toBe('failed replay_pending');
    finish();
    expect([await first, await codeOf()]).toEqual(['succeeded', 'succeeded']);
  });

  it('after it was stopped under way is never done to be sure', async () => {
    const stop = new AbortController();
    const invoke = async (): Promise<Json> => {
      stop.abort(new Error('stopped'));
      throw new Error('half done');
    };
    const { kernel, codeOf, entered } = opened(new InMemoryOperationReplayStore(), { invoke });
    await expect(kernel.invokeTool(context(), call(), { signal: stop.signal })).rejects.toThrow('stopped');
    expect(await codeOf()).toBe('failed replay_interrupted');
    expect(entered).toHaveLength(1);
  });

  it('on a resource or as a message is done once as well', async () => {
    const send = grantOf('s', { capabilities: [messageSendCapability(dave, alice)] });
    const { kernel, transport, entered } = opened(new InMemoryOperationReplayStore(), { grants: [grantOf('g'), send] });
    const asked = { operationId: 'o-1', resource: { namespace: 'files', path: ['Work'] }, action: 'read' };
    const message: MessageEnvelope = {
      version: '1',
      id: 'm-1',
      sender: bob,
      receiver: dave,
      purpose: 'p1',
      payload: 'hello',
      traceId: 'trace-1',
      createdAt: at('10:00:00.000'),
    };
    const twice = async <T>(work: () => Promise<T>): Promise<readonly [T, T]> => [await work(), await work()];
    const [first, again] = await twice(() => kernel.invokeResource(context(), asked));
    expect(again).toEqual(first);
    const [sent, sentAgain] = await twice(() => kernel.sendMessage(context(), message));
    expect(sentAgain).toEqual(sent);
    expect(entered).toEqual(['o-1']);
    expect(transport.delivered).toHaveLength(1);
    expect(await kernel.invokeResource(context(), { ...asked, input: { deep: true } })).toMatchObject({
      error: { code: 'replay_conflict' },
    });
    expect(await kernel.sendMessage(context(), { ...message, payload: 'bye' })).toMatchObject({ error: { code: 'replay_conflict' } });
  });
});

describe('a store of operations that cannot be relied on', () => {
  const over = (changes: Partial<OperationReplayStore>): OperationReplayStore => {
    const memory = new InMemoryOperationReplayStore();
    return { claim: (...asked) => memory.claim(...asked), settle: (...asked) => memory.settle(...asked), ...changes };
  };
  const finding = (record: object) =>
    over({ claim: async (_key: OperationKey, fingerprint) => ({ claimed: false, record: { fingerprint, ...record } }) as OperationClaim });

  it('lets nothing run', async () => {
    const { codeOf, entered, audit } = opened(over({ claim: () => Promise.reject(new Error('down')) }));
    expect(await codeOf()).toBe('failed replay_unavailable');
    expect(entered).toEqual([]);
    expect(audit.events.at(-1)).toMatchObject({ reason: 'replay_unavailable', metadata: { failClosed: true } });
  });

  it.each<[string, OperationReplayStore['settle']]>([
    ['lost the claim', async () => false],
    ['is down', () => Promise.reject(new Error('down'))],
  ])('and %s when the answer is to be kept gives none: nobody could give it again', async (_, settle) => {
    const { codeOf, entered } = opened(over({ settle }));
    expect(await codeOf()).toBe('failed replay_unavailable');
    expect(entered).toHaveLength(1);
  });

  it.each<[string, object, string]>([
    ['what is no answer', { state: 'completed', result: { status: 'fine' } }, 'failed replay_unavailable'],
    ['that its body is gone', { state: 'expired' }, 'failed replay_expired'],
    ['that nobody knows how it ended', { state: 'interrupted' }, 'failed replay_interrupted'],
  ])('or says %s is not made up for', async (_, record, code) => {
    const { codeOf, entered } = opened(finding(record));
    expect(await codeOf()).toBe(code);
    expect(entered).toEqual([]);
  });
});

describe('the memory of operations', () => {
  const key: OperationKey = { namespaceId: 'w1', actor: bob, kind: 'tool', scope: 'e', id: 'c' };
  it('takes one end, from the one that claimed', async () => {
    const store = new InMemoryOperationReplayStore();
    const claim = await store.claim(key, 'f');
    const { token } = claim as Extract<OperationClaim, { claimed: true }>;
    expect(await store.settle(key, 'another', { state: 'interrupted' })).toBe(false);
    expect(await store.settle(key, token, { state: 'completed', result: 1 })).toBe(true);
    expect(await store.settle(key, token, { state: 'interrupted' })).toBe(false);
    expect(await store.claim(key, 'g')).toEqual({ claimed: false, record: { fingerprint: 'f', state: 'completed', result: 1 } });
  });
});
