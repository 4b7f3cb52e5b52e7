/** Longest wait for a store, in milliseconds, and most waiters for one in this process. */
export const WAIT_MS_MAX = 5_000;
const WAITERS_MAX = 64;

export type LockOutcome = 'held' | 'cancelled' | 'busy';

/** One writer at a time for each key, inside this process, in the order of asking. */
export class FileLocks {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Waits for `key`. Only after `held` is {@link release} due. `busy`: the line is full, or the wait took too long. */
  async acquire(key: string, cancel: AbortSignal): Promise<LockOutcome> {
    if (cancel.aborted) return 'cancelled';
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) {
      this.#waiting.set(key, new Set());
      return 'held';
    }
    if (waiting.size >= WAITERS_MAX) return 'busy';
    return new Promise((resolve) => {
      const end = (outcome: LockOutcome): void => {
        clearTimeout(timer);
        cancel.removeEventListener('abort', aborted);
        waiting.delete(turn);
        resolve(outcome);
      };
      const turn = (): void => end('held');
      const aborted = (): void => end('cancelled');
      const timer = setTimeout(() => end('busy'), WAIT_MS_MAX);
      cancel.addEventListener('abort', aborted);
      waiting.add(turn);
    });
  }

  release(key: string): void {
    const [next] = this.#waiting.get(key) ?? [];
    if (next === undefined) this.#waiting.delete(key);
    else next();
  }
}
