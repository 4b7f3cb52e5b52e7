import { setTimeout } from 'node:timers/promises';
import { type HeldUse, type Result, type Unavailable, ok, unavailable } from '@sharedos/contracts';
import { type CounterSession, LOST, SessionLost, TURN_OVER } from './counter-session.ts';
import { countersOf } from './spent-counters.ts';
import type { BoundedGrant, Budgets, Reservation, SpentUses, Taken, TurnUses, UsageState, UsageStore } from './usage-store.ts';

export interface RebuildOptions {
  readonly spentUses: SpentUses;
  /** Hears every change, one call at a time. */
  readonly onState?: (state: UsageState) => void;
  /**
   * How long a rebuild waits before it reads the ledger, so that claims of ordinals handed out just before the memory was lost
   * are in it. Only a kindness: what is claimed later is handed out twice, and the ledger's claim decides.
   */
  readonly settleMs?: number;
  readonly backoff?: { readonly firstMs: number; readonly maxMs: number };
}

/** A usage store that opens, closes and rebuilds itself. It starts closed. */
export interface RebuiltUsageStore extends UsageStore {
  /** Waits until the store answers. @returns `false` when it does not within `timeoutMs`, or was closed for good. */
  whenOpen(timeoutMs: number): Promise<boolean>;
}

const SETTLE_MS = 50;
const BACKOFF = { firstMs: 50, maxMs: 2_000 };
const PROGRESS_EVERY = 1_000;
/** Grants restored at a time, so that a rebuild is bound by the round trip neither of one nor of all. */
const FILLS_IN_FLIGHT = 32;

/**
 * Keeps a usage store over sessions with a memory that may be lost at any moment. Any doubt closes the store at once; one loop
 * in the background then connects anew, and adopts the epoch in force or rebuilds one from the spent uses.
 */
export const rebuiltUsageStore = (connect: () => Promise<CounterSession>, options: RebuildOptions): RebuiltUsageStore => {
  const { spentUses, settleMs = SETTLE_MS, backoff = BACKOFF } = options;
  const stop = new AbortController();
  const waiting = new Set<(isOpen: boolean) => void>();
  let open: { readonly session: CounterSession; readonly epoch: string } | undefined;
  let closedBecause = 'not opened yet';
  let lastEpoch: string | undefined;
  let distrusted: string | undefined;

  const tell = (state: UsageState): void => options.onState?.(state);

  const shut = (held: typeof open, lost: { readonly reason: string; readonly memoryInDoubt: boolean }): void => {
    if (held === undefined || open !== held) return;
    open = undefined;
    closedBecause = lost.reason;
    if (lost.memoryInDoubt) distrusted = held.epoch;
    held.session.close();
    tell({ state: 'closed', epoch: held.epoch, reason: lost.reason });
    recovery = recover();
  };

  const recover = async (): Promise<void> => {
    for (let attempt = 0; !stop.signal.aborted; attempt += 1) {
      if (await attemptToOpen()) return;
      // Full jitter: replicas that lost the same server do not return to it together.
      const ceilingMs = Math.min(backoff.maxMs, backoff.firstMs * 2 ** Math.min(attempt, 16));
      await setTimeout(Math.random() * ceilingMs, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  };

  const attemptToOpen = async (): Promise<boolean> => {
    let session: CounterSession | undefined;
    try {
      session = await connect();
      if (distrusted !== undefined) await session.revoke(distrusted);
      const epoch = (await session.epoch()) ?? (await rebuild(session));
      if (epoch !== undefined && epoch !== distrusted && !stop.signal.aborted) {
        opened(session, epoch);
        return true;
      }
      closedBecause = 'another replica changed the counters during the rebuild';
    } catch (error) {
      // Whatever it was, a loop that ended here would leave the counters closed for good.
      closedBecause = error instanceof Error ? error.message : String(error);
    }
    session?.close();
    if (!stop.signal.aborted) tell({ state: 'closed', reason: closedBecause });
    return false;
  };

  const opened = (session: CounterSession, epoch: string): void => {
    const held = { session, epoch };
    open = held;
    lastEpoch = epoch;
    tell({ state: 'open', epoch, reason: 'counting' });
    session.onLost((lost) => shut(held, { reason: lost.message, memoryInDoubt: lost.memoryInDoubt }));
    for (const answer of waiting) answer(true);
    waiting.clear();
  };

  /** @returns the epoch in force afterwards, ours or a rival's; `undefined` when the rebuild came to nothing. */
  const rebuild = async (session: CounterSession): Promise<string | undefined> => {
    const candidate = await session.beginRebuild();
    if (candidate === undefined) return session.epoch();
    let restored = 0;
    tell({ state: 'rebuilding', epoch: candidate, uses: restored, reason: closedBecause });
    await setTimeout(settleMs, undefined, { signal: stop.signal }).catch(() => undefined);
    const uses = await spentUses();
    if (!uses.ok) throw new SessionLost(`the spent uses could not be read: ${uses.error.reason}`);
    let shown = 0;
    for await (const counters of inBatches(countersOf(uses.value), FILLS_IN_FLIGHT)) {
      const filled = await Promise.all(counters.map((counter) => session.fill(candidate, counter)));
      if (filled.includes(false) || stop.signal.aborted) return session.epoch();
      for (const counter of counters) restored += counter.operations.length;
      if (restored - shown < PROGRESS_EVERY) continue;
      shown = restored;
      tell({ state: 'rebuilding', epoch: candidate, uses: restored, reason: closedBecause });
    }
    const installed = await session.install(candidate);
    if (installed === candidate) await session.sweep(candidate);
    return installed;
  };

  /** Runs one step under the open epoch. A step that finds it lost, or finds nothing, closes the store. */
  const step = async <T>(
    run: (session: CounterSession, epoch: string) => Promise<T | typeof LOST>,
  ): Promise<Result<{ value: T; epoch: string }, Unavailable>> => {
    const held = open;
    if (held === undefined) return unavailable(`the counters are closed: ${closedBecause}`);
    try {
      const value = await run(held.session, held.epoch);
      if (value !== LOST) return ok({ value, epoch: held.epoch });
      shut(held, { reason: 'the epoch is no longer in force', memoryInDoubt: false });
      return unavailable('the counters lost their epoch');
    } catch (error) {
      if (!(error instanceof SessionLost)) throw error;
      shut(held, { reason: error.message, memoryInDoubt: error.memoryInDoubt });
      return unavailable(`the counters did not answer: ${error.message}`);
    }
  };

  let recovery = recover();

  return {
    count: async (budgets: Budgets) => {
      const counted = await step((session, epoch) => session.count(epoch, budgets));
      return counted.ok ? ok(counted.value.value) : counted;
    },

    take: async (budgets: Budgets, by: Reservation): Promise<Result<Taken, Unavailable>> => {
      const taken = await step((session, epoch) => session.take(epoch, budgets, by));
      if (!taken.ok) return taken;
      const { value, epoch } = taken.value;
      if (value === TURN_OVER) return unavailable('the turn is over');
      if ('exhausted' in value) return ok({ kind: 'exhausted', grantId: (budgets[value.exhausted] as BoundedGrant).grantId });
      const uses = value.map((ordinal, at) => ({ grantId: (budgets[at] as BoundedGrant).grantId, ordinal, epoch }));
      return ok({ kind: 'taken', uses });
    },

    held: async (namespaceId: string, turn: string): Promise<Result<TurnUses, Unavailable>> => {
      const held = await step((session, epoch) => session.held(epoch, namespaceId, turn));
      return held.ok ? ok({ epoch: held.value.epoch, uses: held.value.value }) : held;
    },

    release: async (namespaceId: string, turn: string, epoch: string, uses: readonly HeldUse[]) => {
      for (const use of uses) {
        const released = await step(async (session, inForce) =>
          // Counters rebuilt meanwhile were rebuilt from a ledger that says released.
          inForce === epoch ? session.release(epoch, { namespaceId, grantId: use.grantId }, turn, use) : undefined,
        );
        if (!released.ok) return released;
      }
      return ok(undefined);
    },

    distrust: async (epoch: string) => {
      if (epoch !== lastEpoch) return;
      // Also while closed: the loop may be about to adopt this very epoch.
      distrusted = epoch;
      if (open?.epoch === epoch) shut(open, { reason: 'the counters contradict the ledger', memoryInDoubt: true });
    },

    whenOpen: async (timeoutMs: number) => {
      if (open !== undefined) return true;
      if (stop.signal.aborted) return false;
      const given = AbortSignal.timeout(timeoutMs);
      return new Promise<boolean>((resolve) => {
        const answer = (isOpen: boolean): void => {
          waiting.delete(answer);
          resolve(isOpen);
        };
        waiting.add(answer);
        given.addEventListener('abort', () => answer(false), { once: true });
      });
    },

    close: async () => {
      stop.abort();
      open?.session.close();
      open = undefined;
      closedBecause = 'the store was closed';
      for (const answer of waiting) answer(false);
      await recovery;
    },
  };
};

async function* inBatches<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<readonly T[]> {
  let batch: T[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
