import { z } from 'zod';
import { bounded } from './bounded.ts';

const SHAPE = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:Z|[+-](\d{2}):(\d{2}))$/;

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
  const parts = SHAPE.exec(text);
  if (parts === null) return undefined;
  const [, year, month, day, hour, minute, second, offsetHour, offsetMinute] = parts;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  if (Number(offsetHour ?? 0) > 23 || Number(offsetMinute ?? 0) > 59) return undefined;
  const calendar = new Date(0);
  calendar.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (calendar.getUTCMonth() !== Number(month) - 1 || calendar.getUTCDate() !== Number(day)) return undefined;
  const instant = Date.parse(text);
  return Number.isNaN(instant) ? undefined : instant;
};

/** Writes an instant as a timestamp with milliseconds, in UTC. */
export const timestampOf = (instant: Instant): string => new Date(instant).toISOString();

/** An RFC 3339 timestamp. */
export const Ts = bounded(z.string(), 0, 64)
  .refine((text) => instantOf(text) !== undefined, 'must be an RFC 3339 timestamp with seconds and an offset')
  .meta({ format: 'date-time' });
export type Ts = string;
