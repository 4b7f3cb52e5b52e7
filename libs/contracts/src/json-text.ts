import { type Json, JSON_DEPTH_MAX } from './json.ts';
import { type Result, err, ok } from './result.ts';

const WHITESPACE = new Set([' ', '\t', '\n', '\r']);

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
    const character = text[at];
    if (character === '{' || character === '[') {
      if (open.length >= JSON_DEPTH_MAX) return `is nested deeper than ${JSON_DEPTH_MAX} levels`;
      open.push(character === '{' ? new Set() : undefined);
    } else if (character === '}' || character === ']') {
      open.pop();
    } else if (character === '"') {
      const end = endOfString(text, at);
      if (end === undefined) return undefined;
      const keys = open.at(-1);
      if (keys !== undefined && nextIsColon(text, end + 1)) {
        const key = decodeString(text.slice(at, end + 1));
        if (key === undefined) return undefined;
        if (key === '__proto__') return 'has a key spelled __proto__';
        if (keys.has(key)) return 'names a member twice';
        keys.add(key);
      }
      at = end;
    }
  }
  return undefined;
};

const endOfString = (text: string, start: number): number | undefined => {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"') return at;
  }
  return undefined;
};

const nextIsColon = (text: string, from: number): boolean => {
  let at = from;
  while (at < text.length && WHITESPACE.has(text[at] as string)) at += 1;
  return text[at] === ':';
};

const decodeString = (quoted: string): string | undefined => {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return undefined;
  }
};
