import { type ExpiredRecord, type Instant, type LedgerRecord, type Result, type Unavailable, ok, timestampOf } from '@sharedos/contracts';
import { ALL_EXECUTIONS } from './ledger-names.ts';
import type { RecordLog, StoredRecord } from './record-log.ts';
import { decodeLedgerRecord, encodeLedgerRecord } from './records.ts';
import type { SettledWrites } from './settled-writes.ts';

/** Turns that are looked at for each that is done something to. */
const LOOKED_AT_FACTOR = 4;

/** Where a pass over the turns stands, from call to call. What it passed by is looked at again in the next pass. */
interface Pass {
  after: number;
}

type Done<T> = Result<T & { readonly more: boolean }, Unavailable>;

/** Follows the end of every turn that ended long ago with a record that it has expired, from the oldest record on. */
export const turnExpiry = (log: RecordLog, writes: SettledWrites, timeoutMs: number) => {
  const pass: Pass = { after: 0 };
  // Up to there all have expired: a pass need not begin before.
  let done = 0;
  let isUnbroken = true;

  return async (endedBefore: Instant, turnsMax: number): Promise<Done<{ readonly expired: number }>> => {
    let expired = 0;
    const walk = { pass, storedBefore: endedBefore, turnsMax: turnsMax * LOOKED_AT_FACTOR, timeoutMs };
    const more = await eachTurn(log, walk, async ({ first, last, record }) => {
      const isDue = isOver(record) && last.storedAt < endedBefore;
      const tombstone = isDue ? encodeLedgerRecord(expiredRecord(last, record, recordOf(first))) : undefined;
      const written = tombstone === undefined ? undefined : await writes.write(last.natsSubject, tombstone, last.sequence);
      // Where somebody wrote to it this moment, or there is no room, the next pass finds it again.
      const isExpired = record.type === 'expired' || written?.kind === 'stored';
      if (written?.kind === 'stored') expired += 1;
      isUnbroken &&= isExpired;
      if (isUnbroken) done = first.sequence;
      return ok(expired < turnsMax);
    });
    if (!more.ok) return more;
    if (!more.value) {
      pass.after = done;
      isUnbroken = true;
    }
    return ok({ expired, more: more.value });
  };
};

/** Takes out what the record of expiry stands for, and, when that is old too, the turn. */
export const turnRemoval = (log: RecordLog, timeoutMs: number) => {
  const pass: Pass = { after: 0 };

  return async (expiredBefore: Instant, turnsMax: number): Promise<Done<{ readonly emptied: number; readonly forgotten: number }>> => {
    const published = await log.publishedUpTo(timeoutMs);
    if (!published.ok) return published;
    let forgotten = 0;
    let emptied = 0;
    const walk = { pass, storedBefore: Infinity, turnsMax: turnsMax * LOOKED_AT_FACTOR, timeoutMs };
    const more = await eachTurn(log, walk, async ({ first, last, record }) => {
      if (record.type !== 'expired' || last.sequence > published.value) return ok(true);
      const isOld = last.storedAt < expiredBefore;
      if (!isOld && first.sequence === last.sequence) return ok(true);
      const removed = await log.forget(last.natsSubject, isOld ? 0 : 1, timeoutMs);
      if (!removed.ok) return removed;
      if (isOld) forgotten += 1;
      else emptied += 1;
      return ok(forgotten + emptied < turnsMax);
    });
    if (!more.ok) return more;
    if (!more.value) pass.after = 0;
    return ok({ emptied, forgotten, more: more.value });
  };
};

interface Walk {
  readonly pass: Pass;
  readonly storedBefore: Instant;
  readonly turnsMax: number;
  readonly timeoutMs: number;
}

interface Turn {
  readonly first: StoredRecord;
  readonly last: StoredRecord;
  readonly record: LedgerRecord;
}

/** Visits turns in the order of their oldest records. @returns Whether it stopped before the last of them. */
const eachTurn = async (
  log: RecordLog,
  { pass, storedBefore, turnsMax, timeoutMs }: Walk,
  visit: (turn: Turn) => Promise<Result<boolean, Unavailable>>,
): Promise<Result<boolean, Unavailable>> => {
  const seen = new Set<string>();
  while (seen.size < turnsMax) {
    const next = await log.next(ALL_EXECUTIONS, pass.after, timeoutMs);
    if (!next.ok) return next;
    const first = next.value;
    if (first === undefined || first.storedAt >= storedBefore) return ok(false);
    pass.after = first.sequence;
    if (seen.has(first.natsSubject)) continue;
    seen.add(first.natsSubject);
    const last = await log.last(first.natsSubject, timeoutMs);
    if (!last.ok) return last;
    const record = last.value === undefined ? undefined : recordOf(last.value);
    if (last.value === undefined || record === undefined) continue;
    const goOn = await visit({ first, last: last.value, record });
    if (!goOn.ok) return goOn;
    if (!goOn.value) return ok(true);
  }
  return ok(true);
};

const recordOf = (stored: StoredRecord): LedgerRecord | undefined => {
  const record = decodeLedgerRecord(stored);
  return record.ok ? record.value : undefined;
};

const isOver = (record: LedgerRecord): boolean =>
  record.type === 'ended' || record.type === 'resolved' || (record.type === 'settled' && record.late === true);

const expiredRecord = ({ storedAt }: StoredRecord, { at }: LedgerRecord, first: LedgerRecord | undefined): ExpiredRecord => {
  const record = { type: 'expired', at: timestampOf(storedAt), endedAt: at } as const;
  if (first?.type !== 'claimed') return record;
  const { fingerprint, requester, operationId, traceId, agent } = first;
  return { ...record, claim: { fingerprint, requester, operationId, traceId, ...(agent === undefined ? {} : { agent }) } };
};
