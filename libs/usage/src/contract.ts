import { type Result, type Unavailable, type UseTaken, encodeName, ok, unavailable } from '@sharedos/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RebuildOptions, RebuiltUsageStore } from './rebuilt-store.ts';
import type { BoundedGrant, Budgets, Reservation, SpentUse, Taken, UsageState } from './usage-store.ts';

/** One memory of counters that can be lost, and stores that share it as replicas do. */
export interface UsageHarness {
  open(options: RebuildOptions): RebuiltUsageStore;
  /** Everything forgotten, the server and its connections alive. */
  wipe(): Promise<void>;
  /** The server killed and started empty. */
  restart(): Promise<void>;
  stall(): Promise<void>;
  resume(): Promise<void>;
  close(): Promise<void>;
}

const OPEN_WITHIN_MS = 10_000;
/** A command's deadline, and what a busy machine adds. */
const ANSWERS_WITHIN_MS = 1_500;

const grant: BoundedGrant = { namespaceId: 'acme', grantId: 'grant-1', max: 5 };

/** The claims a ledger would hold: the first of an ordinal is the only one. */
const claimsOf = () => {
  const claims = new Map<string, SpentUse>();
  return {
    claim: ({ namespaceId }: BoundedGrant, { grantId, ordinal }: UseTaken, operation: string): boolean => {
      const name = encodeName(namespaceId, grantId, String(ordinal));
      const held = claims.get(name) ?? { namespaceId, grantId, ordinal, operation };
      claims.set(name, held);
      return held.operation === operation;
    },
    spentUses: async (): Promise<Result<readonly SpentUse[], Unavailable>> => ok([...claims.values()]),
    ordinals: (): readonly number[] => [...claims.values()].map(({ ordinal }) => ordinal),
  };
};

const spent = (ordinal: number, operation: string): SpentUse => ({
  namespaceId: grant.namespaceId,
  grantId: grant.grantId,
  ordinal,
  operation,
});

/** A value that is waited for, and given by hand. */
const gate = <T>() => {
  let give: (value: T) => void = () => undefined;
  let reach: () => void = () => undefined;
  const given = new Promise<T>((resolve) => (give = resolve));
  const reached = new Promise<void>((resolve) => (reach = resolve));
  return { give, reached, wait: () => (reach(), given) };
};

/** What `operation` of the turn `turn` asks for. */
export const by = (operation: string, turn = 'turn'): Reservation => ({ operation, turn });

const onlyUse = (taken: Taken): UseTaken | undefined => (taken.kind === 'taken' ? taken.uses[0] : undefined);

const taken = async (store: RebuiltUsageStore, operation: string, of: BoundedGrant = grant): Promise<UseTaken | undefined> => {
  const use = await store.take([of], by(operation));
  if (!use.ok) throw new Error(`take was ${use.error.reason}`);
  return onlyUse(use.value);
};

/** Uses handed out of one grant. */
const countOf = async (store: RebuiltUsageStore, of: BoundedGrant = grant) => {
  const counted = await store.count([of]);
  return counted.ok ? ok(counted.value[0]) : counted;
};

const ordinalOf = async (store: RebuiltUsageStore, operation: string, of?: BoundedGrant): Promise<number | undefined> =>
  (await taken(store, operation, of))?.ordinal;

export const usageStoreContract = (adapter: string, openHarness: () => Promise<UsageHarness>) =>
  describe(`${adapter} as a usage store`, () => {
    let harness: UsageHarness;
    let stores: RebuiltUsageStore[];

    beforeEach(async () => {
      harness = await openHarness();
      stores = [];
    });
    afterEach(async () => {
      await harness.resume();
      await Promise.all(stores.map((store) => store.close()));
      await harness.close();
    });

    const replica = (options: Partial<RebuildOptions> = {}): RebuiltUsageStore => {
      const store = harness.open({ spentUses: async () => ok([]), settleMs: 0, backoff: { firstMs: 5, maxMs: 100 }, ...options });
      stores.push(store);
      return store;
    };
    const opened = async (options: Partial<RebuildOptions> = {}): Promise<RebuiltUsageStore> => {
      const store = replica(options);
      expect(await store.whenOpen(OPEN_WITHIN_MS)).toBe(true);
      return store;
    };
    /** Asks again until the store answers, as somebody whose turn was refused would. Fails when that takes too long. */
    const persistently = async (store: RebuiltUsageStore, operation: string): Promise<UseTaken | undefined> => {
      const giveUp = AbortSignal.timeout(OPEN_WITHIN_MS);
      for (;;) {
        const use = await store.take([grant], by(operation));
        if (use.ok) return onlyUse(use.value);
        if (giveUp.aborted) throw new Error(`never answered: ${use.error.reason}`);
        await store.whenOpen(OPEN_WITHIN_MS);
      }
    };

    describe('handing out', () => {
      it('gives exactly the maximum to 64 operations that ask two replicas at once', async () => {
        const [one, two] = [await opened(), await opened()];
        const asked = Array.from({ length: 64 }, (_, index) => ordinalOf(index % 2 === 0 ? one : two, `operation-${index}`));
        const ordinals = (await Promise.all(asked)).filter((ordinal) => ordinal !== undefined);
        expect(ordinals.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5]);
      });

      it('gives an operation that asks again, anywhere, the same ordinal and takes nothing more', async () => {
        const [one, two] = [await opened(), await opened()];
        const ordinals = await Promise.all(Array.from({ length: 20 }, (_, index) => ordinalOf(index % 2 === 0 ? one : two, 'operation')));
        expect(new Set(ordinals)).toEqual(new Set([1]));
        expect(await countOf(two)).toEqual(ok(1));
      });

      it('still knows an operation when all uses are handed out, and refuses any other', async () => {
        const store = await opened();
        const once = { ...grant, max: 1 };
        await taken(store, 'first', once);
        expect(await ordinalOf(store, 'second', once)).toBeUndefined();
        expect(await ordinalOf(store, 'first', once)).toBe(1);
      });

      it('counts without consuming', async () => {
        const store = await opened();
        expect(await countOf(store)).toEqual(ok(0));
        await taken(store, 'operation');
        for (let asked = 0; asked < 10; asked += 1) expect(await countOf(store)).toEqual(ok(1));
        expect(await ordinalOf(store, 'next')).toBe(2);
      });

      it('keeps apart grants whose names differ only in oddities', async () => {
        const store = await opened();
        const names = [
          ['a', 'b.c'],
          ['a.b', 'c'],
          ['a', 'b:c'],
          ['a:b', 'c'],
          ['a}', '{b'],
          ['{a}', 'b'],
          ['A', 'b'],
          ['a', 'b'],
          ['a', 'b '],
          ['', 'ab'],
          ['ab', ''],
          ['a', '\u{1F600}'],
          ['a', '\u{1F601}'],
          ['a', 'e\u0301'],
          ['a', '\u00e9'],
          ['a', '~YQ'],
          ['a', '*'],
          ['a', '>'],
          ['a', 'x\ny'],
          ['a', 'x'.repeat(250)],
          ['a', 'x'.repeat(249)],
        ] as const;
        for (const [namespaceId, grantId] of names) expect(await ordinalOf(store, 'operation', { namespaceId, grantId, max: 1 })).toBe(1);
        for (const [namespaceId, grantId] of names) expect(await countOf(store, { namespaceId, grantId, max: 1 })).toEqual(ok(1));
      });

      it('keeps apart operations whose names differ only in oddities, unpaired surrogates included', async () => {
        const store = await opened();
        const operations = ['a', 'A', 'a ', '"a"', 'highest', '1', '\ud800', '\ud801', '\ufffd', '\u{1F600}', 'x'.repeat(256)];
        const ordinals = [];
        for (const operation of operations) ordinals.push(await ordinalOf(store, operation, { ...grant, max: 100 }));
        expect(ordinals).toEqual(operations.map((_, index) => index + 1));
      });
    });

    describe('sharing budgets', () => {
      const tree: Budgets = [
        { ...grant, grantId: 'leaf', max: 3 },
        { ...grant, grantId: 'branch', max: 5 },
        { ...grant, grantId: 'root', max: 4 },
      ];
      const takenOf = async (store: RebuiltUsageStore, budgets: Budgets, operation: string, turn?: string) => {
        const answer = await store.take(budgets, by(operation, turn));
        if (!answer.ok) throw new Error(`take was ${answer.error.reason}`);
        return answer.value.kind === 'taken' ? answer.value.uses.map(({ ordinal }) => ordinal) : answer.value.grantId;
      };

      it('takes one of each budget, in the order given', async () => {
        const store = await opened();
        await takenOf(store, [tree[2] as BoundedGrant], 'elsewhere');
        expect(await takenOf(store, tree, 'a')).toEqual([1, 1, 2]);
        expect(await takenOf(store, tree, 'a')).toEqual([1, 1, 2]);
        expect(await store.count(tree)).toEqual(ok([1, 1, 2]));
      });

      it('takes nothing of any where one has none left, and names that one', async () => {
        const store = await opened();
        for (const operation of ['a', 'b', 'c', 'd']) await takenOf(store, [tree[2] as BoundedGrant], operation);
        expect(await takenOf(store, tree, 'late')).toBe('root');
        expect(await store.count(tree)).toEqual(ok([0, 0, 4]));
      });

      it('completes what a lost memory left of an operation in part', async () => {
        const store = await opened({ spentUses: async () => ok([{ ...spent(2, 'half'), grantId: 'branch' }]) });
        expect(await takenOf(store, tree, 'half')).toEqual([1, 2, 1]);
      });

      it('never exceeds any budget of a tree, however many replicas ask at once', async () => {
        const stores = [await opened(), await opened(), await opened()];
        const root = { ...grant, grantId: 'tree', max: 10 };
        const leaves = Array.from({ length: 20 }, (_, leaf): Budgets => [
          { ...grant, grantId: `leaf-${leaf}`, max: 3 },
          { ...grant, grantId: `branch-${leaf % 4}`, max: 4 },
          root,
        ]);
        const answers = await Promise.all(
          Array.from({ length: 200 }, (_, index) =>
            takenOf(stores[index % 3] as RebuiltUsageStore, leaves[index % 20] as Budgets, `operation-${index}`),
          ),
        );
        expect(answers.filter((answer) => typeof answer !== 'string')).toHaveLength(10);
        expect(await countOf(stores[0] as RebuiltUsageStore, root)).toEqual(ok(10));
        for (let branch = 0; branch < 4; branch += 1) {
          const counted = await countOf(stores[0] as RebuiltUsageStore, { ...grant, grantId: `branch-${branch}`, max: 4 });
          expect(counted.ok ? counted.value : Infinity).toBeLessThanOrEqual(4);
        }
      });
    });

    describe('giving back', () => {
      const giveBack = async (store: RebuiltUsageStore, turn: string) => {
        const held = await store.held(grant.namespaceId, turn);
        if (!held.ok) throw new Error(held.error.reason);
        expect(await store.release(grant.namespaceId, turn, held.value.epoch, held.value.uses)).toEqual(ok(undefined));
        return held.value.uses;
      };

      it('tells what a turn holds, of every grant, and of no other turn', async () => {
        const store = await opened();
        const other = { ...grant, grantId: 'grant 2' };
        await store.take([grant, other], by('a', 'turn-1'));
        await store.take([grant], by('b', 'turn-2'));
        const held = await store.held(grant.namespaceId, 'turn-1');
        expect(held.ok && held.value.uses.toSorted((x, y) => (x.grantId < y.grantId ? -1 : 1))).toEqual([
          { grantId: 'grant 2', ordinal: 1, operation: 'a' },
          { grantId: 'grant-1', ordinal: 1, operation: 'a' },
        ]);
        expect(await store.held('other', 'turn-1')).toMatchObject({ ok: true, value: { uses: [] } });
      });

      it('hands a released ordinal out again, and only once', async () => {
        const store = await opened();
        await store.take([grant], by('a', 'turn-1'));
        await taken(store, 'b');
        await giveBack(store, 'turn-1');
        expect(await giveBack(store, 'turn-1')).toEqual([]);
        expect(await countOf(store)).toEqual(ok(1));
        expect(await ordinalOf(store, 'c')).toBe(1);
        expect(await ordinalOf(store, 'd')).toBe(3);
      });

      it('hands a turn that is over nothing more', async () => {
        const store = await opened();
        await store.take([grant], by('a', 'turn-1'));
        await giveBack(store, 'turn-1');
        for (const operation of ['a', 'later'])
          expect(await store.take([grant], by(operation, 'turn-1'))).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        expect(await countOf(store)).toEqual(ok(0));
        expect(await ordinalOf(store, 'of another turn')).toBe(1);
      });

      it('changes nothing of what another operation holds by now', async () => {
        const store = await opened();
        await store.take([grant], by('a', 'turn-1'));
        const held = await store.held(grant.namespaceId, 'turn-1');
        if (!held.ok) throw new Error(held.error.reason);
        const { epoch, uses } = held.value;
        await store.release(grant.namespaceId, 'turn-1', epoch, uses);
        expect(await ordinalOf(store, 'b')).toBe(1);
        await store.release(grant.namespaceId, 'turn-1', epoch, uses);
        expect(await countOf(store)).toEqual(ok(1));
        expect(await ordinalOf(store, 'b')).toBe(1);
      });

      it('still knows what a turn claimed after the memory was lost', async () => {
        const spentUses = async () => ok([{ ...spent(2, 'claimed'), turn: 'turn-1' }]);
        const store = await opened({ spentUses });
        expect(await giveBack(store, 'turn-1')).toEqual([{ grantId: grant.grantId, ordinal: 2, operation: 'claimed' }]);
        expect(await countOf(store)).toEqual(ok(0));
      });

      it('says nothing of an epoch that is over', async () => {
        const store = await opened();
        await taken(store, 'a');
        const use = { grantId: grant.grantId, ordinal: 1, operation: 'a' };
        expect(await store.release(grant.namespaceId, 'turn', 'an epoch before', [use])).toEqual(ok(undefined));
        expect(await countOf(store)).toEqual(ok(1));
      });
    });

    describe('rebuilding from spent uses', () => {
      it('answers nothing until the spent uses are counted', async () => {
        const truth = gate<Result<readonly SpentUse[], Unavailable>>();
        const store = replica({ spentUses: truth.wait });
        await truth.reached;
        expect(await store.take([grant], by('operation'))).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        expect(await countOf(store)).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        truth.give(ok([spent(1, 'before')]));
        expect(await store.whenOpen(OPEN_WITHIN_MS)).toBe(true);
        expect(await ordinalOf(store, 'operation')).toBe(2);
      });

      it('stays closed while they cannot be read, and opens by itself once they can', async () => {
        const answers: Result<readonly SpentUse[], Unavailable>[] = [
          unavailable('ledger away'),
          unavailable('ledger away'),
          ok([spent(3, 'before')]),
        ];
        const states: UsageState[] = [];
        const store = await opened({ spentUses: async () => answers.shift() ?? ok([]), onState: (state) => states.push(state) });
        expect(await countOf(store)).toEqual(ok(1));
        expect(states.map(({ state }) => state)).toEqual(['rebuilding', 'closed', 'rebuilding', 'closed', 'rebuilding', 'open']);
        expect(states[1]?.reason).toContain('ledger away');
      });

      it('tries again after reading them broke down altogether', async () => {
        let reads = 0;
        const states: UsageState[] = [];
        const spentUses = async (): Promise<Result<readonly SpentUse[], Unavailable>> => {
          reads += 1;
          if (reads === 1) throw new Error('broken reader');
          return ok([spent(1, 'before')]);
        };
        const store = await opened({ spentUses, onState: (state) => states.push(state) });
        expect(await countOf(store)).toEqual(ok(1));
        expect(states).toContainEqual({ state: 'closed', reason: 'broken reader' });
      });

      it('goes on after the highest spent ordinal, fills the holes below first, and knows who spent what', async () => {
        const store = await opened({ spentUses: async () => ok([spent(4, 'd'), spent(1, 'a')]) });
        expect(await countOf(store)).toEqual(ok(2));
        expect(await ordinalOf(store, 'd')).toBe(4);
        expect(await ordinalOf(store, 'x')).toBe(2);
        expect(await ordinalOf(store, 'y')).toBe(3);
        expect(await ordinalOf(store, 'z')).toBe(5);
        expect(await ordinalOf(store, 'too late')).toBeUndefined();
        expect(await ordinalOf(store, 'a')).toBe(1);
      });

      it('restores many grants and many uses', async () => {
        const uses = Array.from({ length: 3_000 }, (_, index): SpentUse =>
          index < 1_500
            ? { ...spent(index + 1, `operation-${index}`), grantId: 'large' }
            : { ...spent(1, 'operation'), grantId: `small-${index}` },
        );
        const store = await opened({ spentUses: async () => ok(uses) });
        expect(await countOf(store, { ...grant, grantId: 'large', max: 2_000 })).toEqual(ok(1_500));
        expect(await ordinalOf(store, 'operation-1499', { ...grant, grantId: 'large', max: 2_000 })).toBe(1_500);
        for (const index of [1_500, 2_999]) expect(await countOf(store, { ...grant, grantId: `small-${index}`, max: 1 })).toEqual(ok(1));
      });

      it('agrees on one epoch when several replicas rebuild at once', async () => {
        const together = gate<Result<readonly SpentUse[], Unavailable>>();
        const replicas = [1, 2, 3].map(() => replica({ spentUses: together.wait }));
        await together.reached;
        together.give(ok([spent(1, 'before')]));
        for (const store of replicas) expect(await store.whenOpen(OPEN_WITHIN_MS)).toBe(true);
        const uses = await Promise.all(replicas.map((store, index) => taken(store, `operation-${index}`)));
        expect(new Set(uses.map((use) => use?.epoch)).size).toBe(1);
        expect(new Set(uses.map((use) => use?.ordinal))).toEqual(new Set([2, 3, 4]));
      });

      it('is adopted, not repeated, by a replica that comes later', async () => {
        const first = await opened();
        await taken(first, 'handed out, not claimed');
        let reads = 0;
        const later = await opened({ spentUses: async () => ((reads += 1), ok([])) });
        expect(reads).toBe(0);
        expect(await countOf(later)).toEqual(ok(1));
      });

      // Nothing to fill is a rebuild too: only its last step can notice the wipe.
      it.each([[[]], [[spent(1, 'a')]]])('never comes into force over a memory that was wiped under it (with %j)', async (read) => {
        const stale = gate<Result<readonly SpentUse[], Unavailable>>();
        let reads = 0;
        const store = replica({
          spentUses: () => ((reads += 1) === 1 ? stale.wait() : Promise.resolve(ok([spent(1, 'a'), spent(2, 'b')]))),
        });
        await stale.reached;
        await harness.wipe();
        stale.give(ok(read));
        expect(await store.whenOpen(OPEN_WITHIN_MS)).toBe(true);
        expect(reads).toBe(2);
        expect(await countOf(store)).toEqual(ok(2));
      });

      it('never replaces the counters of a rival that finished first', async () => {
        const stale = gate<Result<readonly SpentUse[], Unavailable>>();
        const slow = replica({ spentUses: stale.wait });
        await stale.reached;
        const quick = await opened({ spentUses: async () => ok([spent(1, 'a'), spent(2, 'b')]) });
        expect(await ordinalOf(quick, 'c')).toBe(3);
        stale.give(ok([]));
        expect(await slow.whenOpen(OPEN_WITHIN_MS)).toBe(true);
        expect(await ordinalOf(slow, 'd')).toBe(4);
      });
    });

    describe('losing its memory', () => {
      const losses: readonly (readonly [string, () => Promise<void>])[] = [
        ['is wiped', () => harness.wipe()],
        ['is killed and started again', () => harness.restart()],
        [
          'stalls',
          async () => {
            await harness.stall();
            setTimeout(() => void harness.resume(), 700);
          },
        ],
      ];

      it.each(losses)('spends no more than the maximum, and no less, when it %s while replicas take', async (_, lose) => {
        const ledger = claimsOf();
        const bounded = { ...grant, max: 40 };
        const replicas = [await opened(ledger), await opened(ledger)];
        let lost: Promise<void> | undefined;
        const spend = async (worker: number): Promise<void> => {
          const store = replicas[worker % 2] as RebuiltUsageStore;
          const giveUp = AbortSignal.timeout(OPEN_WITHIN_MS);
          for (let spent = 0; !giveUp.aborted;) {
            const operation = `operation-${worker}-${spent}`;
            const use = await store.take([bounded], by(operation));
            // Asked again under the same name: the use may have been taken and only its answer lost.
            if (!use.ok) await store.whenOpen(OPEN_WITHIN_MS);
            else if (use.value.kind === 'exhausted') return;
            else if (ledger.claim(bounded, onlyUse(use.value) as UseTaken, operation)) spent += 1;
            else await store.distrust((onlyUse(use.value) as UseTaken).epoch);
            if (ledger.ordinals().length >= 10) lost ??= lose();
          }
          throw new Error('never came to an end');
        };
        await Promise.all(Array.from({ length: 8 }, (__, worker) => spend(worker)));
        await lost;
        expect(lost).toBeDefined();
        expect(ledger.ordinals().toSorted((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (__, index) => index + 1));
      });

      it.each(losses)('never answers like a fresh counter when it %s', async (_, lose) => {
        const ledger = claimsOf();
        const states: UsageState[] = [];
        const store = await opened({ ...ledger, onState: (state) => states.push(state) });
        for (const operation of ['a', 'b']) ledger.claim(grant, (await taken(store, operation)) as UseTaken, operation);
        await lose();
        const count = await countOf(store);
        expect(count.ok ? count.value : 2).toBe(2);
        expect((await persistently(store, 'c'))?.ordinal).toBe(3);
        expect((await persistently(store, 'a'))?.ordinal).toBe(1);
        expect(states.map(({ state }) => state)).toContain('closed');
        expect(states.at(-1)?.state).toBe('open');
      });

      it('says at the next step that it was wiped, and rebuilds under another epoch', async () => {
        const store = await opened();
        const before = await taken(store, 'a');
        await harness.wipe();
        expect(await countOf(store)).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        expect((await persistently(store, 'b'))?.epoch).not.toBe(before?.epoch);
      });

      it("hands an unclaimed ordinal out again after a wipe, which the ledger's claim settles", async () => {
        const ledger = claimsOf();
        const store = await opened(ledger);
        const before = (await taken(store, 'paused')) as UseTaken;
        await harness.wipe();
        const after = (await persistently(store, 'quick')) as UseTaken;
        expect(after.ordinal).toBe(before.ordinal);
        expect(ledger.claim(grant, after, 'quick')).toBe(true);
        expect(ledger.claim(grant, before, 'paused')).toBe(false);
      });

      it('answers unavailable in time while nothing answers it, and leaves the process free to work', async () => {
        const store = await opened();
        await harness.stall();
        let ticks = 0;
        const ticking = setInterval(() => (ticks += 1), 10);
        const startedAt = performance.now();
        expect(await store.take([grant], by('operation'))).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        const firstMs = performance.now() - startedAt;
        expect(await countOf(store)).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        clearInterval(ticking);
        expect(performance.now() - startedAt).toBeLessThan(ANSWERS_WITHIN_MS);
        expect(ticks).toBeGreaterThanOrEqual(Math.floor(firstMs / 50));
      });
    });

    describe('distrusting', () => {
      it("closes every replica's counters until they are rebuilt from the ledger", async () => {
        const ledger = claimsOf();
        const [one, two] = [await opened(ledger), await opened(ledger)];
        const before = (await taken(one, 'a')) as UseTaken;
        // The ledger knows more than the counters: they went back in time.
        for (const ordinal of [1, 2, 3]) ledger.claim(grant, { ...before, ordinal }, `claimed-${ordinal}`);
        await one.distrust(before.epoch);
        expect(await one.take([grant], by('b'))).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        expect(await one.whenOpen(OPEN_WITHIN_MS)).toBe(true);
        const after = (await persistently(two, 'b')) as UseTaken;
        expect(after).toMatchObject({ ordinal: 4 });
        expect(after.epoch).not.toBe(before.epoch);
        expect((await taken(one, 'b'))?.ordinal).toBe(4);
      });

      it('changes nothing when the epoch is another', async () => {
        const store = await opened();
        const use = (await taken(store, 'a')) as UseTaken;
        await store.distrust('some-other-epoch');
        expect(await taken(store, 'a')).toEqual(use);
      });

      it('is not undone by a late word about an epoch before', async () => {
        const store = await opened();
        const first = (await taken(store, 'a')) as UseTaken;
        await store.distrust(first.epoch);
        const second = (await persistently(store, 'a')) as UseTaken;
        await harness.stall();
        await store.distrust(second.epoch);
        await store.distrust(first.epoch);
        await harness.resume();
        expect((await persistently(store, 'a'))?.epoch).not.toBe(second.epoch);
      });

      it('rebuilds once when two replicas distrust the same epoch', async () => {
        const [one, two] = [await opened(), await opened()];
        const { epoch } = (await taken(one, 'a')) as UseTaken;
        await one.distrust(epoch);
        const rebuilt = (await persistently(one, 'b')) as UseTaken;
        await two.distrust(epoch);
        expect(await persistently(two, 'b')).toEqual(rebuilt);
        expect(await taken(one, 'b')).toEqual(rebuilt);
      });
    });

    describe('closed for good', () => {
      it('answers unavailable', async () => {
        const store = await opened();
        await store.close();
        expect(await store.take([grant], by('operation'))).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        expect(await countOf(store)).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        expect(await store.whenOpen(OPEN_WITHIN_MS)).toBe(false);
      });
    });
  });
