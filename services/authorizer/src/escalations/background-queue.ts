import { backoffMs, pause } from '@sharedos/bus';

export interface BackgroundQueueOptions<Item> {
  /** Does it. `again`: it may go better later; `given up`: it never will. Brings its own deadline. */
  readonly work: (item: Item, signal: AbortSignal) => Promise<'done' | 'again' | 'given up'>;
  /** Items that may wait; one more is given up at once. */
  readonly waitingMax: number;
  readonly attemptsMax: number;
  readonly backoffMostMs?: number;
  readonly onGivenUp: (item: Item) => void;
}

/** Work that nobody waits for, one item after the other: bounded in how much waits, and in how often it is tried. */
export class BackgroundQueue<Item> {
  readonly #options: BackgroundQueueOptions<Item>;
  readonly #waiting: Item[] = [];
  readonly #stopping = new AbortController();
  #working: Promise<void> | undefined;

  constructor(options: BackgroundQueueOptions<Item>) {
    this.#options = options;
  }

  add(item: Item): void {
    const { waitingMax, onGivenUp } = this.#options;
    if (this.#stopping.signal.aborted || this.#waiting.length >= waitingMax) return onGivenUp(item);
    this.#waiting.push(item);
    this.#working ??= this.#work();
  }

  /** Resolves when nothing waits any more. */
  async idle(): Promise<void> {
    await this.#working;
  }

  /** Ends with what is being tried; what waits still is given up. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#working;
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    for (let item = this.#waiting.shift(); item !== undefined; item = this.#waiting.shift()) {
      if (signal.aborted || !(await this.#done(item))) this.#options.onGivenUp(item);
    }
    this.#working = undefined;
  }

  async #done(item: Item): Promise<boolean> {
    const { work, attemptsMax, backoffMostMs } = this.#options;
    const { signal } = this.#stopping;
    for (let attempt = 0; attempt < attemptsMax && !signal.aborted; attempt += 1) {
      if (attempt > 0) await pause(backoffMs(attempt, backoffMostMs), signal);
      const outcome = await work(item, signal);
      if (outcome !== 'again') return outcome === 'done';
    }
    return false;
  }
}
