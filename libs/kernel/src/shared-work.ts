import { untilAborted } from './until-aborted.ts';

/**
 * One piece of work that any number of callers wait for: done once, its value held. Its own signal fires when the last waiter
 * gave up, so one caller's cancel takes nothing from the others. A failure is not held: the next caller starts anew.
 */
export class SharedWork<T> {
  #done: { readonly value: T } | undefined;
  #running: { readonly work: Promise<T>; readonly stop: AbortController; waiters: number } | undefined;

  /** The value, if it is there already. */
  get value(): T | undefined {
    return this.#done?.value;
  }

  /** @param start Begins the work where none is running; used by whoever comes first. */
  async get(start: (signal: AbortSignal) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    signal?.throwIfAborted();
    if (this.#done !== undefined) return this.#done.value;
    const running = (this.#running ??= this.#begin(start));
    running.waiters += 1;
    try {
      return await (signal === undefined ? running.work : untilAborted(running.work, signal));
    } finally {
      running.waiters -= 1;
      if (running.waiters === 0 && this.#running === running && this.#done === undefined) {
        this.#running = undefined;
        running.stop.abort();
      }
    }
  }

  #begin(start: (signal: AbortSignal) => Promise<T>) {
    const stop = new AbortController();
    const work = (async () => start(stop.signal))();
    const running = { work, stop, waiters: 0 };
    work.then(
      (value) => {
        if (this.#running === running) this.#done = { value };
      },
      () => {
        if (this.#running === running) this.#running = undefined;
      },
    );
    return running;
  }
}
