/** A clock that stands still until it is told to go on. */
export interface ManualClock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  advance(byMs: number): void;
  set(iso: string): void;
}

/** @throws RangeError when `iso` is no timestamp. */
export const manualClock = (iso: string): ManualClock => {
  let nowMs = instant(iso);
  return {
    now: () => nowMs,
    advance: (byMs) => {
      nowMs += byMs;
    },
    set: (next) => {
      nowMs = instant(next);
    },
  };
};

/** Ids `prefix-1`, `prefix-2`, … so that a failing run repeats exactly. */
export const countingIds = (prefix: string): (() => string) => {
  let count = 0;
  return () => `${prefix}-${(count += 1)}`;
};

const instant = (iso: string): number => {
  const value = Date.parse(iso);
  if (Number.isNaN(value)) throw new RangeError(`not a timestamp: ${iso}`);
  return value;
};
