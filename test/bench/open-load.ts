/** Of how many an open load is made at once: every few milliseconds, however long those before take. */
const TICK_MS = 4;

/**
 * Does the work at a rate for so long, and does not wait for what it began: a load that waits for its answers slows down with what
 * it measures. @returns How many were begun.
 */
export const openLoad = async (perSecond: number, forMs: number, work: (number: number) => void): Promise<number> => {
  const begun = performance.now();
  let done = 0;
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const elapsed = Math.min(forMs, performance.now() - begun);
      for (const due = Math.floor((elapsed * perSecond) / 1_000); done < due; done += 1) work(done);
      if (elapsed < forMs) return;
      clearInterval(timer);
      resolve(done);
    }, TICK_MS);
  });
};
