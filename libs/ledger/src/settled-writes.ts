import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { RECORD_BYTES_MAX } from './ledger.ts';
import type { RecordLog, StoredRecord } from './record-log.ts';
import type { EncodedRecord } from './records.ts';

/** What became of a write. Whoever moved the subject is shown when the read-back found it. */
export type SettledOutcome =
  | { readonly kind: 'stored'; readonly sequence: number }
  | { readonly kind: 'moved'; readonly by?: readonly StoredRecord[] }
  | { readonly kind: 'full' | 'too_large' }
  | { readonly kind: 'unknown'; readonly reason: string };

export interface SettledWrites {
  /** Writes after `expected`, and does not answer before the fate of the write is known or cannot be learned in time. */
  write(natsSubject: string, record: EncodedRecord, expected: number): Promise<SettledOutcome>;
}

const FIRST_PAUSE_MS = 20;
const PAUSE_MAX_MS = 400;

/**
 * Writes to a log and settles what an unacknowledged write became. The record right after `expected` tells: ours, by the id that
 * was minted for this one write, or another's, and then ours can never follow. Nothing there proves nothing: the write may still
 * be on its way, or the answer be old.
 */
export const settledWrites = (log: RecordLog, readBackMs: number): SettledWrites => ({
  write: async (natsSubject, record, expected) => {
    if (record.data.byteLength > RECORD_BYTES_MAX) return { kind: 'too_large' };
    const writeId = randomUUID();
    const written = await log.write({ natsSubject, ...record, writeId, expected });
    return written.kind === 'unknown' ? readBack(log, natsSubject, writeId, expected, readBackMs, written.reason) : written;
  },
});

const readBack = async (
  log: RecordLog,
  natsSubject: string,
  writeId: string,
  expected: number,
  readBackMs: number,
  reason: string,
): Promise<SettledOutcome> => {
  const deadline = performance.now() + readBackMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS)) {
    const remaining = deadline - performance.now();
    if (remaining <= 0) return { kind: 'unknown', reason };
    const found = await log.read(natsSubject, expected, remaining);
    const first = found.ok ? found.value[0] : undefined;
    if (found.ok && first !== undefined)
      return first.writeId === writeId ? { kind: 'stored', sequence: first.sequence } : { kind: 'moved', by: found.value };
    // A lost connection comes back by itself, and what was sent over it may only now be arriving.
    await setTimeout(Math.min(pauseMs, Math.max(0, deadline - performance.now())));
  }
};
