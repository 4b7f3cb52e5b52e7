import { wireMessage } from '@sharedos/contracts';
import { DiscardPolicy } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Bus } from './bus.ts';
import { type TestServer, addStream, testServer } from './broker.fixture.ts';
import { lastOnSubject } from './read-subject.ts';

const Note = wireMessage('note/1', z.strictObject({ text: z.string() }));
const bytes = (text: string): Uint8Array => Buffer.from(text);
const timeoutMs = 2_000;

describe('publishing into a stream', () => {
  let server: TestServer;
  let bus: Bus;
  beforeAll(async () => {
    server = await testServer();
    bus = await server.connect();
    await addStream(server, 'OPEN');
    await addStream(server, 'PERSUBJECT', { discard: DiscardPolicy.New, discard_new_per_subject: true, max_msgs_per_subject: 1 });
    await addStream(server, 'FEW', { discard: DiscardPolicy.New, max_msgs: 1 });
    await addStream(server, 'SMALL', { discard: DiscardPolicy.New, max_bytes: 300 });
    await addStream(server, 'SHORT', { max_msg_size: 100 });
    await addStream(server, 'SILENT', { no_ack: true });
  });
  afterAll(() => server.end());

  it('answers with the place in the stream', async () => {
    expect(await bus.publishStored('open.place', bytes('a'), { timeoutMs })).toEqual({
      ok: true,
      value: { sequence: expect.any(Number), duplicate: false },
    });
  });

  it('stores a body under the name of its schema', async () => {
    await bus.publishStored('open.body', { message: Note, body: { text: 'hello' } }, { timeoutMs, headers: { 'sharedos-owner': 'token' } });
    const last = await lastOnSubject(bus, 'OPEN', 'open.body', { timeoutMs });
    if (!last.ok || last.value === undefined) throw new Error('nothing was stored');
    expect(JSON.parse(Buffer.from(last.value.data).toString())).toEqual({ text: 'hello' });
    expect(last.value.header('sharedos-schema')).toBe('note/1');
    expect(last.value.header('sharedos-owner')).toBe('token');
    expect(last.value.header('absent')).toBeUndefined();
  });

  it('accepts the first message of a subject when none is expected, and the next after its sequence', async () => {
    const first = await bus.publishStored('open.chain', bytes('1'), { timeoutMs, expectedLastSubjectSequence: 0 });
    if (!first.ok) throw new Error('refused');
    const next = await bus.publishStored('open.chain', bytes('2'), { timeoutMs, expectedLastSubjectSequence: first.value.sequence });
    expect(next.ok).toBe(true);
  });

  it('refuses another sequence than the last, and says which was found', async () => {
    const first = await bus.publishStored('open.fence', bytes('1'), { timeoutMs });
    if (!first.ok) throw new Error('refused');
    for (const expectedLastSubjectSequence of [0, first.value.sequence + 1]) {
      const refused = await bus.publishStored('open.fence', bytes('2'), { timeoutMs, expectedLastSubjectSequence });
      expect(refused).toEqual({ ok: false, error: { kind: 'wrong_sequence', found: first.value.sequence } });
    }
  });

  it('lets exactly one of many writers at one sequence win', async () => {
    const all = await Promise.all(
      Array.from({ length: 64 }, () => bus.publishStored('open.race', bytes('x'), { timeoutMs, expectedLastSubjectSequence: 0 })),
    );
    expect(all.filter((outcome) => outcome.ok)).toHaveLength(1);
    expect(all.filter((outcome) => !outcome.ok && outcome.error.kind === 'wrong_sequence')).toHaveLength(63);
  });

  it('says that a message id was seen before', async () => {
    const first = await bus.publishStored('open.once', bytes('1'), { timeoutMs, messageId: 'id-1' });
    const second = await bus.publishStored('open.other', bytes('2'), { timeoutMs, messageId: 'id-1' });
    expect(first).toMatchObject({ ok: true, value: { duplicate: false } });
    expect(second).toEqual({ ok: true, value: { sequence: first.ok ? first.value.sequence : 0, duplicate: true } });
  });

  it.each([
    ['a subject', 'persubject.a'],
    ['a stream in messages', 'few.a'],
  ])('refuses what %s has no room for', async (_what, natsSubject) => {
    expect((await bus.publishStored(natsSubject, bytes('1'), { timeoutMs })).ok).toBe(true);
    expect(await bus.publishStored(natsSubject, bytes('2'), { timeoutMs })).toEqual({ ok: false, error: { kind: 'full' } });
  });

  it('refuses what a stream has no bytes left for', async () => {
    const outcomes = [];
    for (let count = 0; count < 4; count += 1) outcomes.push(await bus.publishStored('small.a', bytes('x'.repeat(100)), { timeoutMs }));
    expect(outcomes[0]?.ok).toBe(true);
    expect(outcomes.at(-1)).toEqual({ ok: false, error: { kind: 'full' } });
  });

  it('refuses a message larger than the stream takes, and one larger than the broker takes', async () => {
    expect(await bus.publishStored('short.a', bytes('x'.repeat(200)), { timeoutMs })).toEqual({ ok: false, error: { kind: 'too_large' } });
    expect(await bus.publishStored('open.large', new Uint8Array(9 * 1024 * 1024), { timeoutMs })).toEqual({
      ok: false,
      error: { kind: 'too_large' },
    });
  });

  it('is unavailable when no stream takes the subject', async () => {
    expect(await bus.publishStored('nowhere.a', bytes('1'), { timeoutMs })).toEqual({
      ok: false,
      error: { kind: 'unavailable', reason: 'no stream takes nowhere.a' },
    });
  });

  it('is unavailable when no acknowledgement comes in time, though the message is stored', async () => {
    expect(await bus.publishStored('silent.a', bytes('1'), { timeoutMs: 100 })).toMatchObject({
      ok: false,
      error: { kind: 'unavailable' },
    });
    expect(await lastOnSubject(bus, 'SILENT', 'silent.a', { timeoutMs })).toMatchObject({ ok: true, value: { sequence: 1 } });
    expect(bus.replies.pending).toBe(0);
  });

  it('keeps no more waiting than it may, and sends nothing past that', async () => {
    const bounded = await server.connect({ pendingMax: 2 });
    const all = await Promise.all(Array.from({ length: 3 }, () => bounded.publishStored('silent.bound', bytes('1'), { timeoutMs: 100 })));
    expect(all.map((outcome) => (outcome.ok ? '' : 'reason' in outcome.error && outcome.error.reason))).toEqual([
      'no answer on silent.bound within its deadline',
      'no answer on silent.bound within its deadline',
      '2 requests are waiting already',
    ]);
    expect(await lastOnSubject(bus, 'SILENT', 'silent.bound', { timeoutMs })).toMatchObject({ ok: true, value: { sequence: 3 } });
  });
});
