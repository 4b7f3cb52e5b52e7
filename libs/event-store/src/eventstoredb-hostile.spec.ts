import { afterEach, describe, expect, it } from 'vitest';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventStoreDBClient } from '@eventstore/db-client';
import { type DoubleOptions, type EventStoreDouble, startEventStoreDouble } from '@sharedos/eventstoredb-double';
import { selfSigned } from '@sharedos/testing';
import { appendSurely, barrierOf, eventsOf, listen, newStream, noteOf, readSurely } from './contract-words.ts';
import type { EventStore, StreamId } from './event-store.ts';
import { type EventStoreDbOptions, eventStoreDbEventStore } from './eventstoredb.ts';
import { logSubject } from './log-subject.ts';

const TIMEOUT_MS = 2_000;
const HEARTBEAT_MS = 150;

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const startDouble = async (options: DoubleOptions = {}): Promise<EventStoreDouble> => {
  const double = await startEventStoreDouble({ foreignEvery: 2, ...options });
  ends.push(() => double.close());
  return double;
};
const tryOpen = (double: EventStoreDouble, more: Partial<EventStoreDbOptions> = {}) =>
  eventStoreDbEventStore({ connectionString: double.connectionString, timeoutMs: TIMEOUT_MS, heartbeatMs: HEARTBEAT_MS, ...more });
const openOn = async (double: EventStoreDouble, more: Partial<EventStoreDbOptions> = {}): Promise<EventStore> => {
  const opened = await tryOpen(double, more);
  if (!opened.ok) throw new Error(opened.error.reason);
  ends.push(() => opened.value.close());
  return opened.value;
};
const folder = async (): Promise<string> => {
  const path = await mkdtemp(join(tmpdir(), 'sharedos-double-'));
  ends.push(() => rm(path, { recursive: true }));
  return path;
};
const UNAVAILABLE = { ok: false, error: { kind: 'unavailable' } };
const nameOf = (stream: StreamId): string => logSubject(stream);

describe('the log on EventStoreDB', () => {
  it('keeps one event an append, in a stream with the name it has everywhere, with the bytes of a record', async () => {
    const double = await startDouble();
    const store = await openOn(double, { prefix: 'mine/' });
    const stream = newStream('a/B');
    const { position } = await appendSurely(store, stream, 0, eventsOf('one', 'two'));
    const stored = double.events().filter((event) => event.stream === `mine/${nameOf(stream)}`);
    expect(stored).toHaveLength(1);
    expect(stored[0]).toMatchObject({ type: 'log.record/1', contentType: 'application/octet-stream', revision: 0, position });
    expect(JSON.parse(stored[0]?.data.toString('utf8') ?? '')).toHaveLength(2);
  });

  it('keeps two logs with different prefixes apart in one database', async () => {
    const double = await startDouble();
    const [one, two] = [await openOn(double, { prefix: 'one.' }), await openOn(double, { prefix: 'two.' })];
    expect(one.storeId).not.toBe(two.storeId);
    const stream = newStream();
    const from = await barrierOf(two);
    await appendSurely(one, stream, 0, eventsOf('of one'));
    await appendSurely(two, stream, 0, eventsOf('of two'));
    const heard = listen(two, from);
    await heard.untilReached(await barrierOf(two));
    await heard.close();
    expect(heard.told.events.map(noteOf)).toEqual(['of two']);
  });

  it('turns to the leader that it is told of', async () => {
    const [leader, follower] = [await startDouble(), await startDouble()];
    follower.faults.leaderElsewhere = { host: '127.0.0.1', port: leader.port };
    const store = await openOn(follower);
    await appendSurely(store, newStream(), 0, eventsOf('led'));
    expect(follower.events().some(({ type }) => type === 'log.record/1')).toBe(false);
    expect(leader.events().some(({ type }) => type === 'log.record/1')).toBe(true);
  });

  it('is unavailable while no leader is known, for every call that matters', async () => {
    const double = await startDouble();
    const store = await openOn(double);
    const stream = newStream();
    double.faults.leaderElsewhere = 'unknown';
    expect(await store.append(stream, 0, eventsOf('a'))).toMatchObject(UNAVAILABLE);
    expect(await store.barrier(TIMEOUT_MS)).toMatchObject(UNAVAILABLE);
    expect(await store.read(stream)).toMatchObject(UNAVAILABLE);
    const heard = listen(store, 0);
    await heard.untilAlive(false);
    double.faults.leaderElsewhere = undefined;
    await heard.untilAlive(true);
    await heard.close();
  });

  it('finds its own append when only the answer was lost', async () => {
    const double = await startDouble();
    const store = await openOn(double);
    const stream = newStream();
    const events = eventsOf('a');
    double.faults.answersToLose = 1;
    const appended = await store.append(stream, 0, events);
    expect(appended).toMatchObject({ ok: true, value: { revision: 1, repeated: true } });
    expect((await readSurely(store, stream)).events.map(noteOf)).toEqual(['a']);
  });

  it('does not call an append a conflict that is still under way, and never stores it twice', async () => {
    const double = await startDouble();
    const store = await openOn(double);
    const stream = newStream();
    const events = eventsOf('a');
    double.faults.appending.close();
    expect(await store.append(stream, 0, events)).toMatchObject(UNAVAILABLE);
    double.faults.appending.open();
    await appendSurely(store, stream, 0, events);
    expect((await readSurely(store, stream)).events.map(noteOf)).toEqual(['a']);
  });

  it('is lost for good once the server gives out a place again that it had given out before', async () => {
    const double = await startDouble();
    const store = await openOn(double);
    const heard = listen(store, 0);
    await heard.untilAlive(true);
    double.faults.appendsToInvent = 2;
    await store.append(newStream(), 0, eventsOf('invented'));
    expect(await store.append(newStream(), 0, eventsOf('invented'))).toMatchObject(UNAVAILABLE);
    await heard.untilAlive(false);
    expect(await store.barrier(TIMEOUT_MS)).toMatchObject({
      ok: false,
      error: { reason: expect.stringContaining('lost some of its history') },
    });
    await heard.close();
  });

  it('notices a subscription that is sent nothing though there is something, and begins another', async () => {
    const double = await startDouble();
    const store = await openOn(double);
    const heard = listen(store, 0);
    await heard.untilAlive(true);
    double.faults.subscribing.close();
    const { position } = await appendSurely(store, newStream(), 0, eventsOf('a'));
    await heard.untilAlive(false);
    double.faults.subscribing.open();
    await heard.untilReached(position);
    await heard.untilAlive(true);
    await heard.close();
  });

  it('hears each event once, from subscriptions that are cut and send everything twice', async () => {
    const double = await startDouble();
    double.faults.deliversTwice = true;
    const store = await openOn(double);
    const heard = listen(store, 0);
    const notes = Array.from({ length: 60 }, (_, index) => `${index}`);
    for (const [index, note] of notes.entries()) {
      await appendSurely(store, newStream(), 0, eventsOf(note));
      if (index % 10 === 5) double.faults.cutSubscriptions();
    }
    await heard.untilReached(await barrierOf(store));
    await heard.close();
    expect(heard.told.events.map(noteOf)).toEqual(notes);
  });

  it('moves on over the events of others, and is not taken for silent by them', async () => {
    const double = await startDouble({ foreignEvery: 1 });
    const store = await openOn(double);
    const heard = listen(store, await barrierOf(store));
    await heard.untilAlive(true);
    const last = Array.from({ length: 400 }, () => double.append('somebody-else', [{}])).at(-1)?.position ?? 0;
    const { position } = await appendSurely(store, newStream(), 0, eventsOf('a'));
    await heard.untilReached(position);
    await heard.close();
    expect(heard.told.places.some((place) => place > 0 && place <= last)).toBe(true);
    expect(heard.told.alive).toEqual([true]);
  });

  it('is another store when the database was made anew, and never follows it', async () => {
    const first = await startDouble();
    const store = await openOn(first);
    await appendSurely(store, newStream(), 0, eventsOf('a'));
    const heard = listen(store, 0);
    await heard.untilAlive(true);
    const { port } = first;
    await first.close();
    const second = await startDouble({ port });
    const other = await openOn(second);
    expect(other.storeId).not.toBe(store.storeId);
    await heard.untilAlive(false);
    for (let count = 0; count < 20; count += 1) await appendSurely(other, newStream(), 0, eventsOf(`${count}`));
    await expect
      .poll(() => store.read(newStream()), { timeout: 10_000 })
      .toMatchObject({ ok: false, error: { reason: expect.stringContaining('another store') } });
    await heard.close();
    expect(heard.told.events.map(noteOf)).toEqual(['a']);
  });

  it('is lost for good when its database was set back in time and has gone on from there', async () => {
    const [dataDir, saved] = [await folder(), await folder()];
    const first = await startDouble({ dataDir });
    const store = await openOn(first);
    await appendSurely(store, newStream(), 0, eventsOf('kept'));
    await cp(dataDir, saved, { recursive: true });
    const heard = listen(store, 0);
    const { position } = await appendSurely(store, newStream(), 0, eventsOf('gone'));
    await heard.untilReached(position);
    await first.close();
    const second = await startDouble({ dataDir: saved, port: first.port });
    second.append('somebody-else', [{ data: Buffer.alloc(10_000) }]);
    await heard.untilAlive(false);
    await expect
      .poll(() => store.barrier(TIMEOUT_MS), { timeout: 10_000 })
      .toMatchObject({ ok: false, error: { reason: expect.stringContaining('lost some of its history') } });
    await heard.close();
  });

  it('parks a stream that was deleted and begun anew, so that nothing revoked is revived', async () => {
    const double = await startDouble();
    const store = await openOn(double);
    const stream = newStream();
    await appendSurely(store, stream, 0, eventsOf('issued', 'revoked'));
    const client = EventStoreDBClient.connectionString(double.connectionString);
    ends.push(() => client.dispose());
    await client.deleteStream(nameOf(stream));
    const heard = listen(store, await barrierOf(store));
    expect(await store.append(stream, 0, eventsOf('issued again'))).toMatchObject(UNAVAILABLE);
    expect(await store.read(stream)).toMatchObject(UNAVAILABLE);
    await heard.untilReached(await barrierOf(store));
    await heard.close();
    expect(heard.told.events).toEqual([]);
    expect(heard.told.parked).toMatchObject([{ natsSubject: nameOf(stream), why: 'not appended at its revision' }]);
    await client.tombstoneStream(nameOf(stream));
    expect(await store.append(stream, 0, eventsOf('x'))).toMatchObject(UNAVAILABLE);
    expect(await store.read(stream)).toMatchObject(UNAVAILABLE);
  });

  it('takes its history up again after the process that kept it was killed', async () => {
    const dataDir = await folder();
    const first = await startDouble({ dataDir });
    const store = await openOn(first);
    const stream = newStream();
    const appended = await appendSurely(store, stream, 0, eventsOf('kept'));
    await first.close();
    await startDouble({ dataDir, port: first.port });
    const read = await readSurely(store, stream);
    expect(read.events.map(({ position }) => position)).toEqual([appended.position]);
  });

  it('takes TLS, user and password from the connection string, and is unavailable with a wrong one', async () => {
    const { key, certificate, certificateFile, remove } = await selfSigned();
    ends.push(remove);
    const double = await startDouble({ tls: { key, certificate }, users: { sharedos: 'p@ss word' } });
    const as = (password: string): string =>
      `esdb://sharedos:${encodeURIComponent(password)}@127.0.0.1:${double.port}?tlsCAFile=${encodeURIComponent(certificateFile)}`;
    const store = await openOn(double, { connectionString: as('p@ss word') });
    const heard = listen(store, 0);
    const { position } = await appendSurely(store, newStream(), 0, eventsOf('a'));
    await heard.untilReached(position);
    await heard.close();
    expect(await tryOpen(double, { connectionString: as('guessed'), openTimeoutMs: 100 })).toMatchObject(UNAVAILABLE);
  });

  it.each([
    ['a TLS connection without a password', 'esdb://127.0.0.1:1', /user and password/],
    ['a setting that tells wrong revisions', 'esdb://127.0.0.1:1?tls=false&throwOnAppendFailure=false', /throwOnAppendFailure/],
    ['what is none', 'nats://secret@127.0.0.1:1?tls=false', /cannot be read/],
  ])('does not open with %s, and never repeats the connection string', async (_case, connectionString, why) => {
    const opened = await eventStoreDbEventStore({ connectionString, openTimeoutMs: 50 });
    expect(opened).toMatchObject({ ok: false, error: { kind: 'unavailable', reason: expect.stringMatching(why) } });
    expect(JSON.stringify(opened)).not.toContain('127.0.0.1');
  });

  it('says so of a server that does not tell where the records of a stream are', async () => {
    const double = await startDouble({ positionsInStreams: false });
    const store = await openOn(double);
    const stream = newStream();
    await appendSurely(store, stream, 0, eventsOf('a'));
    expect(await store.read(stream)).toMatchObject({ ok: false, error: { reason: expect.stringContaining('22.6') } });
  });
});
