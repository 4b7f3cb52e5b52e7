import type { Result, Unavailable, UseTaken } from '@sharedos/contracts';

/** One bounded grant of one namespace. */
export interface BoundedGrant {
  readonly namespaceId: string;
  readonly grantId: string;
  /** `maxUses` of the grant, at least 1. */
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
 * @see docs/adr/0005-uses-are-claims.md
 */
export interface UsageStore {
  /** Uses handed out so far. Not consuming. */
  count(grant: BoundedGrant): Promise<Result<number, Unavailable>>;

  /**
   * Takes one use for `operation`, in one atomic step. The same operation asking again gets the same ordinal.
   *
   * @returns the use, or `undefined` when all are handed out.
   */
  take(grant: BoundedGrant, operation: string): Promise<Result<UseTaken | undefined, Unavailable>>;

  /**
   * Says that the counters contradict the ledger: they are closed and rebuilt. Called on a `taken` claim.
   * A no-op when `epoch` is no longer the one in force.
   */
  distrust(epoch: string): Promise<void>;

  close(): Promise<void>;
}

/** Where a rebuild reads the truth from. */
export type SpentUses = () => Promise<Result<readonly SpentUse[], Unavailable>>;
