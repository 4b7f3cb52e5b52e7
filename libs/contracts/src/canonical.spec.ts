import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { byCodeUnit, canonicalJson } from './canonical.ts';

/** The same said at length: a copy with its keys in order, written by the language. */
const longhand = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(longhand).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => byCodeUnit(a, b));
  return `{${entries.map(([key, member]) => `${JSON.stringify(key)}:${longhand(member)}`).join(',')}}`;
};

describe('canonical JSON', () => {
  it('is what the language writes, with keys in the order of their code units', () => {
    // Whole code points, halves of pairs, control characters and quotes; numbers in keys, which an object would put first.
    const unit = fc.nat({ max: 0xffff }).map((code) => String.fromCharCode(code));
    const text = fc.oneof(
      fc.string({ unit }),
      fc.string({ unit: 'binary' }),
      fc.string(),
      fc.constantFrom('10', '9', 'a"b', '\\', '\u2028', '__proto__'),
    );
    const value = fc.letrec((tie) => ({
      json: fc.oneof(
        { maxDepth: 3 },
        fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer(), fc.boolean(), fc.constant(null)),
        fc.array(tie('json'), { maxLength: 5 }),
        fc.dictionary(text, tie('json'), { maxKeys: 40 }),
      ),
    })).json;
    fc.assert(
      fc.property(value, (json) => canonicalJson(json) === longhand(json)),
      { numRuns: 2_000 },
    );
  });

  it('orders many keys as it orders few', () => {
    const keys = Array.from({ length: 200 }, (_, index) => `${(index * 7919) % 211}`);
    const object = Object.fromEntries(keys.map((key) => [key, 1]));
    expect(canonicalJson(object)).toBe(longhand(object));
  });

  it.each([undefined, Number.NaN, Infinity, 1n, Symbol('s'), () => 1])('has none for %s, wherever it is', (no) => {
    for (const value of [no, [no], { a: no }, { a: [1, { b: no }] }]) expect(() => canonicalJson(value)).toThrow(TypeError);
  });
});
