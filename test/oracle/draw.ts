/**
 * Takes choices off a list of bytes. Zero is always the plainest choice, and so is every choice after the list has run out:
 * a counterexample that fast-check shrinks towards zeroes is one with nothing unusual left but what makes it fail.
 */
export interface Draw {
  one<T>(options: readonly T[]): T;
  /** True once in `times` choices. */
  rarely(times: number): boolean;
  /** A whole number below `limit`. */
  below(limit: number): number;
  /** Some of the options, in their order; by default none. */
  some<T>(options: readonly T[], times: number): T[];
}

export const drawFrom = (bytes: Uint8Array): Draw => {
  let at = 0;
  const next = (): number => bytes[at++] ?? 0;
  const below = (limit: number): number => next() % limit;
  const rarely = (times: number): boolean => below(times) === times - 1;
  return {
    one: <T>(options: readonly T[]): T => options[below(options.length)] as T,
    rarely,
    below,
    some: (options, times) => options.filter(() => rarely(times)),
  };
};
