import { randomUUID } from 'node:crypto';
import { type LedgerRecord, type Result, ok } from '@sharedos/contracts';
import { expect, it } from 'vitest';
import type { Ledger, LedgerClaim, OperationHistory, OperationKey } from './ledger.ts';

/** What the suite's other part offers to this one. */
export interface RetentionWorld {
  readonly ledger: Ledger;
  /** The same ledger as another process sees it. */
  replica(): Promise<Ledger>;
  newKey(more?: Partial<OperationKey>): OperationKey;
  claimed(key: OperationKey): LedgerRecord;
  ended(key: OperationKey): LedgerRecord;
  /** Nothing after it has been published; all has when absent. */
  holdBack(sequenceMax?: number): void;
}

const HOUR_MS = 3_600_000;
/** By the clock of the keeper, whichever that is: later than all that a test wrote, and before all of it. */
const ALL = () => Date.now() + HOUR_MS;
const NONE = 0;
const MANY = 1_000;

/** What a ledger lists, and what it forgets. */
export const retentionRules = (world: () => RetentionWorld): void => {
  const claim = async (key: OperationKey): Promise<LedgerClaim> => {
    const made = await world().ledger.claim(key, world().claimed(key));
    if (!made.ok) throw new Error(`the claim was refused: ${JSON.stringify(made.error)}`);
    return made.value;
  };
  const run = async (key: OperationKey, ...records: readonly LedgerRecord[]): Promise<OperationKey> => {
    const held = await claim(key);
    for (const record of records) expect(await held.append(record)).toEqual(ok(undefined));
    return key;
  };
  const finished = (key = world().newKey()): Promise<OperationKey> => run(key, world().ended(key));
  const typesOf = (history: Result<OperationHistory | undefined, unknown>) =>
    history.ok ? history.value?.records.map(({ type }) => type) : history.error;
  const read = async (key: OperationKey) => typesOf(await world().ledger.read(key));
  const all = async (pass: () => Promise<Result<{ readonly more: boolean }, unknown>>): Promise<void> => {
    for (;;) {
      const done = await pass();
      if (!done.ok) throw new Error(`not done: ${JSON.stringify(done.error)}`);
      if (!done.value.more) return;
    }
  };
  const expire = (before = ALL(), ledger = world().ledger) => all(() => ledger.expire(before, MANY));
  const forget = (before = NONE) => all(() => world().ledger.forget(before, MANY));

  it('lists what was written last, and what that says by itself', async () => {
    const namespaceId = `list ${randomUUID()}`;
    const at = () => world().newKey({ namespaceId });
    const aborted = { type: 'tool.invoked', reason: 'operation_aborted' };
    const keys = [at(), at(), at(), at()] as const;
    await run(keys[0]);
    await finished(keys[1]);
    const unknown = { ...world().ended(keys[2]), audit: [fullEvent(namespaceId, aborted)] } as LedgerRecord;
    await run(keys[2], unknown);
    await run(keys[3], unknown, { ...settledLate });
    await finished(world().newKey({ namespaceId, kind: 'message' }));
    const listed = await (await world().replica()).operations(namespaceId, 'execution');
    if (!listed.ok) throw new Error(listed.error.reason);
    expect(listed.value.complete).toBe(true);
    expect(listed.value.operations.map(({ state }) => state)).toEqual(['running', 'ended', 'perhaps_unknown', 'perhaps_unknown']);
    for (const [index, place] of listed.value.operations.entries())
      expect(await world().ledger.readAt(place)).toEqual(await world().ledger.read(keys[index] as OperationKey));
    expect(await world().ledger.operations(`other ${randomUUID()}`, 'execution')).toEqual(ok({ operations: [], complete: true }));
  });

  it('lets a turn that ended long ago be known as one that has expired, and nobody claim it again', async () => {
    const key = await finished();
    await expire();
    expect(await read(key)).toEqual(['claimed', 'ended', 'expired']);
    const again = await world().ledger.claim(key, world().claimed(key));
    const { requester, id: operationId } = key;
    expect(again).toMatchObject({ ok: false, error: { kind: 'exists' } });
    expect(again.ok || again.error.kind !== 'exists' ? undefined : again.error.history.records.at(-1)).toMatchObject({
      type: 'expired',
      claim: { requester, operationId },
    });
  });

  it('expires a turn once, however many do it at once', async () => {
    const keys = await Promise.all(Array.from({ length: 8 }, () => finished()));
    const other = await world().replica();
    await Promise.all([expire(), expire(ALL(), other), expire(ALL(), await world().replica())]);
    await expire();
    for (const key of keys) expect(await read(key)).toEqual(['claimed', 'ended', 'expired']);
  });

  it('leaves alone what runs, what ended not so long ago, and every message', async () => {
    const running = world().newKey();
    const held = await claim(running);
    const message = await finished(world().newKey({ kind: 'message' }));
    const young = await finished();
    await expire(NONE);
    expect(await read(young)).toEqual(['claimed', 'ended']);
    await expire();
    expect([await read(running), await read(message)]).toEqual([['claimed'], ['claimed', 'ended']]);
    expect(await held.append(world().ended(running))).toEqual(ok(undefined));
    // It was passed by before, and is found now.
    await expire();
    expect(await read(running)).toEqual(['claimed', 'ended', 'expired']);
  });

  it('expires no more turns at a time than it is asked to, and gets past any number that run', async () => {
    await expire();
    const { ledger } = world();
    for (let running = 0; running < 12; running += 1) await claim(world().newKey());
    const keys = [await finished(), await finished(), await finished()];
    let expired = 0;
    for (let more = true; more;) {
      const done = await ledger.expire(ALL(), 2);
      if (!done.ok) throw new Error(done.error.reason);
      expect(done.value.expired).toBeLessThanOrEqual(2);
      expired += done.value.expired;
      ({ more } = done.value);
    }
    expect(expired).toBe(3);
    for (const key of keys) expect(await read(key)).toEqual(['claimed', 'ended', 'expired']);
  });

  it('lets nobody who held a turn before write to it after', async () => {
    const key = world().newKey();
    const held = await claim(key);
    await held.append(world().ended(key));
    const before = await world().ledger.read(key);
    await expire();
    expect(await held.append({ ...settledLate })).toEqual({ ok: false, error: { kind: 'fenced' } });
    if (!before.ok || before.value === undefined) throw new Error('the turn was there');
    expect(
      await world()
        .ledger.resume(key, before.value)
        .append({ ...settledLate }),
    ).toEqual({ ok: false, error: { kind: 'fenced' } });
  });

  it('keeps of a turn that has expired that record alone, and then nothing', async () => {
    const key = await finished();
    const running = world().newKey();
    await claim(running);
    const kept = await finished();
    await expire(ALL());
    await forget();
    expect([await read(key), await read(kept)]).toEqual([['expired'], ['expired']]);
    expect(await world().ledger.claim(key, world().claimed(key))).toMatchObject({ ok: false, error: { kind: 'exists' } });
    await forget(ALL());
    expect([await read(key), await read(running)]).toEqual([undefined, ['claimed']]);
    expect(await world().ledger.claim(key, world().claimed(key))).toMatchObject({ ok: true });
  });

  it('takes out nothing of a turn that has not expired, nor what nobody has published', async () => {
    const open = await finished();
    await forget(ALL());
    expect(await read(open)).toEqual(['claimed', 'ended']);
    await expire();
    world().holdBack(0);
    try {
      await forget(ALL());
      expect(await read(open)).toEqual(['claimed', 'ended', 'expired']);
    } finally {
      world().holdBack();
    }
    await forget(ALL());
    expect(await read(open)).toBeUndefined();
  });
};

const settledLate: LedgerRecord = {
  type: 'settled',
  at: '2026-01-01T12:00:01.000Z',
  callId: 'call',
  late: true,
  result: { status: 'succeeded', callId: 'call', tool: 'files.read', output: null, completedAt: '2026-01-01T12:00:01.000Z' },
  audit: [],
};

const fullEvent = (namespaceId: string, more: object): object => ({
  version: '1',
  id: 'event',
  outcome: 'failed',
  at: '2026-01-01T12:00:00.000Z',
  traceId: 'trace',
  namespaceId,
  actor: { kind: 'agent', agentId: 'scout' },
  authority: { kind: 'human', userId: 'alice' },
  owner: { kind: 'human', userId: 'alice' },
  purpose: 'testing',
  ...more,
});
