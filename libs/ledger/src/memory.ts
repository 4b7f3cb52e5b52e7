import { ok, unavailable } from '@sharedos/contracts';
import { useOfSubject } from './ledger-names.ts';
import { type LedgerOptions, ledgerOver } from './ledger-over.ts';
import type { Ledger } from './ledger.ts';
import type { RecordLog, RecordWrite, StoredRecord } from './record-log.ts';

const STALLED = 'the log does not answer';

/** A log of records in this process, shared by any number of ledgers: for tests, the simulation, and a host of one process. */
export interface MemoryRecordLog extends RecordLog {
  /** Takes no more than so many bytes in all; what is stored stays. */
  limit(bytesMax: number): void;
  /** Says that nothing after a sequence was published yet. */
  holdBack(sequenceMax: number): void;
  /** Answers nothing until `resume`. */
  stall(): void;
  resume(): void;
}

export const memoryRecordLog = (): MemoryRecordLog => {
  const subjects = new Map<string, (StoredRecord & Pick<RecordWrite, 'mark'>)[]>();
  let sequence = 0;
  let bytes = 0;
  let bytesMax = Number.POSITIVE_INFINITY;
  let stalled = false;
  let publishedUpTo = Number.POSITIVE_INFINITY;
  const covered = (filter: string) => [...subjects].filter(([natsSubject]) => covers(filter, natsSubject));

  return {
    write: async ({ expected, ...record }) => {
      if (stalled) return { kind: 'unknown', reason: STALLED };
      const records = subjects.get(record.natsSubject) ?? [];
      if ((records.at(-1)?.sequence ?? 0) !== expected) return { kind: 'moved' };
      if (bytes + record.data.byteLength > bytesMax) return { kind: 'full' };
      sequence += 1;
      bytes += record.data.byteLength;
      // A log is of bytes: nobody may change a record by changing the object it came from.
      records.push({ ...record, sequence, data: Uint8Array.from(record.data), storedAt: Date.now() });
      subjects.set(record.natsSubject, records);
      return { kind: 'stored', sequence };
    },
    read: async (natsSubject, after) =>
      stalled ? unavailable(STALLED) : ok((subjects.get(natsSubject) ?? []).filter((record) => record.sequence > after)),
    last: async (natsSubject) => (stalled ? unavailable(STALLED) : ok(subjects.get(natsSubject)?.at(-1))),
    next: async (filter, after) => {
      if (stalled) return unavailable(STALLED);
      const later = covered(filter).flatMap(([, records]) => records.filter((record) => record.sequence > after));
      return ok(later.toSorted((a, b) => a.sequence - b.sequence)[0]);
    },
    marks: async (filter) => {
      if (stalled) return unavailable(STALLED);
      const lasts = covered(filter).flatMap(([, records]) => records.slice(-1));
      const marks = lasts
        .toSorted((a, b) => a.sequence - b.sequence)
        .map(({ natsSubject, mark, storedAt }) => ({ natsSubject, mark, storedAt }));
      return ok({ marks, complete: true });
    },
    forget: async (natsSubject, keep) => {
      if (stalled) return unavailable(STALLED);
      const records = subjects.get(natsSubject) ?? [];
      const kept = keep === 0 ? [] : records.slice(-keep);
      bytes -= bytesOf(records) - bytesOf(kept);
      if (kept.length === 0) subjects.delete(natsSubject);
      else subjects.set(natsSubject, kept);
      return ok(undefined);
    },
    publishedUpTo: async () => (stalled ? unavailable(STALLED) : ok(publishedUpTo)),
    readUses: async () => {
      if (stalled) return unavailable(STALLED);
      const uses = [...subjects].filter(([natsSubject]) => useOfSubject(natsSubject) !== undefined).flatMap(([, records]) => records);
      return ok(uses.toSorted((a, b) => a.sequence - b.sequence));
    },
    holdBack: (sequenceMax) => {
      publishedUpTo = sequenceMax;
    },
    limit: (most) => {
      bytesMax = most;
    },
    stall: () => {
      stalled = true;
    },
    resume: () => {
      stalled = false;
    },
  };
};

const bytesOf = (records: readonly StoredRecord[]): number => records.reduce((sum, { data }) => sum + data.byteLength, 0);

/** Whether a filter, whose wildcards each stand for one token, covers a subject. */
const covers = (filter: string, natsSubject: string): boolean => {
  const tokens = natsSubject.split('.');
  const wanted = filter.split('.');
  return wanted.length === tokens.length && wanted.every((token, index) => token === '*' || token === tokens[index]);
};

/** A ledger in this process. Ledgers given the same `log` are one ledger, as replicas see it. */
export const memoryLedger = (options: LedgerOptions & { readonly log?: RecordLog } = {}): Ledger =>
  ledgerOver(options.log ?? memoryRecordLog(), options);
