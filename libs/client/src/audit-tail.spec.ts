import { describe, expect, it } from 'vitest';
import { GapDetector } from './audit-tail.ts';

describe('a gap in the live audit', () => {
  it('does not show while every record names the one before it', () => {
    const gaps = new GapDetector();
    expect([gaps.see('a', 10, 4), gaps.see('a', 12, 10), gaps.see('b', 13, 2), gaps.see('a', 14, 12)]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('shows when a record names one that was not seen', () => {
    const gaps = new GapDetector();
    gaps.see('a', 10, 4);
    expect(gaps.see('a', 15, 12)).toEqual({ natsSubject: 'a', after: 10, before: 15 });
  });

  it('shows on a subject not seen before, when the missed record is younger than our listening', () => {
    const gaps = new GapDetector();
    gaps.see('a', 10, 4);
    expect(gaps.see('b', 20, 15)).toEqual({ natsSubject: 'b', after: 10, before: 20 });
  });

  it('does not show for what is older than our listening', () => {
    const gaps = new GapDetector();
    gaps.see('a', 10, 4);
    expect(gaps.see('b', 20, 9)).toBeUndefined();
  });

  it('does not show when a record comes twice', () => {
    const gaps = new GapDetector();
    gaps.see('a', 10, 4);
    gaps.see('a', 12, 10);
    expect([gaps.see('a', 12, 10), gaps.see('a', 13, 12)]).toEqual([undefined, undefined]);
  });
});
