import { setTimeout as pause } from 'node:timers/promises';
import { type Lots, lotsFrom } from '../turns/lots.ts';

/** How long it is calm between two blows, in milliseconds. */
export interface Calm {
  readonly least: number;
  readonly most: number;
}

const SHORT: Calm = { least: 300, most: 2_000 };
/** Long enough that everybody is back, and rounds are played between two blows as well as under them. */
export const LONG: Calm = { least: 2_000, most: 5_000 };

/** Blows that fall again and again, with pauses between them that follow from a seed, until they are ended. */
export class Blows {
  readonly #ending = new AbortController();
  readonly #lines: Promise<void>[] = [];
  readonly #counts: Record<string, number> = {};

  /** How often each has fallen. */
  get counted(): Readonly<Record<string, number>> {
    return { ...this.#counts };
  }

  /** @param strike One blow, from beginning to end; what it was, in words. */
  repeat(seed: number, strike: (lots: Lots) => Promise<string>, calm = SHORT): void {
    const lots = lotsFrom(seed);
    const line = async (): Promise<void> => {
      for (;;) {
        await this.lasting(calm.least + lots.below(calm.most - calm.least));
        if (this.#ending.signal.aborted) return;
        const what = await strike(lots);
        this.#counts[what] = (this.#counts[what] ?? 0) + 1;
      }
    };
    const running = line();
    // Whoever waits for the end hears of it; until then it must not end the process.
    running.catch(() => undefined);
    this.#lines.push(running);
  }

  /** The length of a blow or of a pause; cut short when the blows are ended. */
  async lasting(ms: number): Promise<void> {
    await pause(ms, undefined, { signal: this.#ending.signal }).catch(() => undefined);
  }

  /** No more blows; resolves when those under way are over. */
  async end(): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#lines);
  }
}
