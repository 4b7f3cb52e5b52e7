import { type CapabilityConstraints, type Instant, byCodeUnit, instantOf } from '@sharedos/contracts';

export type ConstraintField = 'purposes' | 'notBefore' | 'expiresAt';

/**
 * The first field on which `inner` reaches outside `outer`, or `undefined`. An absent outer bound admits anything; a bound that
 * `inner` leaves out under a bounded `outer` is outside. An unreadable time on either side is outside too. `maxUses` and
 * `delegationDepth` take no part.
 *
 * @see spec/authorization.md §9.4
 */
export const constraintEnvelopeViolation = (inner: CapabilityConstraints, outer: CapabilityConstraints): ConstraintField | undefined => {
  if (!purposesWithin(inner.purposes, outer.purposes)) return 'purposes';
  if (!boundWithin(inner.notBefore, outer.notBefore, (mine, theirs) => mine >= theirs)) return 'notBefore';
  if (!boundWithin(inner.expiresAt, outer.expiresAt, (mine, theirs) => mine <= theirs)) return 'expiresAt';
  return undefined;
};

const purposesWithin = (inner: readonly string[] | undefined, outer: readonly string[] | undefined): boolean =>
  outer === undefined || (inner !== undefined && inner.every((purpose) => outer.includes(purpose)));

const boundWithin = (
  inner: string | undefined,
  outer: string | undefined,
  isWithin: (inner: Instant, outer: Instant) => boolean,
): boolean => {
  const mine = inner === undefined ? undefined : instantOf(inner);
  if (inner !== undefined && mine === undefined) return false;
  if (outer === undefined) return true;
  const theirs = instantOf(outer);
  return mine !== undefined && theirs !== undefined && isWithin(mine, theirs);
};

/** Whether every use that `inner` admits is admitted by `outer` too. */
export const constraintsAreWithin = (inner: CapabilityConstraints, outer: CapabilityConstraints): boolean =>
  constraintEnvelopeViolation(inner, outer) === undefined;

/**
 * The tightest envelope that lies within all of `sets`: latest start, earliest end, purposes in common (sorted), smallest
 * counts. Absent bounds are skipped, so no sets at all are unbounded. A winning time keeps the text it was written in.
 *
 * @returns `undefined` when nothing satisfies all: no purpose in common, a start after the end, or a time that cannot be read.
 * @see spec/authorization.md §9.4
 */
export const tightestConstraints = (sets: readonly CapabilityConstraints[]): CapabilityConstraints | undefined => {
  const notBefore = winningTime(
    sets.map((set) => set.notBefore),
    (candidate, best) => candidate > best,
  );
  const expiresAt = winningTime(
    sets.map((set) => set.expiresAt),
    (candidate, best) => candidate < best,
  );
  if (notBefore === 'unreadable' || expiresAt === 'unreadable') return undefined;
  if (notBefore !== undefined && expiresAt !== undefined && notBefore.instant > expiresAt.instant) return undefined;
  const stated = sets.flatMap(({ purposes }) => (purposes === undefined ? [] : [purposes]));
  const purposes = stated.length === 0 ? undefined : inCommon(stated);
  if (purposes?.length === 0) return undefined;
  const maxUses = smallest(sets.map((set) => set.maxUses));
  const delegationDepth = smallest(sets.map((set) => set.delegationDepth));
  return {
    ...(purposes === undefined ? {} : { purposes }),
    ...(notBefore === undefined ? {} : { notBefore: notBefore.text }),
    ...(expiresAt === undefined ? {} : { expiresAt: expiresAt.text }),
    ...(maxUses === undefined ? {} : { maxUses }),
    ...(delegationDepth === undefined ? {} : { delegationDepth }),
  };
};

interface ReadTime {
  readonly text: string;
  readonly instant: Instant;
}

const winningTime = (
  texts: readonly (string | undefined)[],
  beats: (candidate: Instant, best: Instant) => boolean,
): ReadTime | 'unreadable' | undefined => {
  let best: ReadTime | undefined;
  for (const text of texts) {
    if (text === undefined) continue;
    const instant = instantOf(text);
    if (instant === undefined) return 'unreadable';
    if (best === undefined || beats(instant, best.instant)) best = { text, instant };
  }
  return best;
};

const inCommon = (lists: readonly (readonly string[])[]): string[] =>
  [...new Set(lists[0])].filter((purpose) => lists.every((list) => list.includes(purpose))).sort(byCodeUnit);

const smallest = (counts: readonly (number | undefined)[]): number | undefined => {
  const stated = counts.filter((count) => count !== undefined);
  return stated.length === 0 ? undefined : Math.min(...stated);
};
