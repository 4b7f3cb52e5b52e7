import type { Instant } from '@sharedos/contracts';

const WINDOW_MS = 60_000;
/** Recipients that are counted at once. Beyond it the one that was heard of longest ago is forgotten. */
const KEYS_MAX = 10_000;

interface Window {
  readonly startedAt: Instant;
  readonly count: number;
  readonly before: number;
}

/** Counts what happened in the last minute, by key: the present window and so much of the one before as still lies within a minute. */
export class RateWindows {
  readonly #clock: () => Instant;
  readonly #windows = new Map<string, Window>();

  constructor(clock: () => Instant) {
    this.#clock = clock;
  }

  /** Counts one under every key, if each has room for it; otherwise under none. */
  take(limits: readonly { readonly key: string; readonly max: number }[]): boolean {
    const now = this.#clock();
    const windows = limits.map(({ key, max }) => ({ key, max, window: this.#at(key, now) }));
    if (windows.some(({ max, window }) => rateOf(window, now) + 1 > max)) return false;
    for (const { key, window } of windows) {
      this.#windows.delete(key);
      this.#windows.set(key, { ...window, count: window.count + 1 });
    }
    for (const key of this.#windows.keys()) {
      if (this.#windows.size <= KEYS_MAX) break;
      this.#windows.delete(key);
    }
    return true;
  }

  #at(key: string, now: Instant): Window {
    const known = this.#windows.get(key);
    if (known === undefined || now >= known.startedAt + 2 * WINDOW_MS) return { startedAt: now, count: 0, before: 0 };
    if (now < known.startedAt + WINDOW_MS) return known;
    return { startedAt: known.startedAt + WINDOW_MS, count: 0, before: known.count };
  }
}

const rateOf = ({ startedAt, count, before }: Window, now: Instant): number =>
  count + Math.ceil(before * Math.max(0, 1 - (now - startedAt) / WINDOW_MS));
