/** Numbers that follow from a seed alone: the same seed draws the same lots. (mulberry32) */
export interface Lots {
  /** A whole number below `limit`. */
  below(limit: number): number;
  one<T>(options: readonly T[]): T;
  shuffled<T>(items: readonly T[]): T[];
}

export const lotsFrom = (seed: number): Lots => {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const below = (limit: number): number => Math.floor((next() / 2 ** 32) * limit);
  return {
    below,
    one: <T>(options: readonly T[]): T => options[below(options.length)] as T,
    shuffled: (items) => {
      const rest = [...items];
      return Array.from({ length: rest.length }, () => rest.splice(below(rest.length), 1)[0] as (typeof rest)[number]);
    },
  };
};
