import type { Result, Unavailable, UseTaken } from '@sharedos/contracts';

/** One bounded grant of one namespace. */
export interface BoundedGrant {
  readonly namespaceId: string;
  readonly grantId: string;
  /** `maxUses` of the grant, at least 1. Part of the grant, so it never changes. */
  readonly max: number;
}

export interface SpentUse {
  readonly namespaceId: string;
  readonly grantId: string;
  readonly ordinal: number;
  readonly operation: string;
}

/**
 * Hands out ordinals of bounded grants, fast and each once. It is not the truth: that is the ledger's claims, which a store
 * that lost its memory is rebuilt from. Until then it is closed, and every answer is `unavailable`.
 *
 * Not promised: that an ordinal is handed out only once. One handed out before the memory was lost, and not yet claimed in the
 * ledger when the rebuild read it, is handed out again. That is safe because an effect may start only after the ledger's claim
 * of the ordinal, which one operation wins; the other hears `taken`, runs nothing, and says so with {@link distrust}.
 *
 * @see docs/adr/0005-uses-are-claims.md
 */
export interface UsageStore {
  /** Uses handed out so far. Not consuming. */
  count(grant: BoundedGrant): Promise<Result<number, Unavailable>>;

  /**
   * Takes one use for `operation`, in one atomic step. The same operation asking again gets the same ordinal.
   *
   * @returns the use, or `undefined` when all are handed out. `unavailable` may mean that a use was taken and the answer lost;
   *   asking again for the same operation finds it.
   */
  take(grant: BoundedGrant, operation: string): Promise<Result<UseTaken | undefined, Unavailable>>;

  /**
   * Says that the counters contradict the ledger: they are closed and rebuilt. Called on a `taken` claim.
   * A no-op when `epoch` is no longer the one in force.
   */
  distrust(epoch: string): Promise<void>;

  close(): Promise<void>;
}

/** Where a rebuild reads the truth from. It answers within its own deadline, with everything or with `unavailable`. */
export type SpentUses = () => Promise<Result<readonly SpentUse[], Unavailable>>;

/** What a store says of itself while it works in the background: for readiness and for operators. */
export interface UsageState {
  /** `closed`: answers are `unavailable`. `rebuilding`: still closed, the ledger's claims are being counted. `open`: answering. */
  readonly state: 'closed' | 'rebuilding' | 'open';
  readonly epoch?: string;
  /** While rebuilding: spent uses restored so far. */
  readonly uses?: number;
  readonly reason: string;
}
