import type { HeldUse } from '@sharedos/contracts';
import type { BoundedGrant, Budgets, Reservation } from './usage-store.ts';

/** The counter of one grant as the ledger's claims say it stands. */
export interface GrantCounter {
  readonly namespaceId: string;
  readonly grantId: string;
  /** Highest ordinal handed out. */
  readonly highest: number;
  /** Ordinals below it that nobody spent, lowest first: the next to be handed out. */
  readonly free: readonly number[];
  /** Operations, the ordinal each spent, and the turn it was part of. */
  readonly operations: readonly (readonly [operation: string, ordinal: number, turn?: string | undefined])[];
}

/** The epoch given is not the one in force: the memory was lost, or another replica replaced it. */
export const LOST = 'lost';

/** The turn is over: it is handed out nothing more. */
export const TURN_OVER = 'turn over';

/**
 * One connection to the memory that counters are kept in. Every step is atomic and compares the epoch first.
 *
 * An epoch is one unbroken life of that memory: the process that holds it and the rebuild that filled it. A memory that was
 * wiped, restarted or copied elsewhere has none in force. A rebuild fills keys of its own under a candidate epoch, which becomes
 * the epoch in one compare-and-set at the end. A wipe and a rival that finished first each end every candidate, so what was
 * half filled before a wipe, or read before the truth was distrusted, can never come into force.
 *
 * @throws SessionLost from any step: the session is finished and its store closed.
 */
export interface CounterSession {
  epoch(): Promise<string | undefined>;
  /** Ends `epoch` if it is the one in force. */
  revoke(epoch: string): Promise<void>;
  /** @returns A candidate epoch, or `undefined` when an epoch is in force already. */
  beginRebuild(): Promise<string | undefined>;
  /** @returns `false` when the candidate has ended. */
  fill(candidate: string, counter: GrantCounter): Promise<boolean>;
  /** Puts `candidate` in force unless another epoch is. @returns the epoch in force afterwards. */
  install(candidate: string): Promise<string | undefined>;
  /** Removes what earlier rebuilds left, as long as `epoch` is in force. */
  sweep(epoch: string): Promise<void>;

  /** @returns an ordinal of each budget, or the place of the first that has none left. */
  take(
    epoch: string,
    budgets: Budgets,
    by: Reservation,
  ): Promise<readonly number[] | { readonly exhausted: number } | typeof TURN_OVER | typeof LOST>;
  count(epoch: string, budgets: Budgets): Promise<readonly number[] | typeof LOST>;
  held(epoch: string, namespaceId: string, turn: string): Promise<readonly HeldUse[] | typeof LOST>;
  release(epoch: string, grant: Omit<BoundedGrant, 'max'>, turn: string, use: HeldUse): Promise<undefined | typeof LOST>;

  /** Calls back once if the connection ends other than by `close`. */
  onLost(listener: (lost: SessionLost) => void): void;
  close(): void;
}

/** Thrown by a session that can no longer be trusted. `memoryInDoubt`: even the epoch it worked under must not be. */
export class SessionLost extends Error {
  override readonly name = 'SessionLost';
  readonly memoryInDoubt: boolean;

  constructor(reason: string, memoryInDoubt = false) {
    super(reason);
    this.memoryInDoubt = memoryInDoubt;
  }
}
