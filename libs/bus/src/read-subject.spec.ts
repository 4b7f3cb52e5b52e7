import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Bus } from './bus.ts';
import { jetStreamRights } from './js-rights.ts';
import { type TestServer, addStream, testServer } from './broker.fixture.ts';
import { lastOnSubject, readSubject, streamHead } from './read-subject.ts';

const timeoutMs = 2_000;

describe('reading a subject back', () => {
  let server: TestServer;
  let bus: Bus;
  beforeAll(async () => {
    server = await testServer({
      publish: [...jetStreamRights.read('LEDGER'), ...jetStreamRights.head('LEDGER')],
      subscribe: ['_INBOX.narrow.>'],
    });
    bus = await server.connect({ user: 'narrow', inboxPrefix: '_INBOX.narrow' });
    await addStream(server, 'LEDGER');
    for (const [natsSubject, text] of [
      ['ledger.a', '1'],
      ['ledger.b', '2'],
      ['ledger.a', '3'],
      ['ledger.a.x', '4'],
      ['ledger.a', '5'],
      ['ledger.z', '6'],
    ] as const) {
      await server.admin.jetstream().publish(natsSubject, text);
    }
  });
  afterAll(() => server.end());

  const read = async (filter: string, more: object = {}): Promise<unknown> => {
    const messages = await readSubject(bus, 'LEDGER', filter, { timeoutMs, ...more });
    return messages.ok
      ? messages.value.map((message) => `${message.sequence}:${Buffer.from(message.data).toString()}`)
      : messages.error.kind;
  };

  it('gives every message of that subject in order, and of no other', async () =>
    expect(await read('ledger.a')).toEqual(['1:1', '3:3', '5:5']));
  it('gives those from a sequence on', async () => expect(await read('ledger.a', { fromSequence: 2 })).toEqual(['3:3', '5:5']));
  it('gives nothing of a subject never written', async () => expect(await read('ledger.none')).toEqual([]));
  it('reads what a pattern covers', async () => expect(await read('ledger.>', { fromSequence: 3 })).toEqual(['3:3', '4:4', '5:5', '6:6']));
  it('is unavailable over its limit of bytes', async () => expect(await read('ledger.a', { limitBytes: 2 })).toBe('unavailable'));
  it('is unavailable past its deadline', async () => expect(await read('ledger.a', { timeoutMs: 0 })).toBe('unavailable'));

  it('gives the last message of a subject, or that there is none', async () => {
    expect(await lastOnSubject(bus, 'LEDGER', 'ledger.a', { timeoutMs })).toMatchObject({
      ok: true,
      value: { sequence: 5, subject: 'ledger.a' },
    });
    expect(await lastOnSubject(bus, 'LEDGER', 'ledger.none', { timeoutMs })).toEqual({ ok: true, value: undefined });
  });

  it('is unavailable, not empty, when the stream may not be read or does not exist', async () => {
    const everything = await server.connect();
    expect(await lastOnSubject(bus, 'SECRET', 'secret.a', { timeoutMs })).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    expect(await lastOnSubject(everything, 'SECRET', 'secret.a', { timeoutMs })).toMatchObject({
      ok: false,
      error: { kind: 'unavailable' },
    });
  });

  it('knows the last sequence of the stream', async () =>
    expect(await streamHead(bus, 'LEDGER', { timeoutMs })).toEqual({ ok: true, value: 6 }));

  it('reads a record of the largest size', async () => {
    await server.admin.jetstream().publish('ledger.large', new Uint8Array(8 * 1024 * 1024 - 1024));
    const messages = await readSubject(bus, 'LEDGER', 'ledger.large', { timeoutMs: 15_000 });
    expect(messages.ok && messages.value[0]?.data.byteLength).toBe(8 * 1024 * 1024 - 1024);
  });
});
