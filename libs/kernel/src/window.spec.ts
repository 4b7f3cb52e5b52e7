import { describe, expect, it } from 'vitest';
import { grantOf, at, instant } from './testing/base-world.ts';
import { isInsideWindow, windowOf } from './window.ts';

const active = (changes: Parameters<typeof grantOf>[1], { now = '10:00:00.000' } = {}): boolean =>
  isInsideWindow(windowOf(grantOf('g', changes)), instant('10:00:00.000'), instant(now));

describe('a grant is inside its window', () => {
  it('from exactly the instant it was issued', () => expect(active({ issuedAt: at('10:00:00.000') })).toBe(true));
  it('not a millisecond earlier', () => expect(active({ issuedAt: at('10:00:00.001') })).toBe(false));
  it('from exactly its start', () => expect(active({ notBefore: at('10:00:00.000') })).toBe(true));
  it('not before its start', () => expect(active({ notBefore: at('10:00:00.001') })).toBe(false));
  it('up to the millisecond before its end', () => expect(active({ expiresAt: at('10:00:00.001') })).toBe(true));
  it('not at exactly its end', () => expect(active({ expiresAt: at('10:00:00.000') })).toBe(false));
  it('not when its end lies less than a millisecond ahead', () => expect(active({ expiresAt: at('10:00:00.0009') })).toBe(false));
  it('not from exactly its revocation', () => expect(active({ revokedAt: at('10:00:00.000') })).toBe(false));
  it('never when its start is its end', () => expect(active({ notBefore: at('10:00:00'), expiresAt: at('10:00:00') })).toBe(false));
});

describe('inside a turn', () => {
  it('an expiry counts as soon as it passes', () => expect(active({ expiresAt: at('10:05:00') }, { now: '10:05:00.000' })).toBe(false));
  it('a start that passes does not count', () => expect(active({ notBefore: at('10:05:00') }, { now: '10:10:00.000' })).toBe(false));
  it('an issue that passes does not count', () => expect(active({ issuedAt: at('10:05:00') }, { now: '10:10:00.000' })).toBe(false));
  it('a revocation after admission does not count', () =>
    expect(active({ revokedAt: at('10:05:00') }, { now: '10:10:00.000' })).toBe(true));
  it('a clock that goes back revives nothing', () => expect(active({ expiresAt: at('09:30:00') }, { now: '09:00:00.000' })).toBe(false));
});

describe('a time that cannot be read', () => {
  it.each(['issuedAt', 'notBefore', 'expiresAt', 'revokedAt'])('closes the window when it is %s', (field) =>
    expect(active({ [field]: 'tomorrow' })).toBe(false),
  );
  it('closes it when it is the instant of the operation', () =>
    expect(isInsideWindow(windowOf(grantOf('g', { expiresAt: at('11:00:00') })), instant('10:00:00'), NaN)).toBe(false));
});
