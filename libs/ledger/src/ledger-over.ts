import {
  LedgerRecordMessage,
  type LedgerRecord,
  type Result,
  type Unavailable,
  type UseClaim,
  UseClaimMessage,
  err,
  ok,
  unavailable,
} from '@sharedos/contracts';
import { operationSubject, useOfSubject, useSubject } from './ledger-names.ts';
import type { ClaimRefusal, Ledger, LedgerClaim, OperationHistory, OperationKey, SpentUseClaim, UseRefusal } from './ledger.ts';
import { operationClaim } from './operation-claim.ts';
import type { RecordLog, StoredRecord } from './record-log.ts';
import { decodeLedgerRecord, decodeUseClaim, encodeRecord } from './records.ts';
import { type SettledWrites, settledWrites } from './settled-writes.ts';

export interface LedgerOptions {
  /** How long an unacknowledged write is looked for. Default 2 000. */
  readonly readBackMs?: number;
  /** For reading all records of one operation. Default 5 000. */
  readonly readTimeoutMs?: number;
}

const READ_BACK_MS = 2_000;
const READ_TIMEOUT_MS = 5_000;
const CLOSED = 'the ledger was closed';

/** The ledger's rules over any log of records. */
export const ledgerOver = (log: RecordLog, { readBackMs = READ_BACK_MS, readTimeoutMs = READ_TIMEOUT_MS }: LedgerOptions = {}): Ledger => {
  let closed = false;
  const settling = new Set<Promise<unknown>>();
  const writes = untilClosed(settledWrites(log, readBackMs), settling, () => closed);

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

  return {
    claim: async (key: OperationKey, record: LedgerRecord): Promise<Result<LedgerClaim, ClaimRefusal>> => {
      const natsSubject = operationSubject(key);
      const written = await writes.write(natsSubject, encodeRecord(LedgerRecordMessage, record), 0);
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

    resume: (key, history) => operationClaim(writes, key, operationSubject(key), history.revision),

    claimUse: async (namespaceId: string, use: UseClaim): Promise<Result<void, UseRefusal>> => {
      const natsSubject = useSubject(namespaceId, use);
      const written = await writes.write(natsSubject, encodeRecord(UseClaimMessage, use), 0);
      switch (written.kind) {
        case 'stored':
          return ok(undefined);
        case 'moved': {
          const holder = holderOf(written.by ?? (await log.read(natsSubject, 0, readTimeoutMs)));
          if (!holder.ok) return holder;
          return holder.value.operation === use.operation ? ok(undefined) : err({ kind: 'taken', by: holder.value });
        }
        case 'unknown':
          return unavailable(written.reason);
        default:
          return err({ kind: written.kind });
      }
    },

    uses: async () => {
      if (closed) return unavailable(CLOSED);
      const stored = await log.readUses();
      if (!stored.ok) return stored;
      const uses: SpentUseClaim[] = [];
      for (const record of stored.value) {
        const use = spentUse(record);
        if (!use.ok) return use;
        uses.push(use.value);
      }
      return ok(uses);
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

const holderOf = (found: readonly StoredRecord[] | Result<readonly StoredRecord[], Unavailable>): Result<UseClaim, Unavailable> => {
  const stored = 'ok' in found ? found : ok(found);
  if (!stored.ok) return stored;
  const [first] = stored.value;
  if (first === undefined) return unavailable('the use was claimed, and its claim cannot be seen yet');
  const use = spentUse(first);
  return use.ok ? ok(use.value.use) : use;
};

/** A claimed use, whose subject and body must say the same. */
const spentUse = (record: StoredRecord): Result<SpentUseClaim, Unavailable> => {
  const named = useOfSubject(record.natsSubject);
  const use = decodeUseClaim(record);
  if (!use.ok) return unavailable(`use ${record.sequence} of the ledger cannot be read: ${use.error}`);
  if (named === undefined || named.grantId !== use.value.grantId || named.ordinal !== use.value.ordinal) {
    return unavailable(`use ${record.sequence} of the ledger is not the one its subject names`);
  }
  return ok({ namespaceId: named.namespaceId, use: use.value });
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
