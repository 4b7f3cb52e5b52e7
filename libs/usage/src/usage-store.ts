import type { HeldUse, Result, Unavailable, UseTaken } from '@sharedos/contracts';

/** One bounded grant of one namespace. */
export interface BoundedGrant {
  readonly namespaceId: string;
  readonly grantId: string;
  /** `maxUses` of the grant, at least 1. Part of the grant, so it never changes. */
  readonly max: number;
}

/** The budgets that one use counts in, all of one namespace: the grant's own, and those of ancestors that it shares. */
export type Budgets = readonly [BoundedGrant, ...BoundedGrant[]];

/** What a use is taken for. `turn` names whatever the operation is part of: what it reserves is found again by that name. */
export interface Reservation {
  readonly operation: string;
  readonly turn: string;
}

export interface SpentUse {
  readonly namespaceId: string;
  readonly grantId: string;
  readonly ordinal: number;
  readonly operation: string;
  /** Absent in claims written before turns were named in them. */
  readonly turn?: string | undefined;
}

/** `exhausted`: the first budget that had none left; then nothing was taken of any. */
export type Taken =
  | { readonly kind: 'taken'; readonly uses: readonly UseTaken[] }
  | { readonly kind: 'exhausted'; readonly grantId: string };

/** All that a turn was handed out and nobody gave back, under one epoch. */
export interface TurnUses {
  readonly epoch: string;
  readonly uses: readonly HeldUse[];
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
  /** Uses handed out so far, of each budget in its order, in one atomic step. Not consuming. */
  count(budgets: Budgets): Promise<Result<readonly number[], Unavailable>>;

  /**
   * Takes one use of every budget, or none of any, in one atomic step. The same operation asking again gets the same ordinals.
   *
   * @returns the uses in the order of the budgets. `unavailable` may mean that uses were taken and the answer lost; asking again
   *   for the same operation finds them.
   */
  take(budgets: Budgets, by: Reservation): Promise<Result<Taken, Unavailable>>;

  /**
   * The uses that a turn was handed out and that were not released, at most {@link HELD_MAX} of them. Asked once the turn is over:
   * from then on it is handed out nothing more, whatever questions of it are still on their way.
   */
  held(namespaceId: string, turn: string): Promise<Result<TurnUses, Unavailable>>;

  /**
   * Gives uses back. Called only after the ledger says that nothing will ever run on them; what is no longer held by its operation
   * stays as it is.
   *
   * @param epoch Of {@link held}. Counters of another epoch were rebuilt from the ledger, and need no telling.
   */
  release(namespaceId: string, turn: string, epoch: string, uses: readonly HeldUse[]): Promise<Result<void, Unavailable>>;

  /**
   * Says that the counters contradict the ledger: they are closed and rebuilt. Called on a `taken` claim.
   * A no-op when `epoch` is no longer the one in force.
   */
  distrust(epoch: string): Promise<void>;

  close(): Promise<void>;
}

/** Uses of one turn that are told at once; those left are told when these are released. */
export const HELD_MAX = 10_000;

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
