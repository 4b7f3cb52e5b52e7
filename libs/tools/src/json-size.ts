import type { Json } from '@sharedos/contracts';

const NUMBER_BYTES_MAX = 25;
/** Those that JSON writes with six characters; quotes, backslashes and line ends take two. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const ESCAPED_LONG = /[\u0000-\u0007\u000b\u000e-\u001f]/;

/**
 * Whether the JSON text of a value has more bytes than `max`. Most values are far below, and a bound that is quick to find says so;
 * only what might be above is written out to be measured.
 */
export const isLargerThan = (value: unknown, max: number): boolean =>
  bytesAtMost(value as Json, atWorst) > max &&
  bytesAtMost(value as Json, within(max)) > max &&
  Buffer.byteLength(JSON.stringify(value)) > max;

/** A bound of one text. */
type TextBytes = (text: string) => number;

const bytesAtMost = (value: Json, textBytes: TextBytes): number => {
  if (typeof value === 'string') return textBytes(value);
  if (typeof value !== 'object' || value === null) return NUMBER_BYTES_MAX;
  let bytes = 2;
  if (Array.isArray(value)) for (const item of value as readonly Json[]) bytes += 1 + bytesAtMost(item, textBytes);
  else for (const [key, member] of Object.entries(value)) bytes += 2 + textBytes(key) + bytesAtMost(member as Json, textBytes);
  return bytes;
};

/** Without a look at the text: every unit of it in six characters. */
const atWorst: TextBytes = (text) => 2 + 6 * text.length;

/** What a value has beside its one long text, in most results. */
const REST_BYTES = 4_096;

/**
 * With a look at as much of the text as could make it too long: what is not written with six characters takes three bytes at most, and so
 * many of the rest may be written with six.
 */
const within =
  (max: number): TextBytes =>
  (text) => {
    if (!text.isWellFormed()) return atWorst(text);
    const bytes = 2 + 3 * text.length;
    const spared = Math.min(text.length, Math.floor((max - REST_BYTES - bytes) / 3));
    if (spared > 0) return ESCAPED_LONG.test(text.slice(0, text.length - spared)) ? atWorst(text) : bytes + 3 * spared;
    // Counting the bytes of a text costs more than looking through it.
    return ESCAPED_LONG.test(text) ? atWorst(text) : 2 + 2 * Buffer.byteLength(text);
  };
