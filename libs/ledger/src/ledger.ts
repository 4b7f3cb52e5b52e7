import type { Address, Instant, LedgerRecord, Result, Unavailable, UseClaim, UseReleased } from '@sharedos/contracts';

/**
 * The identity of one operation: a turn, or a message sent outside one. The requester is part of it, so a stranger cannot
 * collide with another's id. @see spec/turns.md §13
 */
export interface OperationKey {
  readonly namespaceId: string;
  readonly kind: 'execution' | 'message';
  readonly requester: Address;
  readonly id: string;
}

/** Where the records of an operation are, for whoever does not know its key. `name` is the hash of the key. */
export interface OperationPlace {
  readonly namespaceId: string;
  readonly kind: OperationKey['kind'];
  readonly name: string;
}

/** What the last record of an operation says by itself. `perhaps_unknown`: a call may be left that nobody can tell of. */
export interface MarkedOperation extends OperationPlace {
  readonly at: Instant;
  readonly state: 'running' | 'ended' | 'perhaps_unknown' | 'expired';
}

/** The records of one operation and where they end. `revision` is opaque: the fence of the next write. */
export interface OperationHistory {
  readonly records: readonly [LedgerRecord, ...LedgerRecord[]];
  readonly revision: number;
}

/** Largest record, in bytes of its JSON: a tool result of the greatest size with its audit events, and room for the broker's frame. */
export const RECORD_BYTES_MAX = 6 * 1024 * 1024;

/**
 * - `fenced`: somebody else wrote since; this owner may admit nothing more.
 * - `full`: the ledger takes no new records.
 * - `too_large`: over {@link RECORD_BYTES_MAX}. Nothing was sent, and a claim stays held: settle with a smaller record.
 * - `unavailable`: it may or may not have been stored. Never enter a port on it, and treat what it would have admitted as
 *   admitted.
 */
export type LedgerRefusal = { readonly kind: 'fenced' } | { readonly kind: 'full' } | { readonly kind: 'too_large' } | Unavailable;

/**
 * One owner's hold on one operation. Writes are made one after the other, each expecting the record before it; after the
 * first refusal other than `too_large` every further write is refused without being sent.
 */
export interface LedgerClaim {
  readonly key: OperationKey;
  /** False once a write was refused, or its fate is unknown. True says only that nothing was noticed yet. */
  readonly held: boolean;
  append(record: LedgerRecord): Promise<Result<void, LedgerRefusal>>;
}

export type ClaimRefusal = { readonly kind: 'exists'; readonly history: OperationHistory } | LedgerRefusal;
/** `released`: this very operation gave the ordinal back, and can never have it again. */
export type UseRefusal = { readonly kind: 'taken'; readonly by: UseClaim } | { readonly kind: 'released' } | LedgerRefusal;

export interface SpentUseClaim {
  readonly namespaceId: string;
  readonly use: UseClaim;
}

/**
 * What was claimed, admitted, settled and spent; the truth that survives every process. Every answer comes within a deadline of
 * its own. An acknowledgement that does not come is not believed lost or won: the record is read back first.
 *
 * Identifiers must be `NameId`s, and at most 256 characters trimmed: the subject of a record is read strictly by everybody else.
 *
 * @throws RangeError on an identifier that has no such name.
 */
export interface Ledger {
  /**
   * Writes the first record of an operation. `exists` carries what stands there already, which after an `unavailable` may be
   * the very record of that call.
   */
  claim(key: OperationKey, record: LedgerRecord): Promise<Result<LedgerClaim, ClaimRefusal>>;

  /** All records of an operation, or `undefined` when none was found; only a claim proves that there is none. */
  read(key: OperationKey): Promise<Result<OperationHistory | undefined, Unavailable>>;

  /** All records of an operation that {@link operations} found. */
  readAt(place: OperationPlace): Promise<Result<OperationHistory | undefined, Unavailable>>;

  /**
   * The last record alone, as a history of one, for an operation whose last record says enough: the log is not searched from its
   * beginning for it.
   */
  readLast(key: OperationKey): Promise<Result<OperationHistory | undefined, Unavailable>>;

  /** The operations of a kind, in the order they were last written to. `complete`: whether those are all. */
  operations(
    namespaceId: string,
    kind: OperationKey['kind'],
  ): Promise<Result<{ readonly operations: readonly MarkedOperation[]; readonly complete: boolean }, Unavailable>>;

  /**
   * Follows the end of turns that ended before with the record that they have expired: from then on only what they were called
   * counts, and a request sent again is told so. What runs is left alone however old it is. Any number may do it at once.
   *
   * @param turnsMax For one call; `more`: there were more.
   */
  expire(endedBefore: Instant, turnsMax: number): Promise<Result<{ readonly expired: number; readonly more: boolean }, Unavailable>>;

  /**
   * Takes out the records of turns that have expired, all but that one: `emptied`; and that one as well where it was written before
   * `expiredBefore`: `forgotten`, and the id may be used again. Leaves what nobody has published the audit of. At no moment before
   * is a turn's subject empty, so nobody can claim it twice.
   *
   * Needs a right that no service has.
   */
  forget(
    expiredBefore: Instant,
    turnsMax: number,
  ): Promise<Result<{ readonly emptied: number; readonly forgotten: number; readonly more: boolean }, Unavailable>>;

  /**
   * Takes over a silent owner's operation at the revision read. Writes nothing: the first record appended is the fence, and of
   * all who resumed at one revision, and the old owner, one gets it in.
   */
  resume(key: OperationKey, history: OperationHistory): LedgerClaim;

  /**
   * Spends one use of a bounded grant. The first claim of an ordinal wins until it is released; claiming again for the same
   * operation succeeds.
   *
   * @returns `taken` when another operation holds the ordinal: the counters went back in time and must be rebuilt.
   */
  claimUse(namespaceId: string, use: UseClaim): Promise<Result<void, UseRefusal>>;

  /**
   * Gives a use back, claimed or not: `operation` can never claim it again, and another may. Done twice it changes nothing, and of
   * what another operation holds by now it changes nothing either.
   *
   * Only after the turn's own records say that nothing was admitted on it: its live owner's `released`, or its end.
   */
  releaseUse(namespaceId: string, use: UseReleased): Promise<Result<void, LedgerRefusal>>;

  /** Every use spent and not released, up to now; the truth that counters are rebuilt from. Fails rather than returning part of it. */
  uses(): Promise<Result<readonly SpentUseClaim[], Unavailable>>;

  /** Answers `unavailable` from then on, and returns when the writes on their way are settled. */
  close(): Promise<void>;
}
