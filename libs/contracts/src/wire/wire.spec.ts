import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { JsonObj } from '../json.ts';
import { PAYLOAD_BYTES_MAX, REQUEST_BYTES_MAX, decodeBody, decodeOwnBody, wireMessage } from './wire.ts';

const Note = wireMessage('note/1', z.strictObject({ text: z.string(), metadata: JsonObj.optional() }));
const bytes = (text: string): Uint8Array => Buffer.from(text, 'utf8');
const deep = (levels: number): string => '{"a":'.repeat(levels) + '1' + '}'.repeat(levels);

describe.each([
  ['a body from outside', decodeBody],
  ['a body of our own', decodeOwnBody],
])('%s', (_, decode) => {
  it('is read by its schema', () => expect(decode(Note, bytes('{"text":"hello"}'))).toEqual({ ok: true, value: { text: 'hello' } }));
  it.each([
    ['an unknown key', bytes('{"text":"hello","more":1}')],
    ['a wrong type', bytes('{"text":1}')],
    ['a bag with a key spelled __proto__', bytes('{"text":"hello","metadata":{"__proto__":1}}')],
    ['a bag nested too deep', bytes(`{"text":"hello","metadata":${deep(65)}}`)],
    ['text that is not JSON', bytes('{"text":')],
    ['bytes that are not UTF-8', Uint8Array.of(0x22, 0xff, 0x22)],
  ])('is refused for %s', (_what, body) =>
    expect(decode(Note, body)).toMatchObject({ ok: false, error: { code: 'invalid_request', retryable: false } }),
  );
});

it('a member named twice is refused from outside, where somebody may mean two readers to read two things', () =>
  expect(decodeBody(Note, bytes('{"text":"a","text":"b"}')).ok).toBe(false));

it('a body from outside is small, one of our own as large as the broker takes', () => {
  const body = bytes(`{"text":"${'x'.repeat(REQUEST_BYTES_MAX)}"}`);
  expect(decodeBody(Note, body).ok).toBe(false);
  expect(decodeOwnBody(Note, body).ok).toBe(true);
  expect(decodeOwnBody(Note, new Uint8Array(PAYLOAD_BYTES_MAX + 1)).ok).toBe(false);
});
