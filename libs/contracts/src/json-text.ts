import { type Json, JSON_DEPTH_MAX } from './json.ts';
import { type Result, err, ok } from './result.ts';

const WHITESPACE = new Set([' ', '\t', '\n', '\r']);
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET, QUOTE, BACKSLASH, COLON] = [0x7b, 0x7d, 0x5b, 0x5d, 0x22, 0x5c, 0x3a] as const;

/**
 * Parses JSON text from outside, refusing what `JSON.parse` would let through: a member named twice (the last would silently
 * win), nesting over {@link JSON_DEPTH_MAX}, and a `__proto__` key.
 *
 * `JSON.parse` does the grammar; the scan before it only tracks where object keys stand, so it may assume nothing about
 * validity and simply gives up where the text is not JSON: `JSON.parse` then says so.
 */
export const parseJsonText = (text: string): Result<Json, string> => {
  const violation = scan(text);
  if (violation !== undefined) return err(violation);
  try {
    return ok(JSON.parse(text) as Json);
  } catch {
    return err('is not JSON');
  }
};

/** One open container: the keys seen so far, or `undefined` inside an array. */
type Frame = Set<string> | undefined;

const scan = (text: string): string | undefined => {
  const open: Frame[] = [];
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (open.length >= JSON_DEPTH_MAX) return `is nested deeper than ${JSON_DEPTH_MAX} levels`;
        open.push(text.charCodeAt(at) === OPEN_BRACE ? new Set() : undefined);
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        open.pop();
        break;
      case QUOTE: {
        const end = endOfString(text, at);
        if (end === undefined) return undefined;
        const keys = open.at(-1);
        if (keys !== undefined && nextIsColon(text, end + 1)) {
          const key = keyIn(text, at, end);
          if (key === undefined) return undefined;
          if (key === '__proto__') return 'has a key spelled __proto__';
          if (keys.has(key)) return 'names a member twice';
          keys.add(key);
        }
        at = end;
      }
    }
  }
  return undefined;
};

const endOfString = (text: string, start: number): number | undefined => {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === BACKSLASH) at += 1;
    else if (code === QUOTE) return at;
  }
  return undefined;
};

const nextIsColon = (text: string, from: number): boolean => {
  let at = from;
  while (WHITESPACE.has(text[at] ?? '')) at += 1;
  return text.charCodeAt(at) === COLON;
};

/** The key between two quotes. Only one with an escape needs decoding, which costs more than all the rest of the scan. */
const keyIn = (text: string, start: number, end: number): string | undefined => {
  const raw = text.slice(start + 1, end);
  if (!raw.includes('\\')) return raw;
  try {
    return JSON.parse(`"${raw}"`) as string;
  } catch {
    return undefined;
  }
};
