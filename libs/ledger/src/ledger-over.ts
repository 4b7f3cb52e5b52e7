import {
  type LedgerRecord,
  type Result,
  type Unavailable,
  type UseClaim,
  UseClaimMessage,
  type UseReleased,
  UseReleasedMessage,
  err,
  ok,
  unavailable,
} from '@sharedos/contracts';
import { turnExpiry, turnRemoval } from './expire-turns.ts';
import { operationSubject, placeOfSubject, placeSubject, placesOf, useSubject } from './ledger-names.ts';
import type {
  ClaimRefusal,
  Ledger,
  LedgerClaim,
  LedgerRefusal,
  MarkedOperation,
  OperationHistory,
  OperationKey,
  UseRefusal,
} from './ledger.ts';
import { operationClaim } from './operation-claim.ts';
import type { RecordLog, StoredRecord } from './record-log.ts';
import { type EncodedRecord, decodeLedgerRecord, encodeLedgerRecord, encodeRecord } from './records.ts';
import { type SettledWrites, settledWrites } from './settled-writes.ts';
import { type UseState, foldUse, spentUses } from './use-records.ts';

export interface LedgerOptions {
  /** How long an unacknowledged write is looked for. Default 2 000. */
  readonly readBackMs?: number;
  /** For reading all records of one operation. Default 5 000. */
  readonly readTimeoutMs?: number;
}

const READ_BACK_MS = 2_000;
const READ_TIMEOUT_MS = 5_000;
/** One for each time an ordinal is claimed or given back while it is written here. */
const USE_ATTEMPTS = 8;
const CLOSED = 'the ledger was closed';

/** The ledger's rules over any log of records. */
export const ledgerOver = (log: RecordLog, { readBackMs = READ_BACK_MS, readTimeoutMs = READ_TIMEOUT_MS }: LedgerOptions = {}): Ledger => {
  let closed = false;
  const settling = new Set<Promise<unknown>>();
  const writes = untilClosed(settledWrites(log, readBackMs), settling, () => closed);

  const expire = turnExpiry(log, writes, readTimeoutMs);
  const remove = turnRemoval(log, readTimeoutMs);

  const historyOn = async (natsSubject: string): Promise<Result<OperationHistory | undefined, Unavailable>> => {
    if (closed) return unavailable(CLOSED);
    const stored = await log.read(natsSubject, 0, readTimeoutMs);
    return stored.ok ? historyOf(stored.value) : stored;
  };

  const existing = async (natsSubject: string): Promise<Result<never, ClaimRefusal>> => {
    const history = await historyOn(natsSubject);
    if (!history.ok) return history;
    return history.value === undefined
      ? unavailable('the operation was claimed, and its records cannot be seen yet')
      : err({ kind: 'exists', history: history.value });
  };

  /** Writes the next record of an ordinal where `judge` says so, as it stands; what somebody else wrote meanwhile is judged again. */
  const writeUse = async <Refusal>(
    natsSubject: string,
    record: EncodedRecord,
    judge: (state: UseState) => 'write' | Result<void, Refusal>,
  ): Promise<Result<void, Refusal | LedgerRefusal>> => {
    let expected = 0;
    for (let attempt = 0; attempt < USE_ATTEMPTS; attempt += 1) {
      const written = await writes.write(natsSubject, record, expected);
      if (written.kind === 'stored') return ok(undefined);
      if (written.kind === 'unknown') return unavailable(written.reason);
      if (written.kind !== 'moved') return err({ kind: written.kind });
      const stored = expected === 0 && written.by !== undefined ? ok(written.by) : await log.read(natsSubject, 0, readTimeoutMs);
      const state = stored.ok ? foldUse(stored.value) : stored;
      if (!state.ok) return state;
      const judged = judge(state.value);
      if (judged !== 'write') return judged;
      expected = state.value.end;
    }
    return unavailable('the use changed hands while it was written');
  };

  return {
    claim: async (key: OperationKey, record: LedgerRecord): Promise<Result<LedgerClaim, ClaimRefusal>> => {
      const natsSubject = operationSubject(key);
      const written = await writes.write(natsSubject, encodeLedgerRecord(record), 0);
      switch (written.kind) {
        case 'stored':
          return ok(operationClaim(writes, key, natsSubject, written.sequence));
        case 'moved':
          return existing(natsSubject);
        case 'unknown':
          return unavailable(written.reason);
        default:
          return err({ kind: written.kind });
      }
    },

    read: (key) => historyOn(operationSubject(key)),

    readAt: (place) => historyOn(placeSubject(place)),

    readLast: async (key) => {
      if (closed) return unavailable(CLOSED);
      const stored = await log.last(operationSubject(key), readTimeoutMs);
      return stored.ok ? historyOf(stored.value === undefined ? [] : [stored.value]) : stored;
    },

    operations: async (namespaceId, kind) => {
      if (closed) return unavailable(CLOSED);
      const found = await log.marks(placesOf(namespaceId, kind), readTimeoutMs);
      if (!found.ok) return found;
      const operations = found.value.marks.flatMap(({ natsSubject, mark, storedAt }) => {
        const place = placeOfSubject(natsSubject);
        return place === undefined ? [] : [{ ...place, at: storedAt, state: stateOf(mark) }];
      });
      return ok({ operations, complete: found.value.complete });
    },

    expire: async (endedBefore, turnsMax) => (closed ? unavailable(CLOSED) : expire(endedBefore, turnsMax)),

    forget: async (expiredBefore, turnsMax) => (closed ? unavailable(CLOSED) : remove(expiredBefore, turnsMax)),

    resume: (key, history) => operationClaim(writes, key, operationSubject(key), history.revision),

    claimUse: async (namespaceId: string, use: UseClaim): Promise<Result<void, UseRefusal>> => {
      const natsSubject = useSubject(namespaceId, use);
      return writeUse<UseRefusal>(natsSubject, encodeRecord(UseClaimMessage, use), ({ holder, released }) => {
        if (released.has(use.operation)) return err({ kind: 'released' });
        if (holder === undefined) return 'write';
        return holder.operation === use.operation ? ok(undefined) : err({ kind: 'taken', by: holder });
      });
    },

    releaseUse: async (namespaceId: string, { at, grantId, ordinal, operation }: UseReleased): Promise<Result<void, LedgerRefusal>> => {
      const use = { at, grantId, ordinal, operation };
      return writeUse<LedgerRefusal>(
        useSubject(namespaceId, use),
        encodeRecord(UseReleasedMessage, use),
        // Also where nothing is claimed yet: a claim of this operation that is still on its way must find that it came too late.
        ({ holder, released }) =>
          released.has(operation) || (holder !== undefined && holder.operation !== operation) ? ok(undefined) : 'write',
      );
    },

    uses: async () => {
      if (closed) return unavailable(CLOSED);
      const stored = await log.readUses();
      return stored.ok ? spentUses(stored.value) : stored;
    },

    close: async () => {
      closed = true;
      await Promise.allSettled(settling);
    },
  };
};

const historyOf = (stored: readonly StoredRecord[]): Result<OperationHistory | undefined, Unavailable> => {
  const records: LedgerRecord[] = [];
  for (const record of stored) {
    const decoded = decodeLedgerRecord(record);
    if (!decoded.ok) return unavailable(`record ${record.sequence} of the ledger cannot be read: ${decoded.error}`);
    records.push(decoded.value);
  }
  const [first, ...more] = records;
  return ok(first === undefined ? undefined : { records: [first, ...more], revision: stored.at(-1)?.sequence ?? 0 });
};

/** A record without a mark is read before anything is said of it. */
const stateOf = (mark: string | undefined): MarkedOperation['state'] => {
  switch (mark) {
    case 'ended':
    case 'expired':
      return mark;
    case 'ended.unknown':
    case 'settled.late':
    case 'resolved':
    case undefined:
      return 'perhaps_unknown';
    default:
      return 'running';
  }
};

/** Refuses writes once the ledger is closed, and knows those on their way. */
const untilClosed = (writes: SettledWrites, settling: Set<Promise<unknown>>, isClosed: () => boolean): SettledWrites => ({
  write: async (natsSubject, record, expected) => {
    if (isClosed()) return { kind: 'unknown', reason: CLOSED };
    const writing = writes.write(natsSubject, record, expected);
    settling.add(writing);
    try {
      return await writing;
    } finally {
      settling.delete(writing);
    }
  },
});
