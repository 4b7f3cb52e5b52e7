import { describe, expect, it } from 'vitest';
import { tightestConstraints } from './constraints.ts';
import { at } from './testing/base-world.ts';

describe('what satisfies several constraints at once', () => {
  it('may be a single instant: a start that equals the end', () =>
    expect(tightestConstraints([{ notBefore: at('10:00:00') }, { expiresAt: at('10:00:00') }])).toEqual({
      notBefore: at('10:00:00'),
      expiresAt: at('10:00:00'),
    }));
  it('is nothing from a millisecond later', () =>
    expect(tightestConstraints([{ notBefore: at('10:00:00.001') }, { expiresAt: at('10:00:00') }])).toBeUndefined());
  it('is compared as instants, whatever their texts', () =>
    expect(tightestConstraints([{ notBefore: '2026-01-01T12:00:00+02:00' }, { expiresAt: at('10:00:00') }])).toEqual({
      notBefore: '2026-01-01T12:00:00+02:00',
      expiresAt: at('10:00:00'),
    }));
});
