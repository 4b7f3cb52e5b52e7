import { type HeldUse, encodeName } from '@sharedos/contracts';
import { type CounterSession, type GrantCounter, LOST, SessionLost, TURN_OVER } from './counter-session.ts';
import { type RebuildOptions, type RebuiltUsageStore, rebuiltUsageStore } from './rebuilt-store.ts';
import { type BoundedGrant, type Budgets, HELD_MAX, type Reservation } from './usage-store.ts';

interface Counter {
  highest: number;
  /** Lowest first. */
  free: number[];
  readonly operations: Map<string, number>;
}

/**
 * A memory of counters inside this process, shared by any number of stores, that can be lost like a server's: for tests, the
 * simulation, and a host of one process.
 */
export interface CounterMemory {
  /** Forgets everything, as FLUSHALL does. */
  wipe(): void;
  /** Ends every connection and forgets everything, as a crash and a restart do. */
  restart(): void;
  /** Answers nothing until `resume`. */
  stall(): void;
  resume(): void;
  connect(): Promise<CounterSession>;
}

export const counterMemory = (): CounterMemory => {
  let epochInForce: string | undefined;
  let life = 1;
  let rebuilds = 0;
  let stalled = false;
  const candidates = new Set<string>();
  const counters = new Map<string, Counter>();
  const turns = new Map<string, Map<string, HeldUse>>();
  const over = new Set<string>();
  const connected = new Set<(lost: SessionLost) => void>();

  const wipe = (): void => {
    epochInForce = undefined;
    candidates.clear();
    counters.clear();
    turns.clear();
    over.clear();
  };

  const nameOf = (epoch: string, grant: Omit<BoundedGrant, 'max'>): string => encodeName(epoch, grant.namespaceId, grant.grantId);
  const hold = (epoch: string, namespaceId: string, turn: string, use: HeldUse): void => {
    const name = encodeName(epoch, namespaceId, turn);
    const held = turns.get(name) ?? new Map<string, HeldUse>();
    turns.set(name, held.set(heldName(use), use));
  };
  const freshCounter = (): Counter => ({ highest: 0, free: [], operations: new Map() });

  const connect = async (): Promise<CounterSession> => {
    if (stalled) throw new SessionLost('the memory does not answer');
    let lost: SessionLost | undefined;
    let listener: ((lost: SessionLost) => void) | undefined;
    const end = (reason: SessionLost): void => {
      connected.delete(end);
      lost = reason;
      listener?.(reason);
    };
    connected.add(end);

    const alive = (): void => {
      if (lost !== undefined) throw lost;
      if (stalled) throw new SessionLost('the memory does not answer');
    };

    return {
      epoch: async () => {
        alive();
        return epochInForce;
      },
      revoke: async (epoch) => {
        alive();
        if (epochInForce === epoch) epochInForce = undefined;
      },
      beginRebuild: async () => {
        alive();
        if (epochInForce !== undefined) return undefined;
        rebuilds += 1;
        const candidate = `memory-${life}-${rebuilds}`;
        candidates.add(candidate);
        return candidate;
      },
      fill: async (candidate: string, counter: GrantCounter) => {
        alive();
        if (!candidates.has(candidate)) return false;
        counters.set(nameOf(candidate, counter), {
          highest: counter.highest,
          free: [...counter.free],
          operations: new Map(counter.operations.map(([operation, ordinal]) => [operation, ordinal])),
        });
        for (const [operation, ordinal, turn] of counter.operations)
          if (turn !== undefined) hold(candidate, counter.namespaceId, turn, { grantId: counter.grantId, ordinal, operation });
        return true;
      },
      install: async (candidate) => {
        alive();
        if (epochInForce !== undefined || !candidates.has(candidate)) return epochInForce;
        epochInForce = candidate;
        candidates.clear();
        return epochInForce;
      },
      sweep: async (epoch) => {
        alive();
        if (epochInForce !== epoch) return;
        for (const old of [counters, turns]) for (const name of old.keys()) if (!name.startsWith(`${epoch}.`)) old.delete(name);
      },
      take: async (epoch: string, budgets: Budgets, { operation, turn }: Reservation) => {
        alive();
        if (epochInForce !== epoch) return LOST;
        if (over.has(encodeName(epoch, budgets[0].namespaceId, turn))) return TURN_OVER;
        const of = budgets.map((grant) => ({ ...grant, counter: counters.get(nameOf(epoch, grant)) ?? freshCounter() }));
        const exhausted = of.findIndex(
          ({ counter, max }) => !counter.operations.has(operation) && counter.free.length === 0 && counter.highest >= max,
        );
        if (exhausted >= 0) return { exhausted };
        return of.map(({ counter, ...grant }) => {
          const known = counter.operations.get(operation);
          if (known !== undefined) return known;
          const ordinal = counter.free.shift() ?? (counter.highest += 1);
          counter.operations.set(operation, ordinal);
          counters.set(nameOf(epoch, grant), counter);
          hold(epoch, grant.namespaceId, turn, { grantId: grant.grantId, ordinal, operation });
          return ordinal;
        });
      },
      count: async (epoch: string, budgets: Budgets) => {
        alive();
        if (epochInForce !== epoch) return LOST;
        return budgets.map((grant) => {
          const counter = counters.get(nameOf(epoch, grant));
          return counter === undefined ? 0 : counter.highest - counter.free.length;
        });
      },
      held: async (epoch: string, namespaceId: string, turn: string) => {
        alive();
        if (epochInForce !== epoch) return LOST;
        over.add(encodeName(epoch, namespaceId, turn));
        return [...(turns.get(encodeName(epoch, namespaceId, turn))?.values() ?? [])].slice(0, HELD_MAX);
      },
      release: async (epoch: string, grant, turn: string, { ordinal, operation }: HeldUse) => {
        alive();
        if (epochInForce !== epoch) return LOST;
        const counter = counters.get(nameOf(epoch, grant));
        if (counter?.operations.get(operation) === ordinal) {
          counter.operations.delete(operation);
          counter.free = [...counter.free, ordinal].sort((a, b) => a - b);
        }
        turns.get(encodeName(epoch, grant.namespaceId, turn))?.delete(heldName({ grantId: grant.grantId, operation }));
        return undefined;
      },
      onLost: (told) => {
        listener = told;
        if (lost !== undefined) told(lost);
      },
      close: () => {
        connected.delete(end);
        listener = undefined;
        lost ??= new SessionLost('closed');
      },
    };
  };

  return {
    wipe,
    restart: () => {
      wipe();
      life += 1;
      for (const end of [...connected]) end(new SessionLost('the memory restarted'));
    },
    stall: () => {
      stalled = true;
    },
    resume: () => {
      stalled = false;
    },
    connect,
  };
};

/** JSON escapes a lone surrogate, which an operation may have and a name may not. */
const heldName = ({ grantId, operation }: Pick<HeldUse, 'grantId' | 'operation'>): string => JSON.stringify([grantId, operation]);

/** A usage store in this process. Stores given the same `memory` count together. */
export const memoryUsageStore = ({
  memory = counterMemory(),
  ...options
}: RebuildOptions & { readonly memory?: CounterMemory }): RebuiltUsageStore =>
  rebuiltUsageStore(() => memory.connect(), { settleMs: 0, ...options });
