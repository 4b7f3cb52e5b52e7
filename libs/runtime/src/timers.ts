/** What the envelope needs of time beside the clock. Tests advance it by hand. */
export interface Timers {
  /** Calls `fire` once, `delayMs` milliseconds from now, unless the returned function is called before. */
  after(delayMs: number, fire: () => void): () => void;
}

export const systemTimers: Timers = {
  after: (delayMs, fire) => {
    const timer = setTimeout(fire, delayMs);
    return () => clearTimeout(timer);
  },
};
