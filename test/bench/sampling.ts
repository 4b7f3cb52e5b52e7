/** Does the work one after the other. @returns Microseconds of each, the first `warm` left out. */
export const oneByOne = async (
  count: number,
  work: (index: number) => Promise<unknown>,
  warm = Math.ceil(count / 10),
): Promise<number[]> => {
  const taken: number[] = [];
  for (let index = -warm; index < count; index += 1) {
    const begun = performance.now();
    await work(index + warm);
    if (index >= 0) taken.push((performance.now() - begun) * 1_000);
  }
  return taken;
};

/** Does the work with so many in flight all the time, after a quarter of it to warm up. @returns How many were done in a second. */
export const inFlight = async (count: number, atOnce: number, work: (index: number) => Promise<unknown>): Promise<number> => {
  await spread(Math.ceil(count / 4), atOnce, work);
  const begun = performance.now();
  await spread(count, atOnce, work);
  return count / ((performance.now() - begun) / 1_000);
};

const spread = async (count: number, atOnce: number, work: (index: number) => Promise<unknown>): Promise<void> => {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await work(index);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
};
