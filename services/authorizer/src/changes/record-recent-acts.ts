import { type AuditEvent, type Instant, instantOf, revisionOf } from '@sharedos/contracts';
import type { EventStore, Position } from '@sharedos/event-store';
import type { ActRecords } from './act-records.ts';
import { changeRecord } from './change-record.ts';

const AT_ONCE = 32;

/** Records being written once more. */
export interface RecordingAgain {
  /** Settles when all were written or are kept to be; how many there were. */
  readonly written: Promise<number>;
  /** Gives up what was not read yet. */
  close(): Promise<void>;
}

/**
 * Writes the records of what was changed lately once more. The process that changed it may have ended before it could, and nobody
 * can tell: a record written twice is folded by its id, one never written would be missed.
 *
 * @param from Where to read the log from, at or before the first event of the time in question.
 * @param upTo What is above it was changed while this process was there to record it.
 */
export const recordRecentActs = (
  { store, records }: { readonly store: EventStore; readonly records: Pick<ActRecords, 'write'> },
  { since, from, upTo }: { readonly since: Instant; readonly from: Position; readonly upTo: Position },
): RecordingAgain => {
  if (from >= upTo) return { written: Promise.resolve(0), close: async () => undefined };
  const recent: AuditEvent[] = [];
  const { promise: read, resolve: stop } = Promise.withResolvers<void>();
  const subscription = store.subscribe(from, {
    event: ({ stream, event, position }) => {
      if (position > upTo || (instantOf(event.at) ?? 0) < since) return;
      const record = changeRecord({ stream, event, revision: revisionOf(store.storeId, position) });
      if (record !== undefined) recent.push(record);
    },
    // The fold names what it cannot read, and is not trusted then.
    parked: () => undefined,
    alive: () => undefined,
    reached: (position) => {
      if (position >= upTo) stop();
    },
  });
  const written = read.then(async () => {
    await subscription.close();
    for (let first = 0; first < recent.length; first += AT_ONCE)
      await Promise.all(recent.slice(first, first + AT_ONCE).map((record) => records.write(record)));
    return recent.length;
  });
  return {
    written,
    close: async () => {
      stop();
      await written;
    },
  };
};
