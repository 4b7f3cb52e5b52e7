import type { Address, ClaimedRecord, LedgerRecord, Result, Unavailable, UseClaim } from '@sharedos/contracts';

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

/** The records of one operation and where they end. `revision` is opaque: the fence of the next write. */
export interface OperationHistory {
  readonly records: readonly [ClaimedRecord, ...LedgerRecord[]] | readonly [LedgerRecord, ...LedgerRecord[]];
  readonly revision: number;
}

/** `fenced`: somebody else wrote since; this owner may admit nothing more. `full`: the ledger takes no new records. */
export type LedgerRefusal = { readonly kind: 'fenced' } | { readonly kind: 'full' } | Unavailable;

/**
 * One owner's hold on one operation. Writes are made one after the other, each expecting the record before it; after the
 * first refusal every further write is refused.
 */
export interface LedgerClaim {
  readonly key: OperationKey;
  /** False once a write was refused as fenced, or its fate is unknown. */
  readonly held: boolean;
  append(record: LedgerRecord): Promise<Result<void, LedgerRefusal>>;
}

export interface Ledger {
  /** Writes the first record of an operation. `exists` carries what stands there already. */
  claim(key: OperationKey, record: LedgerRecord): Promise<Result<LedgerClaim, { readonly kind: 'exists'; readonly history: OperationHistory } | LedgerRefusal>>;

  /** All records of an operation, or `undefined` when it was never claimed. */
  read(key: OperationKey): Promise<Result<OperationHistory | undefined, Unavailable>>;

  /** Takes over a silent owner's operation at the revision read: its next write will be refused. For recovery alone. */
  resume(key: OperationKey, history: OperationHistory): LedgerClaim;

  /**
   * Spends one use of a bounded grant. The first claim of an ordinal wins; claiming again for the same operation succeeds.
   *
   * @returns `taken` when another operation holds the ordinal: the counters went back in time and must be rebuilt.
   */
  claimUse(namespaceId: string, use: UseClaim): Promise<Result<void, { readonly kind: 'taken'; readonly by: UseClaim } | LedgerRefusal>>;

  /** Every use spent, up to now; the truth that counters are rebuilt from. Fails rather than returning part of it. */
  uses(): Promise<Result<readonly { readonly namespaceId: string; readonly use: UseClaim }[], Unavailable>>;

  close(): Promise<void>;
}
