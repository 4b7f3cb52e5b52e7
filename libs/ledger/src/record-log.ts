import type { Instant, Result, Unavailable } from '@sharedos/contracts';

/** A record as it is stored. `writeId` was minted for the one write that stored it. */
export interface StoredRecord {
  readonly natsSubject: string;
  readonly sequence: number;
  readonly schema: string;
  readonly writeId: string;
  readonly data: Uint8Array;
  /** When it was stored, by the clock of what keeps the log. */
  readonly storedAt: Instant;
}

export interface RecordWrite {
  readonly natsSubject: string;
  /** Name of the body's schema. */
  readonly schema: string;
  readonly writeId: string;
  readonly data: Uint8Array;
  /** Kept beside the body, so that a list need not read it. */
  readonly mark?: string;
  /** Sequence of the subject's last record; 0 when it has none. */
  readonly expected: number;
}

/** `moved`, `full`, `too_large`: certainly not stored. `unknown`: stored, not stored, or stored later. */
export type WriteOutcome =
  | { readonly kind: 'stored'; readonly sequence: number }
  | { readonly kind: 'moved' | 'full' | 'too_large' }
  | { readonly kind: 'unknown'; readonly reason: string };

/** The last record on a subject, without its body. */
export interface LastMark {
  readonly natsSubject: string;
  readonly mark: string | undefined;
  readonly storedAt: Instant;
}

/**
 * What a ledger is kept in: records on subjects, each written only if the subject still ends where the writer says. The rules of
 * claims are written once, over this; an adapter adds nothing to them.
 */
export interface RecordLog {
  write(write: RecordWrite): Promise<WriteOutcome>;
  /** The records of one subject after a sequence, in order. May miss the latest, never one in between. */
  read(natsSubject: string, after: number, timeoutMs: number): Promise<Result<readonly StoredRecord[], Unavailable>>;
  /** The last record of a subject; `undefined` when none was found. */
  last(natsSubject: string, timeoutMs: number): Promise<Result<StoredRecord | undefined, Unavailable>>;
  /** The first record after a sequence on any subject that a filter covers; `undefined` when there is none. */
  next(filter: string, after: number, timeoutMs: number): Promise<Result<StoredRecord | undefined, Unavailable>>;
  /** The last record of every subject that a filter covers. `complete`: whether those are all. */
  marks(
    filter: string,
    timeoutMs: number,
  ): Promise<Result<{ readonly marks: readonly LastMark[]; readonly complete: boolean }, Unavailable>>;
  /** Takes out a subject's records but the last `keep`. Whoever expects a record that is gone finds that the subject moved. */
  forget(natsSubject: string, keep: 0 | 1, timeoutMs: number): Promise<Result<void, Unavailable>>;
  /** Up to where every record has been read by whoever publishes the audit in it: nothing behind it may be forgotten. */
  publishedUpTo(timeoutMs: number): Promise<Result<number, Unavailable>>;
  /** All records of uses, claimed and released, up to now and in order, or none. */
  readUses(): Promise<Result<readonly StoredRecord[], Unavailable>>;
}
