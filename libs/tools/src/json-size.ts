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
  bytesAtMost(value as Json) > max && Buffer.byteLength(JSON.stringify(value)) > max;

const bytesAtMost = (value: Json): number => {
  if (typeof value === 'string') return stringAtMost(value);
  if (typeof value !== 'object' || value === null) return NUMBER_BYTES_MAX;
  let bytes = 2;
  if (Array.isArray(value)) for (const item of value as readonly Json[]) bytes += 1 + bytesAtMost(item);
  else for (const [key, member] of Object.entries(value)) bytes += 2 + stringAtMost(key) + bytesAtMost(member as Json);
  return bytes;
};

const stringAtMost = (text: string): number =>
  !text.isWellFormed() || ESCAPED_LONG.test(text) ? 2 + 6 * text.length : 2 + 2 * Buffer.byteLength(text);
