import { type Result, err, ok } from '@sharedos/contracts';
import type { EventStore, Position } from '@sharedos/event-store';
import { AuthorityFold } from '../fold/authority-fold.ts';

export interface HistoryLimits {
  /** How long after it was last used it is kept. */
  readonly idleMs: number;
  /** Grants in it at most: each takes some 500 bytes. */
  readonly grantsMax: number;
}

const LIMITS: HistoryLimits = { idleMs: 300_000, grantsMax: 2_000_000 };

/**
 * The log folded from its beginning, with nothing forgotten and from no snapshot: what past decisions are computed again from. It
 * is built when it is first needed, beside the fold that decides, and given up when nobody uses it.
 *
 * @see docs/adr/0012-decisions-computed-again.md
 */
export class LogHistory {
  readonly #store: EventStore;
  readonly #limits: HistoryLimits;
  #fold: AuthorityFold | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(store: EventStore, limits: HistoryLimits = LIMITS) {
    this.#store = store;
    this.#limits = limits;
  }

  /** Whether it is folded, or being folded, now. */
  get isKept(): boolean {
    return this.#fold !== undefined;
  }

  /**
   * The log up to a position at least. Asking again goes on where it was.
   *
   * @returns Why it could not be had by the deadline.
   */
  async upTo(position: Position, deadlineMs: number): Promise<Result<AuthorityFold, string>> {
    this.#keep();
    const fold = (this.#fold ??= this.#begin());
    const reached = await fold.until(position, deadlineMs);
    if (fold.index.size > this.#limits.grantsMax) {
      await this.close();
      return err(`the log holds more than ${this.#limits.grantsMax} grants, and is not folded from its beginning here`);
    }
    return reached.ok ? ok(fold) : err(`the log is being folded from its beginning: ${reached.error.reason}`);
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const fold = this.#fold;
    this.#fold = undefined;
    await fold?.close();
  }

  #begin(): AuthorityFold {
    // The fold that decides names whatever troubles the log; here it only keeps the answer from being had.
    const fold = new AuthorityFold(() => undefined);
    fold.follow(this.#store);
    return fold;
  }

  #keep(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => void this.close(), this.#limits.idleMs);
    this.#idle.unref();
  }
}
