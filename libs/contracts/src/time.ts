import { z } from 'zod';
import { bounded } from './bounded.ts';

const SHAPE = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/;

/** Milliseconds since the Unix epoch. Every comparison of time is made on instants, never on text. */
export type Instant = number;

/**
 * Reads an RFC 3339 timestamp as an instant; digits past milliseconds are dropped, not rounded.
 *
 * Seconds, the offset colon and an offset in range are required: the reference let all three slip and then treated the value
 * as unreadable later, where a mistake is costlier.
 *
 * @returns The instant, or `undefined` for anything that is not such a timestamp on a real calendar day.
 * @see spec/contracts.md §0, "Ts"
 */
export const instantOf = (text: string): Instant | undefined => {
  if (!SHAPE.test(text)) return undefined;
  const [hour, minute, second] = [digits(text, 11, 2), digits(text, 14, 2), digits(text, 17, 2)];
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  const midnight = midnightOf(text);
  const offset = text.endsWith('Z') ? 0 : offsetMinutes(text);
  if (midnight === undefined || offset === undefined) return undefined;
  return midnight + (hour * 60 + minute - offset) * 60_000 + second * 1000 + millisecondsOf(text);
};

/** The number that stands in `length` digits of a text whose shape is known. */
const digits = (text: string, at: number, length: number): number => {
  let value = 0;
  for (let index = at; index < at + length; index += 1) value = value * 10 + text.charCodeAt(index) - 48;
  return value;
};

/** The day last read and its instant: almost every timestamp of a busy minute is of one day. */
let lastDay = '';
let lastMidnight: Instant | undefined;

/** Midnight in UTC of the day a timestamp begins with; `undefined` for a day that no calendar has. */
const midnightOf = (text: string): Instant | undefined => {
  const day = text.slice(0, 10);
  if (day === lastDay) return lastMidnight;
  const month = digits(text, 5, 2) - 1;
  const calendar = new Date(0);
  calendar.setUTCFullYear(digits(text, 0, 4), month, digits(text, 8, 2));
  lastDay = day;
  lastMidnight = calendar.getUTCMonth() === month && calendar.getUTCDate() === digits(text, 8, 2) ? calendar.getTime() : undefined;
  return lastMidnight;
};

const offsetMinutes = (text: string): number | undefined => {
  const at = text.length - 6;
  const [hour, minute] = [digits(text, at + 1, 2), digits(text, at + 4, 2)];
  if (hour > 23 || minute > 59) return undefined;
  return (text[at] === '-' ? -1 : 1) * (hour * 60 + minute);
};

/** The first three digits of the fraction, where there is one. */
const millisecondsOf = (text: string): number => {
  if (text[19] !== '.') return 0;
  let value = 0;
  for (let index = 20; index < 23; index += 1) {
    const code = text.charCodeAt(index);
    value = value * 10 + (code >= 48 && code <= 57 ? code - 48 : 0);
    // A fraction of fewer digits ends in `Z` or a sign; what would follow counts as zeros.
    if (code < 48 || code > 57) return value * 10 ** (22 - index);
  }
  return value;
};

/** Writes an instant as a timestamp with milliseconds, in UTC. */
export const timestampOf = (instant: Instant): string => new Date(instant).toISOString();

/** An RFC 3339 timestamp. */
export const Ts = bounded(z.string(), 0, 64)
  .refine((text) => instantOf(text) !== undefined, 'must be an RFC 3339 timestamp with seconds and an offset')
  .meta({ format: 'date-time' });
export type Ts = string;
