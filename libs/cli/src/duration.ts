import { instantOf, timestampOf } from '@sharedos/contracts';
import { usageFailure } from './exit-code.ts';

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90s`, `30m`, `12h`, `7d` in milliseconds. */
export const parseDuration = (text: string): number => {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined) throw usageFailure(`"${text}" is not a duration: write 90s, 30m, 12h or 7d`);
  return Number(count) * (UNITS[unit] as number);
};

/** A timestamp as it stands. */
export const parseTimestamp = (text: string): string => {
  if (instantOf(text) !== undefined) return text;
  throw usageFailure(`"${text}" is not a time: write 2026-12-31T00:00:00Z`);
};

/** A timestamp, or a duration from `now` on. */
export const parseWhen = (text: string, now: number): string => {
  if (instantOf(text) !== undefined) return text;
  if (/^\d+[smhd]$/.test(text)) return timestampOf(now + parseDuration(text));
  throw usageFailure(`"${text}" is neither a time nor a duration: write 2026-12-31T00:00:00Z, or 12h`);
};

/** A timestamp, or a duration back from `now`. */
export const parseSince = (text: string, now: number): string => {
  if (instantOf(text) !== undefined) return text;
  if (/^\d+[smhd]$/.test(text)) return timestampOf(now - parseDuration(text));
  throw usageFailure(`"${text}" is neither a time nor so long ago: write 2026-12-31T00:00:00Z, or 15m`);
};
