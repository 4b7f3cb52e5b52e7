import { encodeName } from '@sharedos/contracts';
import { type CounterSession, type GrantCounter, LOST, SessionLost } from './counter-session.ts';
import { type RebuildOptions, type RebuiltUsageStore, rebuiltUsageStore } from './rebuilt-store.ts';
import type { BoundedGrant } from './usage-store.ts';

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
  const connected = new Set<(lost: SessionLost) => void>();

  const wipe = (): void => {
    epochInForce = undefined;
    candidates.clear();
    counters.clear();
  };

  const nameOf = (epoch: string, grant: { readonly namespaceId: string; readonly grantId: string }): string =>
    encodeName(epoch, grant.namespaceId, grant.grantId);

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
          operations: new Map(counter.operations),
        });
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
        for (const name of counters.keys()) if (!name.startsWith(`${epoch}.`)) counters.delete(name);
      },
      take: async (epoch: string, grant: BoundedGrant, operation: string) => {
        alive();
        if (epochInForce !== epoch) return LOST;
        const name = nameOf(epoch, grant);
        const counter = counters.get(name) ?? { highest: 0, free: [], operations: new Map<string, number>() };
        const known = counter.operations.get(operation);
        if (known !== undefined) return known;
        const ordinal = counter.free.shift() ?? (counter.highest < grant.max ? (counter.highest += 1) : undefined);
        if (ordinal === undefined) return undefined;
        counter.operations.set(operation, ordinal);
        counters.set(name, counter);
        return ordinal;
      },
      count: async (epoch: string, grant: BoundedGrant) => {
        alive();
        if (epochInForce !== epoch) return LOST;
        const counter = counters.get(nameOf(epoch, grant));
        return counter === undefined ? 0 : counter.highest - counter.free.length;
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

/** A usage store in this process. Stores given the same `memory` count together. */
export const memoryUsageStore = ({
  memory = counterMemory(),
  ...options
}: RebuildOptions & { readonly memory?: CounterMemory }): RebuiltUsageStore =>
  rebuiltUsageStore(() => memory.connect(), { settleMs: 0, ...options });
