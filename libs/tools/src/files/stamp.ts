let last = 0;

/**
 * A time of change for a file that is written, in seconds: now, and later than any given before by this thread. The system's own
 * clock for files ticks every few milliseconds, so a number that was freed and taken again within one tick could otherwise give a new
 * file the version of an old one.
 */
export const nextStamp = (): number => {
  last = Math.max(Date.now() * 1_000, last + 1);
  return last / 1_000_000;
};
