import { type Instant, instantOf, revisionOf } from '@sharedos/contracts';
import type { EventStore, Position } from '@sharedos/event-store';
import type { ActRecords } from './act-records.ts';
import { changeRecord } from './change-record.ts';

const AT_ONCE = 32;

/**
 * Writes the records of what was changed lately once more. The process that changed it may have ended in between, and nobody can
 * tell: a record written twice is folded by its id, one never written would be missed.
 *
 * @param from Where to read the log from, at or before the first event of the time in question.
 * @param upTo What is above it was changed while this process was there to record it.
 * @returns How many records were written once more, when all of them were.
 */
export const recordRecentActs = async (
  { store, records }: { readonly store: EventStore; readonly records: Pick<ActRecords, 'write'> },
  { since, from, upTo }: { readonly since: Instant; readonly from: Position; readonly upTo: Position },
): Promise<number> => {
  if (from >= upTo) return 0;
  let written = 0;
  let writing: Promise<void>[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const subscription = store.subscribe(from, {
    event: ({ stream, event, position }) => {
      if (position > upTo || (instantOf(event.at) ?? 0) < since) return;
      const record = changeRecord({ stream, event, revision: revisionOf(store.storeId, position) });
      if (record === undefined) return;
      written += 1;
      const before = writing.length >= AT_ONCE ? Promise.all(writing).then(() => undefined) : undefined;
      if (before !== undefined) writing = [];
      writing.push((before ?? Promise.resolve()).then(() => records.write(record)));
    },
    // The fold names what it cannot read, and is not trusted then.
    parked: () => undefined,
    alive: () => undefined,
    reached: (position) => {
      if (position >= upTo) resolve();
    },
  });
  await promise;
  await subscription.close();
  await Promise.all(writing);
  return written;
};
