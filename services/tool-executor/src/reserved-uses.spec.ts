import { type HeldUse, type LedgerRecord, ok } from '@sharedos/contracts';
import { memoryLedger } from '@sharedos/ledger';
import { describe, expect, it } from 'vitest';
import { type Counters, releaseReserved } from './reserved-uses.ts';
import { NOON, REVISION, claimedBy, turnWorld } from './turn.fixture.ts';

const use = (ordinal: number, grantId = 'g') => ({ grantId, ordinal, epoch: 'epoch' });
const held = (ordinal: number, grantId = 'g'): HeldUse => ({ grantId, ordinal, operation: `operation-${ordinal}` });
const ended: LedgerRecord = {
  type: 'ended',
  at: NOON,
  by: 'recovery',
  audit: [],
  result: { version: '1', status: 'cancelled', executionId: 'exec-1', traceId: 'trace-1', events: [], startedAt: NOON, completedAt: NOON },
};

/** A turn with these records between its claim and its end, of which the counters say that it holds these uses. */
const turnThatHolds = (uses: readonly HeldUse[], records: readonly LedgerRecord[] = [], end: readonly LedgerRecord[] = [ended]) => {
  const ledger = memoryLedger();
  const released: HeldUse[] = [];
  const counters: Counters = {
    held: async () => ({ epoch: 'epoch', uses }),
    release: async (_, __, given) => released.push(...given.uses) > 0,
  };
  const history = [claimedBy('dead'), ...records, ...end];
  return {
    ledger,
    released,
    release: (through: Partial<Counters> = {}) =>
      releaseReserved({ ledger, counters: { ...counters, ...through }, clock: () => Date.parse(NOON) }, 'w1', history),
  };
};

describe('what a turn reserved and never admitted', () => {
  it('is given back once its records say that it is over, in the ledger first', async () => {
    const turn = turnThatHolds([held(3)]);
    await turn.ledger.claimUse('w1', { at: NOON, ...held(3) });
    expect(await turn.release()).toBe(true);
    expect(turn.released).toEqual([held(3)]);
    expect(await turn.ledger.uses()).toEqual(ok([]));
    expect(await turn.ledger.claimUse('w1', { at: NOON, ...held(3) })).toMatchObject({ ok: false, error: { kind: 'released' } });
  });

  it('stays where the turn is not over: its owner may be about to admit it', async () => {
    const turn = turnThatHolds([held(3)], [], []);
    expect(await turn.release()).toBe(false);
    expect(turn.released).toEqual([]);
  });

  it.each<[string, LedgerRecord]>([
    ['an admitted call', { type: 'admitted', at: NOON, callId: 'one', use: use(3), above: [use(1, 'root')], audit: [] }],
    ['the opening', { type: 'opened', at: NOON, revision: REVISION, use: use(3), above: [use(1, 'root')], audit: [] }],
  ])('leaves what %s spent, of every budget', async (_, record) => {
    const turn = turnThatHolds([held(3), held(1, 'root'), held(4), held(2, 'root')], [record]);
    expect(await turn.release()).toBe(true);
    expect(turn.released).toEqual([held(4), held(2, 'root')]);
  });

  it('leaves what an admission spent of a turn that ended before it was opened', async () => {
    const turn = turnThatHolds([held(3), held(4)], [], [{ ...ended, use: use(3) } as LedgerRecord]);
    expect(await turn.release()).toBe(true);
    expect(turn.released).toEqual([held(4)]);
  });

  it('is not given back while nobody can say what it is, or take it: whoever asked must ask again', async () => {
    const turn = turnThatHolds([held(3)]);
    expect(await turn.release({ held: async () => undefined })).toBe(false);
    expect(await turn.release({ release: async () => false })).toBe(false);
  });

  it('is found by its claim where the counters went back and have forgotten it', async () => {
    const turn = turnThatHolds([]);
    await turn.ledger.claimUse('w1', { at: NOON, ...held(3), turn: 'turn-1' });
    await turn.ledger.claimUse('w1', { at: NOON, ...held(4), turn: 'another turn' });
    expect(await turn.release()).toBe(true);
    expect(turn.released).toEqual([held(3)]);
    const uses = await turn.ledger.uses();
    expect(uses.ok && uses.value.map(({ use: { ordinal } }) => ordinal)).toEqual([4]);
  });

  it('is nothing where everything was admitted, and then nobody is told', async () => {
    const turn = turnThatHolds([held(3)], [{ type: 'admitted', at: NOON, callId: 'one', use: use(3), audit: [] }]);
    expect(await turn.release({ release: async () => false })).toBe(true);
  });
});

describe('a turn that stops between a decision and its record', () => {
  const stopped = async (when: 'before the end' | 'after the end') => {
    const stop = new AbortController();
    const answering = Promise.withResolvers<void>();
    const world = await turnWorld();
    await world.begin();
    world.says = async () => {
      stop.abort();
      if (when === 'after the end') await answering.promise;
      return { use: use(1) };
    };
    const call = { id: 'one', tool: 'files.read', arguments: { path: ['a'] }, traceId: 'trace-1', requestedAt: NOON };
    const asked = expect(world.invoke(call, stop.signal)).rejects.toThrow();
    if (when === 'after the end') {
      await world.end('cancelled');
      answering.resolve();
      await asked;
    } else {
      await asked;
      await world.end('cancelled');
    }
    return world;
  };
  const toldOf = (events: readonly { type: string; operationId?: string | undefined }[]) =>
    events.filter(({ operationId }) => operationId === 'one').map(({ type }) => type);

  it('tells the decision with its end, and that its use is given back', async () => {
    const world = await stopped('before the end');
    expect(toldOf(await world.audit())).toEqual(['authorization.checked', 'grant.usage.released']);
    expect(world.turn.mayReserve).toBe(true);
  });

  it('tells a decision that came after its end by itself', async () => {
    const world = await stopped('after the end');
    expect(toldOf(await world.audit())).toEqual([]);
    expect(toldOf(world.stored)).toEqual(['authorization.checked', 'grant.usage.released']);
    expect(world.turn.mayReserve).toBe(true);
  });

  it('claims no use in the ledger', async () => {
    const world = await stopped('before the end');
    expect(await world.ledger.uses()).toEqual(ok([]));
  });
});

describe('a call whose budgets cannot all be spent', () => {
  it('is refused, and gives back those that were claimed', async () => {
    const world = await turnWorld();
    await world.begin();
    await world.ledger.claimUse('w1', { at: NOON, grantId: 'root', ordinal: 2, operation: 'another' });
    world.says = () => ({ use: use(1), above: [use(2, 'root')] });
    const call = { id: 'one', tool: 'files.read', arguments: { path: ['a'] }, traceId: 'trace-1', requestedAt: NOON };
    expect(await world.invoke(call)).toMatchObject({ status: 'denied', error: { code: 'usage_store_unavailable' } });
    expect((await world.records()).map(({ type }) => type)).toEqual(['claimed', 'opened', 'released', 'settled']);
    expect(world.released.map(({ grantId }) => grantId)).toEqual(['g', 'root']);
    const uses = await world.ledger.uses();
    expect(uses.ok && uses.value.map(({ use: spent }) => spent.operation)).toEqual(['another']);
    expect(world.turn.mayReserve).toBe(false);
  });

  it('leaves nothing to give back once it is admitted', async () => {
    const world = await turnWorld();
    await world.begin();
    world.says = () => ({ use: use(1), above: [use(2, 'root')] });
    const call = { id: 'one', tool: 'files.read', arguments: { path: ['a'] }, traceId: 'trace-1', requestedAt: NOON };
    expect(await world.invoke(call)).toMatchObject({ status: 'succeeded' });
    expect((await world.records()).find(({ type }) => type === 'admitted')).toMatchObject({ use: use(1), above: [use(2, 'root')] });
    expect(world.turn.mayReserve).toBe(false);
  });
});
