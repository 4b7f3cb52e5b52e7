import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SpanReceiver, startSpanReceiver } from './span-receiver.ts';

let receiver: SpanReceiver;
beforeAll(async () => {
  receiver = await startSpanReceiver();
});
afterAll(() => receiver.stop());

const exported = (spanId: string) => ({
  resourceSpans: [
    {
      resource: {
        attributes: [
          { key: 'service.name', value: { stringValue: 'authorizer' } },
          { key: 'service.instance.id', value: { stringValue: '2' } },
        ],
      },
      scopeSpans: [
        {
          spans: [
            {
              traceId: '4185195dae79cb1dbf8690a0740eb4cb',
              spanId,
              parentSpanId: '8e3805ce614799c4',
              name: 'kernel.authorize',
              kind: 3,
              startTimeUnixNano: '1796055893206000000',
              endTimeUnixNano: '1796055893206142756',
              attributes: [
                { key: 'count', value: { intValue: 1 } },
                { key: 'names', value: { arrayValue: { values: [{ stringValue: 'p' }, { boolValue: true }] } } },
              ],
              events: [{ name: 'denied', attributes: [{ key: 'code', value: { stringValue: 'no' } }] }],
              status: { code: 2, message: 'no' },
            },
          ],
        },
      ],
    },
  ],
});
const post = (body: string | Buffer, headers: Record<string, string> = {}, path = '/v1/traces') =>
  fetch(receiver.url + path, {
    method: 'POST',
    body: new Uint8Array(Buffer.from(body as string)),
    headers: { 'content-type': 'application/json', ...headers },
  });

describe('the span receiver', () => {
  it('takes what an exporter sends, with its service, times and attributes', async () => {
    expect((await post(JSON.stringify(exported('aaaaaaaaaaaaaaaa')))).status).toBe(200);
    const [span] = await receiver.waitFor((spans) => spans.length === 1, 1_000);
    expect(span).toEqual({
      traceId: '4185195dae79cb1dbf8690a0740eb4cb',
      spanId: 'aaaaaaaaaaaaaaaa',
      parentSpanId: '8e3805ce614799c4',
      name: 'kernel.authorize',
      service: 'authorizer',
      instance: '2',
      kind: 'client',
      startMs: 1796055893206,
      endMs: 1796055893206.142,
      attributes: { count: 1, names: ['p', true] },
      events: [{ name: 'denied', attributes: { code: 'no' } }],
      links: [],
      status: { code: 'error', message: 'no' },
    });
  });
  it('takes it compressed too, and a batch that is sent again once', async () => {
    const body = gzipSync(JSON.stringify(exported('bbbbbbbbbbbbbbbb')));
    for (const _ of [1, 2]) expect((await post(body, { 'content-encoding': 'gzip' })).status).toBe(200);
    expect(receiver.spans().filter((span) => span.spanId === 'bbbbbbbbbbbbbbbb')).toHaveLength(1);
  });
  it.each([
    ['another encoding', '', { 'content-type': 'application/x-protobuf' }, 415],
    ['what is no JSON', 'spans', {}, 400],
    ['what only says it is compressed', '{}', { 'content-encoding': 'gzip' }, 400],
    ['times that are no numbers', '{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"x"}]}]}]}', {}, 400],
  ] as const)('refuses %s and says so', async (_, body, headers, status) => {
    const before = receiver.refused().length;
    expect((await post(body, headers)).status).toBe(status);
    expect(receiver.refused()).toHaveLength(before + 1);
  });
  it('refuses any other path', async () => expect((await post('{}', {}, '/v1/logs')).status).toBe(404));
  it('says so when what is waited for does not come', () => expect(receiver.waitFor(() => false, 50)).rejects.toThrow(/not within 50 ms/));
});
