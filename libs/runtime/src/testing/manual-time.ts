import { type Instant, instantOf } from '@sharedos/contracts';
import type { Timers } from '../timers.ts';

export interface ManualTime {
  readonly clock: () => Instant;
  readonly timers: Timers;
  /** Timers set and neither fired nor cancelled. */
  readonly pending: number;
  /** Moves time on; every timer that becomes due fires at its own instant, in order, and what it wakes runs before the next. */
  advance(milliseconds: number): Promise<void>;
}

/** Time that moves only when told to: a clock and the timers of one world. */
export const manualTime = (start: string): ManualTime => {
  let now = instantOf(start) ?? NaN;
  const waiting = new Set<{ readonly at: Instant; readonly fire: () => void }>();
  return {
    clock: () => now,
    timers: {
      after: (delayMs, fire) => {
        const timer = { at: now + delayMs, fire };
        waiting.add(timer);
        return () => void waiting.delete(timer);
      },
    },
    get pending() {
      return waiting.size;
    },
    advance: async (milliseconds) => {
      const target = now + milliseconds;
      await othersRun();
      for (;;) {
        const due = [...waiting].filter((timer) => timer.at <= target).sort((a, b) => a.at - b.at)[0];
        if (due === undefined) break;
        waiting.delete(due);
        now = due.at;
        due.fire();
        await othersRun();
      }
      now = target;
    },
  };
};

/** Lets everything that can run without time passing run. */
export const othersRun = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const TRIES_MAX = 1_000;

/** Waits for a state that needs no time to pass. */
export const reached = async (what: string, state: () => boolean): Promise<void> => {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    if (state()) return;
    await othersRun();
  }
  throw new Error(`never reached: ${what}`);
};

/** `prefix-1`, `prefix-2`, …: a failing run repeats exactly. */
export const countingIds = (prefix: string): (() => string) => {
  let count = 0;
  return () => `${prefix}-${(count += 1)}`;
};
