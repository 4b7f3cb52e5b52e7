import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { instantOf, timestampOf } from './time.ts';

const number = (least: number, most: number, width: number) =>
  fc.integer({ min: least, max: most }).map((value) => String(value).padStart(width, '0'));
const fraction = fc.oneof(fc.constant(''), fc.stringMatching(/^\.\d{1,9}$/));
const offset = fc.oneof(fc.constant('Z'), fc.tuple(fc.constantFrom('+', '-'), number(0, 26, 2), number(0, 62, 2)));

/** Timestamps of the right shape, about half of them of a day, an hour or an offset that does not exist. */
const shaped = fc
  .tuple(number(0, 9999, 4), number(0, 13, 2), number(0, 32, 2), number(0, 24, 2), number(0, 60, 2), number(0, 60, 2), fraction, offset)
  .map(([year, month, day, hour, minute, second, part, zone]) => {
    const spelled = typeof zone === 'string' ? zone : `${zone[0]}${zone[1]}:${zone[2]}`;
    return `${year}-${month}-${day}T${hour}:${minute}:${second}${part}${spelled}`;
  });

/** The same rule by the platform's own reading, which lets a 31st of February and an offset of 99 hours slip. */
const longhand = (text: string): number | undefined => {
  const [date = '', rest = ''] = text.split('T');
  const [hour = 0, minute = 0, second = 0] = rest.slice(0, 8).split(':').map(Number);
  const zone = /([+-])(\d\d):(\d\d)$/.exec(rest);
  if (hour > 23 || minute > 59 || second > 59 || Number(zone?.[2] ?? 0) > 23 || Number(zone?.[3] ?? 0) > 59) return undefined;
  const midnight = new Date(`${date}T00:00:00.000Z`);
  if (Number.isNaN(midnight.getTime()) || midnight.toISOString().slice(0, 10) !== date) return undefined;
  const instant = Date.parse(text);
  return Number.isNaN(instant) ? undefined : instant;
};

describe('reading a timestamp', () => {
  it('finds the instant that the platform finds, on real days and in real offsets alone', () => {
    let read = 0;
    let refused = 0;
    fc.assert(
      fc.property(shaped, (text) => {
        const instant = instantOf(text);
        expect(instant).toBe(longhand(text));
        if (instant === undefined) refused += 1;
        else read += 1;
      }),
      { numRuns: 5_000 },
    );
    expect(Math.min(read, refused)).toBeGreaterThan(100);
  });

  it('drops digits past milliseconds and rounds nothing', () => {
    expect(instantOf('2026-01-01T00:00:00.9999Z')).toBe(Date.UTC(2026, 0, 1, 0, 0, 0, 999));
  });

  it('reads back what was written, whatever was read before', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: Date.UTC(1, 0, 1), max: Date.UTC(9999, 11, 31) }), { maxLength: 4 }), (instants) => {
        for (const instant of instants) expect(instantOf(timestampOf(instant))).toBe(instant);
      }),
    );
  });

  it.each([
    '',
    '2026-01-01',
    '2026-01-01T00:00Z',
    '2026-01-01T00:00:00',
    '2026-01-01T00:00:00.Z',
    '2026-01-01 00:00:00Z',
    '2026-01-01T00:00:00z',
    '2026-01-01T00:00:00+0100',
    '+002026-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z ',
    '٢٠٢٦-01-01T00:00:00Z',
  ])('refuses "%s"', (text) => expect(instantOf(text)).toBeUndefined());
});
