/** Fewer than this say nothing of a median, however slow each is. */
const SAMPLES_MIN = 11;

/** Does the work one after the other for so long, the first tenth of it to warm up. @returns Microseconds of each. */
export const oneByOne = async (forMs: number, work: () => Promise<unknown>): Promise<number[]> => {
  const warmUntil = performance.now() + forMs / 10;
  do await work();
  while (performance.now() < warmUntil);
  const taken: number[] = [];
  const until = performance.now() + forMs;
  for (let begun = performance.now(); begun < until || taken.length < SAMPLES_MIN; begun = performance.now()) {
    await work();
    taken.push((performance.now() - begun) * 1_000);
  }
  return taken;
};

/** Does the work for so long with so many in flight all the time, after a quarter of it to warm up. @returns How many were done in a second. */
export const inFlight = async (forMs: number, atOnce: number, work: () => Promise<unknown>): Promise<number> => {
  await spread(forMs / 4, atOnce, work);
  const begun = performance.now();
  const done = await spread(forMs, atOnce, work);
  return done / ((performance.now() - begun) / 1_000);
};

const spread = async (forMs: number, atOnce: number, work: () => Promise<unknown>): Promise<number> => {
  const until = performance.now() + forMs;
  let done = 0;
  const worker = async (): Promise<void> => {
    do {
      await work();
      done += 1;
    } while (performance.now() < until);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return done;
};
