import fc from 'fast-check';
import { drawFrom } from './draw.ts';
import type { Property } from './properties.ts';

/** Choices that the largest world takes, with room to spare: a list that ran out would only draw plain worlds. */
const CHOICES = 320;

/** Without bias: a byte is only a choice, and no choice is an edge. */
const choices = fc.noBias(fc.uint8Array({ minLength: CHOICES, maxLength: CHOICES, size: 'max' }));

export interface PropertyRun {
  readonly worlds: number;
  readonly seed?: number | undefined;
}

/**
 * Holds a property against that many worlds.
 *
 * @returns How often each of its premises was met.
 * @throws What fast-check found, shrunk, with the seed to see it again.
 */
export const runProperty = ({ premises, check }: Property, { worlds, seed }: PropertyRun): ReadonlyMap<string, number> => {
  const met = new Map<string, number>(premises.map((premise) => [premise, 0]));
  const count = (premise: string): void => void met.set(premise, (met.get(premise) ?? 0) + 1);
  fc.assert(
    fc.property(choices, (bytes) => check(drawFrom(bytes), count)),
    { numRuns: worlds, ...(seed === undefined ? {} : { seed }) },
  );
  return met;
};

/** The premises that were never met: of them, nothing was shown. */
export const unmet = (met: ReadonlyMap<string, number>): readonly string[] =>
  [...met].filter(([, times]) => times === 0).map(([premise]) => premise);
