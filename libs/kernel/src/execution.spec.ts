import { type ClaimedRecord, type EndedRecord, type LedgerRecord, type ToolResult, hashOf } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { type ExecutionInput, executionFingerprint, foldExecution, operationKeyHash, replayAnswer, requestFreshness } from './execution.ts';
import { NOW, alice, at, bob, carol, context } from './testing/base-world.ts';

const fingerprint = hashOf('one request');
const claimed: ClaimedRecord = {
  type: 'claimed',
  at: at('10:00:00'),
  ownerId: 'executor-1',
  turnId: 'turn-1',
  fingerprint,
  requester: alice,
  operationId: 'e-1',
  traceId: 'trace-1',
  agent: bob,
  requestSequence: 7,
};
const admitted = (callId: string): LedgerRecord => ({ type: 'admitted', at: at('10:00:01'), callId, audit: [] });
const settled = (callId: string): LedgerRecord => {
  const result: ToolResult = { status: 'succeeded', callId, tool: 'files.read', completedAt: at('10:00:02'), output: null };
  return { type: 'settled', at: at('10:00:02'), callId, result, audit: [] };
};
const endedBy = (by: EndedRecord['by']): EndedRecord => ({
  type: 'ended',
  at: at('10:00:03'),
  by,
  result: {
    status: 'cancelled',
    version: '1',
    executionId: 'e-1',
    traceId: 'trace-1',
    events: [],
    startedAt: at('10:00:00'),
    completedAt: at('10:00:03'),
  },
  audit: [],
});

describe('the records of an operation', () => {
  it('that are none say it was never taken', () => expect(foldExecution([])).toEqual({ state: 'absent', openCalls: [], settledCalls: [] }));
  it('say which effects nobody can tell of', () =>
    expect(foldExecution([claimed, admitted('a'), settled('a'), settled('refused'), admitted('b')])).toEqual({
      state: 'running',
      claimed,
      openCalls: ['b'],
      settledCalls: ['a', 'refused'],
    }));
  it('keep a call open when the operation ends without its answer', () =>
    expect(foldExecution([claimed, admitted('a'), endedBy('recovery')])).toMatchObject({ state: 'ended', openCalls: ['a'] }));
  it('may end without ever having been claimed', () => {
    expect(foldExecution([endedBy('cancel')])).toEqual({ state: 'ended', ended: endedBy('cancel'), openCalls: [], settledCalls: [] });
  });
  it('end once: whatever was written after changes nothing', () =>
    expect(foldExecution([claimed, endedBy('recovery'), settled('a'), endedBy('owner')])).toMatchObject({
      ended: { by: 'recovery' },
      settledCalls: [],
    }));
  it('are claimed once', () => expect(foldExecution([claimed, { ...claimed, ownerId: 'executor-2' }]).claimed?.ownerId).toBe('executor-1'));
});

describe('a request', () => {
  const same = { fingerprint, requestSequence: 7 };
  const again = { fingerprint, requestSequence: 8 };
  const other = { fingerprint: hashOf('another request'), requestSequence: 9 };
  const running = foldExecution([claimed]);
  const ended = foldExecution([claimed, endedBy('owner')]);
  it('never seen is run', () => expect(replayAnswer(foldExecution([]), same)).toEqual({ answer: 'run' }));
  it('delivered again while it runs is a matter for its owner', () =>
    expect(replayAnswer(running, same)).toEqual({ answer: 'redelivery_of_running', claimed }));
  it('sent again while it runs is acknowledged and answered by its owner', () =>
    expect(replayAnswer(running, again)).toEqual({ answer: 'duplicate_while_running', claimed }));
  it('sent or delivered again after it ended is answered from the ledger', () => {
    expect(replayAnswer(ended, same)).toEqual({ answer: 'stored', ended: endedBy('owner') });
    expect(replayAnswer(ended, again)).toEqual({ answer: 'stored', ended: endedBy('owner') });
  });
  it('that means something else under the same id is a conflict, running or ended', () => {
    expect(replayAnswer(running, other)).toEqual({ answer: 'conflict' });
    expect(replayAnswer(ended, other)).toEqual({ answer: 'conflict' });
  });
  it('that is the very message of the claim is never a conflict, whatever the settings of its reader are by now', () => {
    expect(replayAnswer(running, { ...other, requestSequence: 7 })).toEqual({ answer: 'redelivery_of_running', claimed });
    expect(replayAnswer(ended, { ...other, requestSequence: 7 })).toEqual({ answer: 'stored', ended: endedBy('owner') });
  });
  it('that came by no queue has only what it says to be known by', () => {
    const unqueued = { ...claimed, requestSequence: 0 };
    expect(replayAnswer(foldExecution([unqueued]), { ...other, requestSequence: 0 })).toEqual({ answer: 'conflict' });
  });
  it('cancelled before it was taken is answered so', () =>
    expect(replayAnswer(foldExecution([endedBy('cancel')]), other)).toEqual({ answer: 'stored', ended: endedBy('cancel') }));
});

describe('the fingerprint of a turn', () => {
  const input: ExecutionInput = {
    context: context(),
    agent: { kind: 'agent', agentId: 'bob' },
    message: {
      version: '1',
      id: 'm-1',
      sender: alice,
      receiver: bob,
      purpose: 'p1',
      payload: { b: 1, a: 2 },
      traceId: 'trace-1',
      createdAt: at('09:59:00'),
    },
    runtime: { id: 'standard', version: '1.0.0', protocolVersion: '1' },
    limits: { maxSteps: 16, timeoutMs: 120_000, drainGraceMs: 0 },
  };
  const print = (changes: Partial<ExecutionInput> = {}): string => executionFingerprint({ ...input, ...changes });
  it('does not depend on when it was asked', () => expect(print({ context: context({ now: at('11:00:00') }) })).toBe(print()));
  it('does not depend on the order of keys', () => expect(print({ message: { ...input.message, payload: { a: 2, b: 1 } } })).toBe(print()));
  it('does not depend on an option set to nothing', () => expect(print({ options: { maxSteps: undefined } })).toBe(print({ options: {} })));
  it.each<[string, Partial<ExecutionInput>]>([
    ['purpose', { context: context({ purpose: 'p2' }) }],
    ['trace', { context: context({ traceId: 'trace-2' }) }],
    ['enabled tool namespaces', { context: context({ enabledToolNamespaces: ['files'] }) }],
    ['payload', { message: { ...input.message, payload: null } }],
    ['instant of its message', { message: { ...input.message, createdAt: at('09:59:01') } }],
    ['agent', { agent: { kind: 'agent', agentId: 'dave' } }],
    ['tools', { tools: ['files.read'] }],
    ['state', { state: {} }],
    ['options', { options: { maxSteps: 1 } }],
    ['metadata', { metadata: { note: 1 } }],
    ['runtime', { runtime: { ...input.runtime, version: '1.0.1' } }],
    ['limits of the envelope', { limits: { ...input.limits, drainGraceMs: 5 } }],
  ])('changes with its %s', (_, changes) => expect(print(changes)).not.toBe(print()));
});

describe('the name of an operation', () => {
  const name = operationKeyHash('w1', 'execution', alice, 'e-1');
  it('is the hash of a structure', () => expect(name).toBe(hashOf({ namespaceId: 'w1', kind: 'execution', requester: alice, id: 'e-1' })));
  it('differs for another requester, kind, namespace and id', () =>
    expect(
      new Set([
        name,
        operationKeyHash('w1', 'execution', carol, 'e-1'),
        operationKeyHash('w1', 'message', alice, 'e-1'),
        operationKeyHash('w2', 'execution', alice, 'e-1'),
        operationKeyHash('w1', 'execution', alice, 'e-2'),
      ]).size,
    ).toBe(5));
});

describe('the freshness of a request', () => {
  const horizon = { horizonMs: 1_000, skewMs: 100 };
  it.each([
    ['of now', NOW, 'ok'],
    ['at the horizon', NOW - 1_000, 'ok'],
    ['beyond the horizon', NOW - 1_001, 'replay_expired'],
    ['from a clock a little ahead', NOW + 100, 'ok'],
    ['from the future', NOW + 101, 'replay_expired'],
    ['of an instant that cannot be read', NaN, 'replay_expired'],
  ])('%s', (_, requestedAt, expected) => expect(requestFreshness(requestedAt, NOW, horizon)).toBe(expected));
});
