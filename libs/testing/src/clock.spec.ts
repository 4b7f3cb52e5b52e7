import { describe, expect, it } from 'vitest';
import { countingIds, manualClock } from './clock.ts';

describe('a manual clock', () => {
  it('stands still until it is advanced', () => {
    const clock = manualClock('2026-01-01T12:00:00Z');
    expect(clock.now()).toBe(clock.now());
    clock.advance(60_000);
    expect(new Date(clock.now()).toISOString()).toBe('2026-01-01T12:01:00.000Z');
  });
  it('can be set back', () => {
    const clock = manualClock('2026-01-01T12:00:00Z');
    clock.set('2025-12-31T23:59:59Z');
    expect(clock.now()).toBe(Date.UTC(2025, 11, 31, 23, 59, 59));
  });
  it('refuses what is no time', () => expect(() => manualClock('noon')).toThrow(RangeError));
});

describe('counting ids', () => {
  it('repeat exactly, each counter by itself', () => {
    const [grant, turn] = [countingIds('grant'), countingIds('turn')];
    expect([grant(), turn(), grant()]).toEqual(['grant-1', 'turn-1', 'grant-2']);
  });
});
