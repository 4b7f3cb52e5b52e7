import type { Draw } from '../oracle/draw.ts';

// Documents as a hostile or careless sender would write them: by the published schema, and then spoiled in a place or two.

type Schema = Readonly<Record<string, unknown>>;
export type Document = unknown;

/** Subtrees below this are left at their plainest, so that a document stays small. */
const DEPTH_DRAWN = 7;

/** A document that a JSON Schema asks for. Rules that a schema cannot state may still refuse it. */
export const documentOf = (schema: Schema, draw: Draw, depth = 0): Document => {
  if ('const' in schema) return schema['const'];
  if (Array.isArray(schema['enum'])) return draw.one(schema['enum'] as unknown[]);
  const choices = schema['oneOf'] ?? schema['anyOf'];
  if (Array.isArray(choices)) return documentOf(draw.one(choices as Schema[]), draw, depth);
  switch (schema['type']) {
    case 'object':
      return objectOf(schema, draw, depth);
    case 'array':
      return arrayOf(schema, draw, depth);
    case 'string':
      return textOf(schema, draw);
    case 'integer':
    case 'number':
      return Math.max(Number(schema['minimum'] ?? 0), Math.min(Number(schema['maximum'] ?? 1_000), draw.below(4)));
    case 'boolean':
      return draw.one([false, true]);
    case 'null':
      return null;
    default:
      return draw.one<Document>([null, 'x', 1, [], {}, { a: [1, { b: null }] }]);
  }
};

const objectOf = (schema: Schema, draw: Draw, depth: number): Document => {
  const properties = schema['properties'] as Readonly<Record<string, Schema>> | undefined;
  if (properties === undefined) return draw.one<Document>([{}, { note: 'x' }, { a: { b: [1, 'two', null] } }]);
  const required = (schema['required'] ?? []) as readonly string[];
  const wanted = Object.entries(properties).filter(([key]) => required.includes(key) || (depth < DEPTH_DRAWN && draw.rarely(4)));
  return Object.fromEntries(wanted.map(([key, each]) => [key, documentOf(each, draw, depth + 1)]));
};

const arrayOf = (schema: Schema, draw: Draw, depth: number): Document => {
  if (Array.isArray(schema['prefixItems'])) return (schema['prefixItems'] as Schema[]).map((each) => documentOf(each, draw, depth + 1));
  const least = Number(schema['minItems'] ?? 0);
  const length = depth < DEPTH_DRAWN ? least + draw.below(2) : least;
  return Array.from({ length }, () => documentOf((schema['items'] ?? {}) as Schema, draw, depth + 1));
};

const HEX = 'a3f5c1d2e4b6978812345678901234567890abcdefabcdefabcdefabcdefabcd';

const textOf = (schema: Schema, draw: Draw): string => {
  if (schema['format'] === 'date-time')
    return draw.one(['2026-01-01T12:00:00Z', '2026-01-01T12:00:00.123456+05:30', '2024-02-29T23:59:59Z']);
  if (schema['format'] === 'uuid') return 'f47ac10b-58cc-4372-a567-0e02b2c3d479';
  const pattern = schema['pattern'];
  if (typeof pattern === 'string') return [HEX, 'store-1@42', 'files.read', 'crm'].find((text) => new RegExp(pattern).test(text)) ?? '';
  const text = draw.one(['x', 'a', 'cell-3', 'ein Wort', '名', 'a/b', '__proto__']);
  return text.padEnd(Number(schema['minLength'] ?? 0), '-');
};

// ── spoiling

const nested = (depth: number, innermost: Document = 'x'): Document => {
  let value = innermost;
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
};
/** As `JSON.parse` makes them: `__proto__` is then a key of its own, where an object literal would set the prototype. */
const parsed = (text: string): Document => JSON.parse(text);

const MEGABYTES_10 = 10 * 1024 * 1024;
export const HUGE_TEXT = 'x'.repeat(MEGABYTES_10);
const HUGE_BLANK = ' '.repeat(MEGABYTES_10);

/** What is put where something else belongs. */
const HOSTILE: readonly (() => Document)[] = [
  () => null,
  () => '',
  () => ' ',
  () => [],
  () => ({}),
  () => true,
  () => 0,
  () => -0,
  () => -1,
  () => 0.5,
  () => 2 ** 53,
  () => 1e308,
  () => parsed('1e400'),
  () => parsed('-1e400'),
  () => parsed('123456789012345678901234567890'),
  () => '\ud800',
  () => 'x\udc00y',
  () => '\u0000',
  () => '\u2028 \ufeff',
  () => '..',
  () => 'a'.repeat(257),
  () => '2026-02-30T00:00:00Z',
  () => '9999999999-01-01T00:00:00Z',
  () => '__proto__',
  () => 'constructor',
  () => parsed('{"__proto__":{"allowed":true}}'),
  () => parsed('{"constructor":{"prototype":{"allowed":true}}}'),
  () => parsed('{"toString":1,"valueOf":null,"hasOwnProperty":"x"}'),
  () => parsed('{"then":"x","length":-1,"0":"x"}'),
  () => parsed('{"length":{"toString":1,"valueOf":null}}'),
  () => nested(63),
  () => nested(64),
  () => nested(65),
  () => nested(1_000),
  () => Array.from({ length: 300 }, () => 'a'),
  () => Array.from({ length: 65 }, (_, index) => ({ index })),
  () => ({ kind: 'human', userId: 'a', agentId: 'a' }),
  () => ({ kind: '__proto__', userId: 'a' }),
];

const KEYS = ['extra', '__proto__', 'constructor', 'prototype', 'toString', '', '\ud800', 'metadata', 'context', 'kind', 'then'];

/** The same document with `times` places spoiled. */
export const spoiledDocument = (document: Document, draw: Draw, times: number): Document => {
  let spoiled = document;
  for (let each = 0; each < times; each += 1) spoiled = spoil(spoiled, draw, 0);
  return spoiled;
};

/** The same document as often as it has places, at each of them once with `member` instead of what belongs there. */
export function* withEachPlaceAs(document: Document, member: Document): Generator<Document> {
  yield member;
  if (typeof document !== 'object' || document === null) return;
  for (const [key, value] of Object.entries(document)) {
    for (const spoiled of withEachPlaceAs(value, member)) {
      yield Array.isArray(document) ? document.with(Number(key), spoiled) : withMember(document, key, spoiled);
    }
  }
}

const spoil = (value: Document, draw: Draw, depth: number): Document => {
  const isObject = typeof value === 'object' && value !== null;
  if (!isObject || depth > DEPTH_DRAWN || draw.rarely(6)) return spoilHere(value, draw);
  if (Array.isArray(value)) return value.length === 0 ? spoilHere(value, draw) : spoilEntry(value as Document[], draw, depth);
  const keys = Object.keys(value);
  if (keys.length === 0 || draw.rarely(6)) return spoilHere(value, draw);
  const key = draw.one(keys);
  return withMember(value, key, spoil((value as Record<string, Document>)[key], draw, depth + 1));
};

const spoilEntry = (entries: readonly Document[], draw: Draw, depth: number): Document => {
  const place = draw.below(entries.length);
  if (draw.rarely(4)) return [...entries, entries[place]];
  return entries.map((entry, index) => (index === place ? spoil(entry, draw, depth + 1) : entry));
};

const spoilHere = (value: Document, draw: Draw): Document => {
  if (draw.rarely(200)) return draw.one([HUGE_TEXT, HUGE_BLANK]);
  if (typeof value === 'string' && draw.rarely(2))
    return draw.one<Document>([
      ` ${value}`,
      `${value}\n`,
      value.toUpperCase(),
      `${value}\ud800`,
      [value],
      { value },
      `${value}${'x'.repeat(600)}`,
    ]);
  if (typeof value === 'object' && value !== null && !Array.isArray(value) && !draw.rarely(3)) {
    if (draw.rarely(3)) return Object.fromEntries(Object.entries(value).filter(() => !draw.rarely(3)));
    return withMember(value, draw.one(KEYS), draw.one(HOSTILE)());
  }
  return draw.one(HOSTILE)();
};

/** Sets a member as `JSON.parse` would, whatever it is called. */
const withMember = (value: object, key: string, member: Document): Document => {
  const copy = { ...value };
  Object.defineProperty(copy, key, { value: member, enumerable: true, configurable: true, writable: true });
  return copy;
};
