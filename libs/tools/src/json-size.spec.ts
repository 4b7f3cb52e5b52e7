import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isLargerThan } from './json-size.ts';

describe('the size of a JSON text', () => {
  it('is judged as if it were written out, whatever is in it', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), fc.integer({ min: -3, max: 3 }), (value, off) => {
        const bytes = Buffer.byteLength(JSON.stringify(value));
        expect(isLargerThan(value, bytes + off)).toBe(off < 0);
      }),
      { numRuns: 2_000 },
    );
  });
  it.each([0, 1, 300, 999])('finds what is written long wherever it is, %i characters from the end', (from) => {
    const text = `${'a'.repeat(999 - from)}\u0001${'a'.repeat(from)}`;
    const bytes = Buffer.byteLength(JSON.stringify({ text }));
    expect([isLargerThan({ text }, bytes), isLargerThan({ text }, bytes - 1)]).toEqual([false, true]);
  });
  it.each(['\u0001', '"', '\\', '\n', 'é', '🙂', '\ud800', 'a'])('counts %j as JSON writes it', (letter) => {
    const text = letter.repeat(1_000);
    const bytes = Buffer.byteLength(JSON.stringify({ text }));
    expect([isLargerThan({ text }, bytes), isLargerThan({ text }, bytes - 1)]).toEqual([false, true]);
  });
});
