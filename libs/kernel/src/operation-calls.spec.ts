import { type LedgerRecord, hashOf } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { foldExecution, replayAnswer } from './execution.ts';
import { callsOf, judgeFinding, unknownCallsOf } from './operation-calls.ts';
import { alice, at, bob, carol } from './testing/base-world.ts';

const claimed: LedgerRecord = {
  type: 'claimed',
  at: at('10:00:00'),
  ownerId: 'executor-1',
  turnId: 'turn-1',
  fingerprint: hashOf('one request'),
  requester: alice,
  operationId: 'e-1',
  traceId: 'trace-1',
  agent: bob,
  requestSequence: 7,
};
const admitted = (callId: string): LedgerRecord => ({ type: 'admitted', at: at('10:00:01'), callId, audit: [] });
const settled = (callId: string, late?: true): LedgerRecord => ({
  type: 'settled',
  at: at('10:00:02'),
  callId,
  result: { status: 'succeeded', callId, tool: 'files.read', completedAt: at('10:00:02'), output: null },
  audit: [],
  ...(late === undefined ? {} : { late }),
});
const cancelled: LedgerRecord = {
  type: 'ended',
  at: at('10:00:03'),
  by: 'recovery',
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
};
const receipt = (code: string): LedgerRecord => ({
  type: 'ended',
  at: at('10:00:03'),
  by: 'owner',
  result: { status: 'failed', messageId: 'e-1', timestamp: at('10:00:03'), error: { code, message: 'It failed.' } },
  audit: [],
});
const resolved = (callId: string, outcome: 'happened' | 'did_not_happen' = 'happened', output?: string): LedgerRecord => ({
  type: 'resolved',
  at: at('11:00:00'),
  callId,
  outcome,
  by: carol,
  audit: [],
  ...(output === undefined ? {} : { output }),
});
const expired: LedgerRecord = {
  type: 'expired',
  at: at('12:00:00'),
  endedAt: at('10:00:03'),
  claim: { fingerprint: hashOf('one request'), requester: alice, operationId: 'e-1', traceId: 'trace-1' },
};

describe('the calls of an operation', () => {
  it('are under way while it runs', () => expect(callsOf([claimed, admitted('a')]).get('a')).toEqual({ state: 'running' }));
  it('are unknown once it ended without their answer', () =>
    expect(unknownCallsOf([claimed, admitted('a'), settled('a'), admitted('b'), cancelled])).toEqual(['b']));
  it('are none where all that was recorded is a refusal', () => expect(callsOf([claimed, settled('refused'), cancelled]).size).toBe(0));
  it('are known by an answer that came late', () =>
    expect(callsOf([claimed, admitted('a'), cancelled, settled('a', true)]).get('a')).toEqual({ state: 'known' }));
  it('are known by what an operator found out', () =>
    expect(callsOf([claimed, admitted('a'), cancelled, resolved('a', 'happened', 'done')]).get('a')).toEqual({
      state: 'resolved',
      outcome: 'happened',
      output: 'done',
      by: carol,
    }));
  it('keep the first finding', () =>
    expect(callsOf([claimed, admitted('a'), cancelled, resolved('a'), resolved('a', 'did_not_happen')]).get('a')).toMatchObject({
      outcome: 'happened',
    }));
  it('of a message that was interrupted are one, under its own id', () => {
    expect(unknownCallsOf([claimed, receipt('replay_interrupted')])).toEqual(['e-1']);
    expect(unknownCallsOf([claimed, admitted('e-1'), receipt('replay_interrupted')])).toEqual(['e-1']);
  });
  it('of a message that failed for any other reason are known', () =>
    expect(unknownCallsOf([claimed, admitted('e-1'), receipt('inbox_full')])).toEqual([]));
});

describe('a finding of an operator', () => {
  const left = [claimed, admitted('a'), admitted('b'), settled('b'), cancelled];
  const found = { callId: 'a', outcome: 'happened' } as const;
  const refusedWith = (code: string) => ({ ok: false, error: { code } });

  it('is new for a call that nobody can tell of', () => expect(judgeFinding(left, found)).toEqual({ ok: true, value: 'new' }));
  it('changes nothing the second time', () =>
    expect(judgeFinding([...left, resolved('a')], found)).toEqual({ ok: true, value: 'recorded' }));
  it.each([
    { ...found, outcome: 'did_not_happen' as const },
    { ...found, output: 'other' },
  ])('is refused where another stands: %o', (other) =>
    expect(judgeFinding([...left, resolved('a')], other)).toEqual(refusedWith('operation_resolved_otherwise')),
  );
  it.each([
    ['has an answer', left, 'b'],
    ['was never admitted', left, 'c'],
    ['is under way', [claimed, admitted('a')], 'a'],
    ['answered late', [...left, settled('a', true)], 'a'],
    ['belongs to nothing', [], 'a'],
  ])('is refused for a call that %s', (_, records, callId) =>
    expect(judgeFinding(records as LedgerRecord[], { ...found, callId })).toEqual(refusedWith('operation_not_unknown')),
  );
  it('is refused once the operation has expired', () => expect(judgeFinding([expired], found)).toEqual(refusedWith('operation_expired')));
});

describe('a request sent again', () => {
  const again = { fingerprint: hashOf('one request'), requestSequence: 8 };
  const answerTo = (...records: readonly LedgerRecord[]) => replayAnswer(foldExecution(records), again);

  it('hears how its turn ended, and what was found out of its calls since', () =>
    expect(answerTo(claimed, admitted('a'), cancelled, resolved('a', 'happened', 'done'), resolved('a', 'did_not_happen'))).toMatchObject({
      answer: 'stored',
      ended: { result: { status: 'cancelled', metadata: { resolved: [{ callId: 'a', outcome: 'happened', output: 'done' }] } } },
    }));
  it('hears no more outputs than an answer may carry', () => {
    const large = 'x'.repeat(700_000);
    const records = [claimed, admitted('a'), admitted('b'), cancelled, resolved('a', 'happened', large), resolved('b', 'happened', large)];
    expect(answerTo(...records)).toMatchObject({
      ended: { result: { metadata: { resolved: [{ output: large }, { callId: 'b', outcome: 'happened' }] } } },
    });
    expect(JSON.stringify(answerTo(...records)).length).toBeLessThan(1_000_000);
  });
  it('of a message hears that it was accepted after all', () =>
    expect(answerTo(claimed, receipt('replay_interrupted'), resolved('e-1'))).toMatchObject({
      answer: 'stored',
      ended: { result: { status: 'accepted', messageId: 'e-1', timestamp: at('11:00:00') } },
    }));
  it('of a message hears that it was not delivered', () =>
    expect(answerTo(claimed, receipt('replay_interrupted'), resolved('e-1', 'did_not_happen'))).toMatchObject({
      ended: { result: { status: 'failed', error: { code: 'message_not_delivered' } } },
    }));
  it('is told nothing but that it expired once its answer was forgotten, whatever of it is still there', () => {
    expect(answerTo(expired)).toEqual({ answer: 'expired' });
    expect(answerTo(claimed, admitted('a'), expired)).toEqual({ answer: 'expired' });
    expect(answerTo({ ...expired, claim: undefined } as LedgerRecord)).toEqual({ answer: 'expired' });
  });
  it('that means something else is a conflict even then', () =>
    expect(replayAnswer(foldExecution([expired]), { ...again, fingerprint: hashOf('another') })).toEqual({ answer: 'conflict' }));
});
