import { describe, expect, it } from 'vitest';
import { constraintEnvelopeViolation, constraintsAreWithin, tightestConstraints } from './constraints.ts';
import { at } from './testing/base-world.ts';

describe('constraints escape an envelope', () => {
  it('by a purpose it does not have', () =>
    expect(constraintEnvelopeViolation({ purposes: ['a', 'b'] }, { purposes: ['a'] })).toBe('purposes'));
  it('by naming no purpose where it names some', () => expect(constraintEnvelopeViolation({}, { purposes: ['a'] })).toBe('purposes'));
  it('or they are within it, in one word', () =>
    expect([constraintsAreWithin({ purposes: ['a'] }, {}), constraintsAreWithin({}, { purposes: ['a'] })]).toEqual([true, false]));
  it('by starting earlier', () =>
    expect(constraintEnvelopeViolation({ notBefore: at('08:59:59') }, { notBefore: at('09:00:00') })).toBe('notBefore'));
  it('by having no start where it has one', () => expect(constraintEnvelopeViolation({}, { notBefore: at('09:00:00') })).toBe('notBefore'));
  it('by ending later', () =>
    expect(constraintEnvelopeViolation({ expiresAt: at('11:00:01') }, { expiresAt: at('11:00:00') })).toBe('expiresAt'));
  it('by having no end where it has one', () => expect(constraintEnvelopeViolation({}, { expiresAt: at('11:00:00') })).toBe('expiresAt'));
  it('by a time that cannot be read, even where there is no bound', () =>
    expect(constraintEnvelopeViolation({ expiresAt: 'soon' }, {})).toBe('expiresAt'));
  it('on the first field, when on several', () =>
    expect(constraintEnvelopeViolation({}, { purposes: ['a'], expiresAt: at('11:00:00') })).toBe('purposes'));
  it('but not by equal bounds written in another zone', () =>
    expect(constraintEnvelopeViolation({ expiresAt: '2026-01-01T13:00:00+02:00' }, { expiresAt: at('11:00:00') })).toBeUndefined());
  it('but not by counts, which are no part of it', () =>
    expect(constraintEnvelopeViolation({ maxUses: 9, delegationDepth: 9 }, { maxUses: 1, delegationDepth: 0 })).toBeUndefined());
});

describe('the tightest of several constraints', () => {
  it('of none is unbounded', () => expect(tightestConstraints([])).toEqual({}));
  it('takes the latest start, the earliest end, the common purposes and the smallest counts', () =>
    expect(
      tightestConstraints([
        { purposes: ['b', 'a'], notBefore: at('08:00:00'), expiresAt: at('12:00:00'), maxUses: 5 },
        { purposes: ['a', 'c', 'b'], notBefore: '2026-01-01T11:00:00+02:00', expiresAt: at('11:00:00'), maxUses: 7, delegationDepth: 0 },
      ]),
    ).toEqual({ purposes: ['a', 'b'], notBefore: '2026-01-01T11:00:00+02:00', expiresAt: at('11:00:00'), maxUses: 5, delegationDepth: 0 }));
  it('does not exist without a purpose in common', () =>
    expect(tightestConstraints([{ purposes: ['a'] }, { purposes: ['b'] }])).toBeUndefined());
  it('does not exist when it would end before it starts', () =>
    expect(tightestConstraints([{ notBefore: at('11:00:01') }, { expiresAt: at('11:00:00') }])).toBeUndefined());
  it('does not exist when a time cannot be read', () =>
    expect(tightestConstraints([{ expiresAt: at('11:00:00') }, { expiresAt: 'soon' }])).toBeUndefined());
});
