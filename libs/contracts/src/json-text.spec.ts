import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JSON_DEPTH_MAX } from './json.ts';
import { parseJsonText } from './json-text.ts';

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

describe('JSON text from outside', () => {
  it('is read as JSON.parse reads it', () =>
    fc.assert(
      fc.property(fc.json({ depthSize: 'medium' }), (text) => {
        if (text.includes('__proto__')) return;
        expect(parseJsonText(text)).toEqual({ ok: true, value: JSON.parse(text) });
      }),
    ));
  it.each([
    ['a member twice', '{"a":1,"a":2}', 'names a member twice'],
    ['a member twice, with white space before the colon', '{"a" :1,"a"\n\t:2}', 'names a member twice'],
    ['a member twice, once by its escape', String.raw`{"a":1,"\u0061":2}`, 'names a member twice'],
    ['a member twice, both by an escaped quote', String.raw`{"\"":1,"\"":2}`, 'names a member twice'],
    ['a member twice, deep inside', '[{"x":[{"b":0,"b":0}]}]', 'names a member twice'],
    ['a key spelled __proto__', '{"__proto__":{}}', 'has a key spelled __proto__'],
    ['a key spelled __proto__ by an escape', String.raw`{"\u005f_proto__":{}}`, 'has a key spelled __proto__'],
    ['one level too many', nested(JSON_DEPTH_MAX + 1), `is nested deeper than ${JSON_DEPTH_MAX} levels`],
    ['an open string', '{"a', 'is not JSON'],
    ['a broken escape in a key', String.raw`{"\x":1}`, 'is not JSON'],
    ['a line break in a key', '{"a\nb":1}', 'is not JSON'],
    ['nothing', '', 'is not JSON'],
  ])('is refused for %s', (_, text, error) => expect(parseJsonText(text)).toEqual({ ok: false, error }));
  it.each([
    ['the same member in two objects', '[{"a":1},{"a":2}]'],
    ['the same member inside and outside', '{"a":{"a":1}}'],
    ['a value that looks like a member', String.raw`{"a":"\"a\":1","b":"a"}`],
    ['a value spelled __proto__', '{"a":"__proto__"}'],
    ['strings twice in an array', '["a","a"]'],
    ['as many levels as there may be', nested(JSON_DEPTH_MAX)],
  ])('may hold %s', (_, text) => expect(parseJsonText(text).ok).toBe(true));
});
