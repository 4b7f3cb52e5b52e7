import { hash } from 'node:crypto';
import type { Json } from './json.ts';

/**
 * Canonical JSON: object keys in UTF-16 code-unit order, arrays in order, no spaces, scalars as `JSON.stringify` writes them.
 *
 * Code-unit order everywhere is a decision of ours: the reference sorts by locale, which gives other hashes for keys that mix
 * letter case or punctuation.
 *
 * @throws TypeError on anything that is not JSON, an `undefined` member included: it must never reach a hash.
 * @see spec/contracts.md §0, "Canonical JSON and hashes"
 */
export const canonicalJson = (value: unknown): string => {
  if (typeof value === 'string') return quoted(value);
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError('a number that is not finite has no canonical JSON');
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) {
    let text = '[';
    for (let index = 0; index < value.length; index += 1) text += (index === 0 ? '' : ',') + canonicalJson(value[index]);
    return `${text}]`;
  }
  if (typeof value === 'object') {
    const object = value as Readonly<Record<string, Json>>;
    let text = '{';
    for (const key of inOrder(Object.keys(object))) text += `${text === '{' ? '' : ','}${quoted(key)}:${canonicalJson(object[key])}`;
    return `${text}}`;
  }
  throw new TypeError(`a ${typeof value} has no canonical JSON`);
};

/** Code units but those that `JSON.stringify` always writes as they are: control characters, `"`, `\`, and halves of pairs. */
const ESCAPED = /[^ !#-[\]-\ud7ff\ue000-\uffff]/;

/** Text as JSON. Most has nothing to escape, and looking is a third of the cost of having it looked for. */
const quoted = (text: string): string => (ESCAPED.test(text) ? JSON.stringify(text) : `"${text}"`);

/** Beyond this many, moving keys one by one costs more than sorting them. */
const FEW_KEYS = 32;

/** Sorts in place. Objects have few keys, and those in order already. */
const inOrder = (keys: string[]): readonly string[] => {
  if (keys.length > FEW_KEYS) return keys.sort(byCodeUnit);
  for (let next = 1; next < keys.length; next += 1) {
    const key = keys[next] as string;
    let place = next;
    for (; place > 0 && (keys[place - 1] as string) > key; place -= 1) keys[place] = keys[place - 1] as string;
    keys[place] = key;
  }
  return keys;
};

/** Orders two strings by UTF-16 code unit: the one order this system sorts text by. */
export const byCodeUnit = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** SHA-256 of the UTF-8 bytes of `text`, as 64 lower-case hex digits. */
export const sha256 = (text: string): string => hash('sha256', text, 'hex');

/** SHA-256 of the canonical JSON of `value`. */
export const hashOf = (value: unknown): string => sha256(canonicalJson(value));

/** Whether two values have the same canonical JSON. Two addresses are equal exactly then (spec/contracts.md §0.5). */
export const sameJson = (a: unknown, b: unknown): boolean => a === b || canonicalJson(a) === canonicalJson(b);
