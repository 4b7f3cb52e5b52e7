import { randomUUID } from 'node:crypto';
import { serveRoutes, storeAudit } from '@sharedos/bus';
import { ok, unavailable } from '@sharedos/contracts';
import { type EventStore, type LogListener, eventStoreDbEventStore, jetStreamEventStore } from '@sharedos/event-store';
import { type LocalStack, waitFor } from '@sharedos/testing';
import { counterMemory, memoryUsageStore } from '@sharedos/usage';
import { AuthorityFold } from '../../services/authorizer/src/fold/authority-fold.ts';
import { composeAuthorizer } from '../../services/authorizer/src/compose.ts';
import { TurnTokens } from '../../services/authorizer/src/turns/turn-token.ts';
import { connectAs } from './evidence.ts';

const DEADLINE_MS = 4_000;
const LAG_EVENTS = 8;

/**
 * A further replica of the authorizer, the same code over an event store that breaks its promise: it sees the log some records
 * late, and its barrier asks nobody. What a test of staleness is worth is whether it catches this one.
 */
export const startStaleAuthorizer = async (stack: LocalStack, tokenSecret: string): Promise<{ stop(): Promise<void> }> => {
  const bus = await connectAs(stack, 'authorizer');
  const onDefect = (error: unknown): void => {
    throw error;
  };
  const log = stack.eventStore?.settings;
  const opened =
    log === undefined
      ? await jetStreamEventStore({ bus, onDefect })
      : await eventStoreDbEventStore({
          connectionString: log['SHAREDOS_EVENTSTORE_URL'] ?? '',
          prefix: log['SHAREDOS_EVENTSTORE_PREFIX'] ?? '',
          onDefect,
        });
  if (!opened.ok) throw new Error(`the log cannot be reached: ${opened.error.reason}`);
  const store = staleStore(opened.value);
  const fold = new AuthorityFold(() => undefined);
  fold.follow(store);
  const usage = memoryUsageStore({ memory: counterMemory(), spentUses: async () => unavailable('this replica counts nothing') });
  const routes = composeAuthorizer({
    store,
    fold,
    usage,
    tokens: new TurnTokens(tokenSecret),
    audit: storeAudit(bus, DEADLINE_MS, () => undefined),
    clock: Date.now,
    limits: { deadlineMs: DEADLINE_MS, turnGraceMs: 30_000 },
  });
  await waitFor('the stale replica to follow the log', () => fold.trouble === undefined, 10_000);
  const served = await serveRoutes(bus, {
    service: 'authorizer',
    version: '0.0.0',
    instance: `stale-${randomUUID()}`,
    routes,
    concurrencyMax: 64,
    onDefect,
  });
  return {
    stop: async () => {
      await served.stop({ graceMs: 1_000 });
      await fold.close();
      await usage.close();
      await store.close();
      await bus.close();
    },
  };
};

const staleStore = (store: EventStore): EventStore => ({
  ...store,
  storeId: store.storeId,
  barrier: async () => ok(0),
  subscribe: (from, listener) => store.subscribe(from, lagging(listener)),
});

/** Holds back what was heard until {@link LAG_EVENTS} more events have come: positions say nothing of how many lie between them. */
const lagging = (listener: LogListener): LogListener => {
  const held: { readonly after: number; readonly tell: () => void }[] = [];
  let events = 0;
  return {
    alive: (isAlive) => listener.alive(isAlive),
    parked: (parked) => listener.parked(parked),
    event: (recorded) => {
      events += 1;
      held.push({ after: events, tell: () => listener.event(recorded) });
    },
    reached: (position) => {
      held.push({ after: events, tell: () => listener.reached(position) });
      while (held[0] !== undefined && held[0].after <= events - LAG_EVENTS) held.shift()?.tell();
    },
  };
};
