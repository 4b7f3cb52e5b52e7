import { deepStrictEqual, ok } from 'node:assert';
import {
  PUBLIC_CONTRACTS,
  type WireMessage,
  WIRE_MESSAGES,
  canonicalJson,
  checkCapsule,
  decodeBody,
  decodeOwnBody,
  previewCapsule,
} from '@sharedos/contracts';
import fc from 'fast-check';
import { z } from 'zod';
import { type Draw, drawFrom } from '../oracle/draw.ts';
import { type Document, documentOf, spoiledDocument, withEachPlaceAs } from './document.ts';

/** Every contract there is: the public ones and each body on the wire, under its name. */
const CONTRACTS: ReadonlyMap<string, z.ZodType> = new Map([
  ...Object.entries(PUBLIC_CONTRACTS).map(([name, schema]) => [name, schema as z.ZodType] as const),
  ...[...WIRE_MESSAGES].map(([name, { schema }]) => [name, schema as z.ZodType] as const),
]);
const SCHEMAS = [...CONTRACTS].map(([name, schema]) => [name, z.toJSONSchema(schema, { io: 'input' })] as const);
const MESSAGES: readonly WireMessage<unknown>[] = [...WIRE_MESSAGES.values()];

/** One document may be huge and the machine busy; what needs longer than this has hung. */
const DOCUMENT_MS_MAX = 10_000;
/** Choices of one document. */
const CHOICES = 192;

export interface FireReport {
  readonly documents: number;
  readonly judgements: number;
  /** By contract: how often it said yes. */
  readonly accepted: ReadonlyMap<string, number>;
  readonly refused: ReadonlyMap<string, number>;
  readonly slowestMs: number;
}

export interface FireOptions {
  readonly documents: number;
  readonly seed?: number | undefined;
}

/**
 * Puts documents to every contract: made by the schema of one of them, and then spoiled in up to three places. Each contract must
 * accept or refuse each of them, soon; what it accepts must be JSON, and the same when read again.
 *
 * @throws Where a contract does anything else.
 */
export const contractsUnderFire = ({ documents, seed }: FireOptions): FireReport => {
  const [accepted, refused] = [countersOf(CONTRACTS.keys()), countersOf(CONTRACTS.keys())];
  let [count, slowestMs] = [0, 0];
  const judge = (draw: Draw): void => {
    const started = performance.now();
    const document = drawDocument(draw, count);
    for (const [name, schema] of CONTRACTS) bump(judgedBy(name, schema, document) ? accepted : refused, name);
    judgeCapsule(document);
    slowestMs = Math.max(slowestMs, performance.now() - started);
    ok(slowestMs < DOCUMENT_MS_MAX, `a document took ${slowestMs} ms`);
    count += 1;
  };
  // Shrinking would only look for a smaller document; the failing one is in the message, with its seed.
  fc.assert(
    fc.property(choices, (bytes) => judge(drawFrom(bytes))),
    {
      numRuns: documents,
      endOnFailure: true,
      ...(seed === undefined ? {} : { seed }),
    },
  );
  deepStrictEqual(
    Object.keys(Object.getOwnPropertyDescriptors(Object.prototype)).filter((key) => key === 'allowed'),
    [],
  );
  return { documents: count, judgements: count * CONTRACTS.size, accepted, refused, slowestMs };
};

/** What a later rule of a schema could trip over, if the rule before it let it through. */
const WRONG_KINDS: readonly Document[] = [null, true, 0, '', [], {}, [null], { a: null }];

/**
 * Puts to every contract a document of its own, with each of its places holding each kind of value in turn.
 *
 * @returns How many documents were judged.
 * @throws Where a contract does anything but accept or refuse one.
 */
export const everyPlaceUnderFire = (): number => {
  const fullest: Draw = { below: () => 0, one: ([first]) => first as never, rarely: () => true, some: (options) => [...options] };
  let count = 0;
  for (const [name, schema] of SCHEMAS) {
    const document = documentOf(schema as Record<string, unknown>, fullest);
    for (const wrong of WRONG_KINDS) {
      for (const spoiled of withEachPlaceAs(document, wrong)) {
        judgedBy(name, CONTRACTS.get(name) as z.ZodType, spoiled);
        count += 1;
      }
    }
  }
  return count;
};

const choices = fc.uint8Array({ minLength: CHOICES, maxLength: CHOICES, size: 'max' });

/** Where fields must agree with each other, chance finds nothing valid. */
const IN_AGREEMENT: Readonly<Record<string, Document>> = {
  ToolNamespaceCatalog: {
    namespaces: [{ namespace: 'files', sources: ['sharedos'], toolCount: 12, enabled: true }],
    summary: { total: 1, enabled: 1, disabled: 0 },
  },
  ToolNamespaceUpdate: { enable: ['files'], disable: ['repo'] },
};

const drawDocument = (draw: Draw, turn: number): Document => {
  const [name, schema] = SCHEMAS[turn % SCHEMAS.length] as (typeof SCHEMAS)[number];
  const drawn = documentOf(schema as Record<string, unknown>, draw);
  const document = draw.rarely(2) ? drawn : (IN_AGREEMENT[name] ?? drawn);
  return spoiledDocument(document, draw, draw.below(4));
};

const judgedBy = (name: string, schema: z.ZodType, document: Document): boolean => {
  const result = schema.safeParse(document);
  if (!result.success) return false;
  const text = canonicalJson(result.data);
  const again = schema.safeParse(result.data);
  ok(again.success, `${name} refuses what it returned`);
  deepStrictEqual(canonicalJson(again.data), text, `${name} reads its own answer as something else`);
  ok(!holdsKey(result.data, '__proto__'), `${name} let a __proto__ key through`);
  return true;
};

const judgeCapsule = (document: Document): void => {
  checkCapsule(document, 'x');
  previewCapsule(document);
};

const holdsKey = (value: unknown, key: string): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (Object.hasOwn(value, key) || Object.values(value as Record<string, unknown>).some((member) => holdsKey(member, key)));

const countersOf = (names: Iterable<string>): Map<string, number> => new Map([...names].map((name) => [name, 0]));
const bump = (counters: Map<string, number>, name: string): void => void counters.set(name, (counters.get(name) ?? 0) + 1);

// ── bodies

const utf8 = new TextEncoder();
const LARGE_BODY = 16 * 1024 * 1024;

/**
 * Puts bodies to every message on the wire: texts of drawn documents, cut, doubled, garbled, and bytes that are no text.
 *
 * @returns How many bodies were accepted and refused.
 * @throws Where decoding does anything but answer, or refuses without the one code there is.
 */
export const bodiesUnderFire = ({ documents, seed }: FireOptions): { readonly accepted: number; readonly refused: number } => {
  let [accepted, refused, turn] = [0, 0, 0];
  const judge = (draw: Draw): void => {
    const message = MESSAGES[turn % MESSAGES.length] as WireMessage<unknown>;
    turn += 1;
    const body = drawBody(message, draw);
    for (const decode of [decodeBody, decodeOwnBody]) {
      const result = decode(message, body, LARGE_BODY);
      if (result.ok) accepted += 1;
      else {
        refused += 1;
        deepStrictEqual([result.error.code, result.error.retryable], ['invalid_request', false]);
        ok(result.error.message.length <= 4_096);
      }
    }
  };
  fc.assert(
    fc.property(choices, (bytes) => judge(drawFrom(bytes))),
    {
      numRuns: documents,
      endOnFailure: true,
      ...(seed === undefined ? {} : { seed }),
    },
  );
  return { accepted, refused };
};

const drawBody = (message: WireMessage<unknown>, draw: Draw): Uint8Array => {
  if (draw.rarely(8)) return Uint8Array.from({ length: draw.below(64) }, () => draw.below(256));
  const [, schema] = SCHEMAS.find(([name]) => name === message.name) as (typeof SCHEMAS)[number];
  const text = JSON.stringify(spoiledDocument(documentOf(schema as Record<string, unknown>, draw), draw, draw.below(3)));
  return draw.rarely(3) ? garbled(utf8.encode(text), draw) : utf8.encode(draw.rarely(3) ? rewritten(text, draw) : text);
};

/** The same text with something that only a text can have. */
const rewritten = (text: string, draw: Draw): string => {
  const inside = text.slice(1, -1);
  return draw.one([
    `\ufeff${text}`,
    `${text}${text}`,
    `{${inside},${inside}}`,
    `{"__proto__":{"allowed":true},${inside}}`,
    `{"\\u005f_proto__":1,${inside}}`,
    `{"metadata":{"n":1e400},${inside}}`,
    `${'['.repeat(64)}${']'.repeat(64)}`,
    `${'['.repeat(65)}${']'.repeat(65)}`,
    '['.repeat(200_000),
    `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`,
    text.slice(0, draw.below(256)),
    text.replaceAll(':', ' : ').replaceAll(',', ' ,\t'),
    text.replaceAll('"', "'"),
    text.replace('"', '"\\ud800'),
    text.replace(/\d+/, 'NaN'),
    text.replace(/\d+/, '1'.repeat(400)),
  ]);
};

const garbled = (bytes: Uint8Array, draw: Draw): Uint8Array => {
  const copy = Uint8Array.from(bytes);
  for (let each = 0; each <= draw.below(3); each += 1) copy[(draw.below(256) * 7) % Math.max(1, copy.length)] = draw.below(256);
  return copy.subarray(0, copy.length - (draw.rarely(2) ? draw.below(8) : 0));
};
