import { ok, unavailable } from '@sharedos/contracts';
import { useOfSubject } from './ledger-names.ts';
import { type LedgerOptions, ledgerOver } from './ledger-over.ts';
import type { Ledger } from './ledger.ts';
import type { RecordLog, StoredRecord } from './record-log.ts';

/** A log of records in this process, shared by any number of ledgers: for tests, the simulation, and a host of one process. */
export interface MemoryRecordLog extends RecordLog {
  /** Takes no more than so many bytes in all; what is stored stays. */
  limit(bytesMax: number): void;
  /** Answers nothing until `resume`. */
  stall(): void;
  resume(): void;
}

export const memoryRecordLog = (): MemoryRecordLog => {
  const subjects = new Map<string, StoredRecord[]>();
  let sequence = 0;
  let bytes = 0;
  let bytesMax = Number.POSITIVE_INFINITY;
  let stalled = false;

  return {
    write: async ({ expected, ...record }) => {
      if (stalled) return { kind: 'unknown', reason: 'the log does not answer' };
      const records = subjects.get(record.natsSubject) ?? [];
      if ((records.at(-1)?.sequence ?? 0) !== expected) return { kind: 'moved' };
      if (bytes + record.data.byteLength > bytesMax) return { kind: 'full' };
      sequence += 1;
      bytes += record.data.byteLength;
      // A log is of bytes: nobody may change a record by changing the object it came from.
      records.push({ ...record, sequence, data: Uint8Array.from(record.data) });
      subjects.set(record.natsSubject, records);
      return { kind: 'stored', sequence };
    },
    read: async (natsSubject, after) =>
      stalled ? unavailable('the log does not answer') : ok((subjects.get(natsSubject) ?? []).filter((record) => record.sequence > after)),
    readUses: async () => {
      if (stalled) return unavailable('the log does not answer');
      const uses = [...subjects].filter(([natsSubject]) => useOfSubject(natsSubject) !== undefined).flatMap(([, records]) => records);
      return ok(uses.toSorted((a, b) => a.sequence - b.sequence));
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

/** A ledger in this process. Ledgers given the same `log` are one ledger, as replicas see it. */
export const memoryLedger = (options: LedgerOptions & { readonly log?: RecordLog } = {}): Ledger =>
  ledgerOver(options.log ?? memoryRecordLog(), options);
