import { connectBus } from '@sharedos/bus';
import { GrantEvent, addressKey } from '@sharedos/contracts';
import { type EventStore, type Position, type Recorded, eventStoreDbEventStore, jetStreamEventStore } from '@sharedos/event-store';
import { type LocalStack, waitFor } from '@sharedos/testing';
import type { OpenedLog } from './scene.ts';

/** What the log says of one grant. */
export interface GrantFact {
  readonly holder: string;
  readonly parent: string | undefined;
  readonly issuedAt: Position;
  /** Infinity while it stands. */
  revokedAt: Position;
}

/** What the log of one namespace says of its grants: read from its beginning when a run is over, past every service. */
export type LogFacts = ReadonlyMap<string, GrantFact>;

const READ_DEADLINE_MS = 120_000;

export const readLogFacts = async (store: EventStore, namespaceId: string): Promise<LogFacts> => {
  const facts = new Map<string, GrantFact>();
  const end = await waitFor(
    'the end of the log',
    async () => {
      const barrier = await store.barrier(2_000);
      return barrier.ok ? { position: barrier.value } : undefined;
    },
    READ_DEADLINE_MS,
  );
  let reached = 0;
  let parked: string | undefined;
  const feed = store.subscribe(0, {
    event: (recorded) => {
      if (recorded.stream.category === 'grant' && recorded.stream.namespaceId === namespaceId) note(facts, recorded);
    },
    parked: ({ why }) => (parked = why),
    reached: (position) => (reached = position),
    alive: () => undefined,
  });
  await waitFor('the whole log', () => reached >= end.position || parked !== undefined, READ_DEADLINE_MS);
  await feed.close();
  if (parked !== undefined) throw new Error(`an event of the log cannot be read: ${parked}`);
  return facts;
};

const note = (facts: Map<string, GrantFact>, { event, position }: Recorded): void => {
  const read = GrantEvent.parse({ ...event.data, type: event.type });
  if (read.type === 'GrantIssued') {
    const { id, subject, parentGrantId } = read.grant;
    // An id is never used twice: whatever came second counts for nothing.
    if (!facts.has(id)) facts.set(id, { holder: addressKey(subject), parent: parentGrantId, issuedAt: position, revokedAt: Infinity });
    return;
  }
  if (read.type !== 'GrantRevoked') return;
  const fact = facts.get(read.grantId);
  if (fact !== undefined) fact.revokedAt = Math.min(fact.revokedAt, position);
};

/** Whether a grant and all that it was derived from stand at a position. */
export const standsAt = (facts: LogFacts, grantId: string, position: Position): boolean => {
  for (let id: string | undefined = grantId; id !== undefined;) {
    const fact: GrantFact | undefined = facts.get(id);
    if (fact === undefined || fact.issuedAt > position || fact.revokedAt <= position) return false;
    id = fact.parent;
  }
  return true;
};

/** @param natsUrl Where JetStream is, when it is not the broker of the stack. */
export const openLogOf = async ({ credentials, eventStore, natsUrl: own }: LocalStack, natsUrl = own): Promise<OpenedLog> => {
  const { user, password, inboxPrefix } = credentials.service('authorizer');
  const bus = await connectBus({ servers: natsUrl, user, pass: password, name: 'judge', inboxPrefix });
  const settings = eventStore?.settings;
  const opened =
    settings === undefined
      ? await jetStreamEventStore({ bus })
      : await eventStoreDbEventStore({
          connectionString: settings['SHAREDOS_EVENTSTORE_URL'] ?? '',
          prefix: settings['SHAREDOS_EVENTSTORE_PREFIX'] ?? '',
        });
  if (!opened.ok) {
    await bus.close();
    throw new Error(`the log cannot be read: ${opened.error.reason}`);
  }
  const store = opened.value;
  return {
    store,
    close: async () => {
      await store.close();
      await bus.close();
    },
  };
};
