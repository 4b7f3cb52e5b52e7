import { type LedgerRecord, TurnRequest } from '@sharedos/contracts';
import { authorizationChecked } from '@sharedos/kernel';
import { memoryLedger, memoryRecordLog } from '@sharedos/ledger';
import { countingIds } from '@sharedos/testing';
import { describe, expect, it } from 'vitest';
import { interruptTurn } from './interrupt-turn.ts';
import { NOON, REVISION, alice, call, claimedBy, context, key, scout, succeeded } from './turn.fixture.ts';

const LATER = '2026-01-01T12:05:00.000Z';
const accepted = {
  requester: alice,
  isFresh: true,
  context,
  request: TurnRequest.schema.parse({
    version: '1',
    executionId: 'exec-1',
    agent: scout,
    message: { version: '1', id: 'm-1', sender: alice, receiver: scout, purpose: 'p1', payload: null, traceId: 'trace-1', createdAt: NOON },
    requestedAt: NOON,
  }),
};
const admitted = (callId: string): LedgerRecord => ({ type: 'admitted', at: NOON, callId, tool: 'files.read', audit: [] });
/** An admission with the decision that allowed it, as an owner writes it. */
const allowed = (callId: string): LedgerRecord => {
  const mark = { id: `allowed-${callId}`, at: Date.parse(NOON), context, place: { turnId: 'turn-1', revision: REVISION, order: 0 } };
  const request = { resource: { namespace: 'files', path: ['notes'], owner: alice }, action: 'read' };
  const decided = { decision: { allowed: true, reasonCode: 'allowed', matchedGrantId: 'grant-1' } };
  const decision = authorizationChecked(mark, { request, decided, consume: true, operationId: callId });
  return { type: 'admitted', at: NOON, callId, tool: 'files.read', audit: [decision] };
};
const settled = (callId: string): LedgerRecord => ({ type: 'settled', at: NOON, callId, result: succeeded(call(callId)), audit: [] });

const abandoned = async (...records: readonly LedgerRecord[]) => {
  const log = memoryRecordLog();
  const ledger = memoryLedger({ log, readBackMs: 10 });
  const claim = await ledger.claim(key, claimedBy('dead'));
  if (!claim.ok) throw new Error('not claimed');
  for (const record of records) await claim.value.append(record);
  const historyOf = async () => {
    const read = await ledger.read(key);
    if (!read.ok || read.value === undefined) throw new Error('not read');
    return read.value;
  };
  const ports = { ledger, clock: () => Date.parse(LATER), ids: countingIds('record') };
  return { log, ledger, claim: claim.value, historyOf, ports };
};

describe('a turn whose owner is silent', () => {
  it('is ended as cancelled, and says of every open call that it was aborted', async () => {
    const { historyOf, ports } = await abandoned(
      { type: 'opened', at: NOON, revision: REVISION, audit: [] },
      admitted('a'),
      settled('a'),
      admitted('b'),
    );
    const ended = await interruptTurn(ports, key, await historyOf(), accepted, 'recovery');
    expect(ended).toMatchObject({
      ok: true,
      value: {
        type: 'ended',
        by: 'recovery',
        revision: REVISION,
        result: {
          status: 'cancelled',
          executionId: 'exec-1',
          events: [],
          startedAt: NOON,
          completedAt: LATER,
          error: { code: 'turn_cancelled', retryable: false },
        },
        audit: [
          {
            type: 'tool.invoked',
            outcome: 'failed',
            reason: 'operation_aborted',
            operationId: 'b',
            tool: 'files.read',
            metadata: { source: 'kernel', turnId: 'turn-1' },
          },
          {
            type: 'turn.ended',
            outcome: 'failed',
            reason: 'turn_cancelled',
            operationId: 'exec-1',
            metadata: { endedBy: 'envelope', turnId: 'turn-1' },
          },
        ],
      },
    });
    expect((await historyOf()).records.at(-1)).toEqual(ended.ok && ended.value);
  });

  it('has records that say what an open call was allowed to do, at which revision, and where they stand in its order', async () => {
    const { historyOf, ports } = await abandoned({ type: 'opened', at: NOON, revision: REVISION, audit: [] }, allowed('a'));
    const ended = await interruptTurn(ports, key, await historyOf(), accepted, 'recovery');
    expect(ended.ok && ended.value.audit).toMatchObject([
      {
        type: 'tool.invoked',
        operationId: 'a',
        resource: { path: ['notes'] },
        action: 'read',
        grantId: 'grant-1',
        metadata: { revision: REVISION, order: 1 },
      },
      { type: 'turn.ended', metadata: { revision: REVISION, order: 2 } },
    ]);
  });

  it('is fenced: its old owner writes nothing any more', async () => {
    const { claim, historyOf, ports } = await abandoned(admitted('a'));
    await interruptTurn(ports, key, await historyOf(), accepted, 'recovery');
    expect(await claim.append(settled('a'))).toEqual({ ok: false, error: { kind: 'fenced' } });
  });

  it('is not ended by whoever read it before its owner wrote again', async () => {
    const { claim, historyOf, ports } = await abandoned();
    const stale = await historyOf();
    await claim.append(admitted('a'));
    expect(await interruptTurn(ports, key, stale, accepted, 'recovery')).toEqual({ ok: false, error: 'moved' });
    expect((await historyOf()).records.map(({ type }) => type)).toEqual(['claimed', 'admitted']);
  });

  it('is ended once, however many find it', async () => {
    const { historyOf, ports } = await abandoned();
    const history = await historyOf();
    const outcomes = await Promise.all([1, 2, 3].map(() => interruptTurn(ports, key, history, accepted, 'recovery')));
    expect(outcomes.filter(({ ok }) => ok)).toHaveLength(1);
    expect((await historyOf()).records.map(({ type }) => type)).toEqual(['claimed', 'ended']);
  });

  it('is not told as ended while the ledger does not answer', async () => {
    const { log, historyOf, ports } = await abandoned();
    const history = await historyOf();
    log.stall();
    expect(await interruptTurn(ports, key, history, accepted, 'cancel')).toMatchObject({ ok: false });
  });
});
