export interface SlotsOptions {
  readonly concurrencyMax: number;
  /** Most that wait for a slot at once; the next is turned away immediately. */
  readonly waitingMax: number;
  /** How long one waits before it is turned away. */
  readonly waitMs: number;
}

interface Waiter {
  readonly admit: (admitted: boolean) => void;
  readonly timer: NodeJS.Timeout;
}

/** Bounded concurrency with a bounded wait, first come first served. */
export class Slots {
  readonly #options: SlotsOptions;
  readonly #waiters = new Set<Waiter>();
  #taken = 0;

  constructor(options: SlotsOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /** @returns Whether a slot was had; only then is `leave` called. */
  enter(): true | Promise<boolean> | false {
    if (this.#taken < this.#options.concurrencyMax) {
      this.#taken += 1;
      return true;
    }
    if (this.#waiters.size >= this.#options.waitingMax) return false;
    return new Promise((admit) => {
      const waiter: Waiter = { admit, timer: setTimeout(() => this.#give(waiter, false), this.#options.waitMs) };
      this.#waiters.add(waiter);
    });
  }

  leave(): void {
    const [first] = this.#waiters;
    // The slot passes from hand to hand, so nobody who came later can take it in between.
    if (first === undefined) this.#taken -= 1;
    else this.#give(first, true);
  }

  #give(waiter: Waiter, admitted: boolean): void {
    if (!this.#waiters.delete(waiter)) return;
    clearTimeout(waiter.timer);
    waiter.admit(admitted);
  }
}
