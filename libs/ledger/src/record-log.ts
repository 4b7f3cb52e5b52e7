import type { Result, Unavailable } from '@sharedos/contracts';

/** A record as it is stored. `writeId` was minted for the one write that stored it. */
export interface StoredRecord {
  readonly natsSubject: string;
  readonly sequence: number;
  readonly schema: string;
  readonly writeId: string;
  readonly data: Uint8Array;
}

export interface RecordWrite {
  readonly natsSubject: string;
  /** Name of the body's schema. */
  readonly schema: string;
  readonly writeId: string;
  readonly data: Uint8Array;
  /** Sequence of the subject's last record; 0 when it has none. */
  readonly expected: number;
}

/** `moved`, `full`, `too_large`: certainly not stored. `unknown`: stored, not stored, or stored later. */
export type WriteOutcome =
  | { readonly kind: 'stored'; readonly sequence: number }
  | { readonly kind: 'moved' | 'full' | 'too_large' }
  | { readonly kind: 'unknown'; readonly reason: string };

/**
 * What a ledger is kept in: records on subjects, each written only if the subject still ends where the writer says. The rules of
 * claims are written once, over this; an adapter adds nothing to them.
 */
export interface RecordLog {
  write(write: RecordWrite): Promise<WriteOutcome>;
  /** The records of one subject after a sequence, in order. May miss the latest, never one in between. */
  read(natsSubject: string, after: number, timeoutMs: number): Promise<Result<readonly StoredRecord[], Unavailable>>;
  /** All records of uses, claimed and released, up to now and in order, or none. */
  readUses(): Promise<Result<readonly StoredRecord[], Unavailable>>;
}
