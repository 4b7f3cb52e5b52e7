import type { Finding } from '../finding.ts';

/** What one process, or the broker, held at one moment of a run. */
export interface Sample {
  /** `tool-executor 1`, or `consumers of LEDGER`. */
  readonly of: string;
  readonly what: 'bytes' | 'files' | 'consumers';
  readonly value: number;
}

/** How much more the end of a run may hold than its middle: what a garbage collector leaves, a connection that is just being made. */
const ALLOWED = {
  bytes: (middle: number): number => middle * 0.15 + 24 * 1024 * 1024,
  files: (): number => 8,
  consumers: (): number => 2,
} as const;

const RULES = {
  bytes: 'memory is flat',
  files: 'open files and connections are flat',
  consumers: 'consumers of the streams are flat',
} as const;

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/**
 * Holds the last third of a run against its middle third: the first third fills caches and compiles code. A leak goes on growing.
 *
 * @param samples In the order they were taken, at least nine of each.
 */
export const judgeSoak = (samples: readonly Sample[]): readonly Finding[] =>
  (['bytes', 'files', 'consumers'] as const).map((what) => {
    const mine = samples.filter((sample) => sample.what === what);
    const contradictions = [...new Set(mine.map(({ of }) => of))].flatMap((of) => {
      const values = mine.filter((sample) => sample.of === of).map(({ value }) => value);
      const third = Math.floor(values.length / 3);
      if (third < 3) return [`${of}: only ${values.length} samples`];
      const [middle, last] = [median(values.slice(third, 2 * third)), median(values.slice(-third))];
      return last - middle <= ALLOWED[what](middle) ? [] : [`${of}: ${middle} in the middle, ${last} at the end`];
    });
    return { rule: RULES[what], contradictions: mine.length === 0 ? ['nothing was measured'] : contradictions };
  });
