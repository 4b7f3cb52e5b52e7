import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LogEvent, type Result, type Unavailable } from '@sharedos/contracts';
import { type Bus, pause } from '@sharedos/bus';
import { type NatsConnection, headers } from 'nats';
import { eventStoreContract } from './contract.ts';
import { eventIdOf } from './event-id.ts';
import type { EventStore, Position, StreamId } from './event-store.ts';
import { type JetStreamEventStoreOptions, jetStreamEventStore } from './jetstream.ts';
import { type LogBroker, logStream, makeLogStream, startLogBroker } from './log-broker.fixture.ts';

const TIMEOUT_MS = 1_500;
const WAIT_MS = 8_000;
/** A store whose connection is lost answers at once, so trying again needs a pace. */
const RETRY_MS = 10;

const opened = (result: Result<EventStore, Unavailable>): EventStore => {
  if (!result.ok) throw new Error(result.error.reason);
  return result.value;
};
const openOn = async (bus: Bus, more: Partial<JetStreamEventStoreOptions> = {}) =>
  jetStreamEventStore({ bus, timeoutMs: TIMEOUT_MS, openTimeoutMs: TIMEOUT_MS, heartbeatMs: 200, ...more });

eventStoreContract('JetStream', async () => {
  const broker = await startLogBroker();
  await makeLogStream(broker);
  const admin = await broker.admin();
  const connections = new Map<EventStore, Bus>();
  return {
    open: async () => {
      const bus = await broker.service();
      const store = opened(await openOn(bus));
      connections.set(store, bus);
      return store;
    },
    appendRaw: async (natsSubject, body) => (await admin.jetstream().publish(natsSubject, body)).seq,
    stop: () => broker.server.pause(),
    resume: () => broker.server.resume(),
    mute: () => broker.network.holdAnswers(),
    hear: () => broker.network.heal(),
    blackHole: { begin: () => broker.network.blackHole(), end: () => broker.network.heal() },
    restart: async () => {
      await broker.server.kill();
      await broker.server.restart();
    },
    reconnect: async (store) => connections.get(store)?.nats.reconnect(),
    deadlineMs: TIMEOUT_MS,
    close: async () => {
      await Promise.all([admin, ...connections.values()].map((connection) => connection.close()));
      await broker.end();
    },
  };
});

describe('the log on JetStream', () => {
  let broker: LogBroker;
  let admin: NatsConnection;
  let bus: Bus;
  beforeAll(async () => {
    broker = await startLogBroker();
    [admin, bus] = [await broker.admin(), await broker.service()];
  });
  afterAll(async () => {
    await Promise.all([bus?.close(), admin?.close()]);
    await broker?.end();
  });

  let counted = 0;
  const eventOf = (): LogEvent => ({
    eventId: eventIdOf({ namespaceId: 'js', principal: 'tester', verb: 'note', commandId: `${(counted += 1)}`, index: 0 }),
    type: 'Noted',
    schemaVersion: 1,
    at: '2026-01-01T12:00:00.000Z',
    principal: { kind: 'human', userId: 'tester' },
    correlationId: 'js',
    data: { count: counted },
  });
  const newStream = (): StreamId => ({ category: 'grant', namespaceId: 'js', id: `g-${(counted += 1)}` });
  const remake = async () => {
    const { streams } = await admin.jetstreamManager();
    await streams.delete('LOG').catch(() => false);
    await streams.add(logStream());
  };
  const appendMany = async (store: EventStore, count: number) => {
    for (let index = 0; index < count; index += 1) {
      const [stream, events] = [newStream(), [eventOf()]];
      // Unanswered while the server is away; sent again with the same ids.
      while (!(await store.append(stream, 0, events)).ok) await pause(RETRY_MS);
    }
  };
  const listen = (store: EventStore, from: Position) => {
    const told = { counts: [] as unknown[], parked: 0, reached: from, alive: undefined as boolean | undefined };
    const checks = new Set<() => void>();
    const look = () => checks.forEach((check) => check());
    const subscription = store.subscribe(from, {
      event: ({ event }) => void told.counts.push(event.data['count']),
      parked: () => void (told.parked += 1),
      reached: (position) => {
        told.reached = position;
        look();
      },
      alive: (isAlive) => {
        told.alive = isAlive;
        look();
      },
    });
    const until = (condition: () => boolean) =>
      new Promise<void>((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new Error(`waited too long: ${JSON.stringify({ ...told, counts: told.counts.length })}`)),
          WAIT_MS,
        );
        const check = () => {
          if (!condition()) return;
          clearTimeout(timer);
          checks.delete(check);
          resolve();
        };
        checks.add(check);
        check();
      });
    return { told, until, close: () => subscription.close() };
  };
  const barrierOf = async (store: EventStore): Promise<Position> => {
    for (;;) {
      const barrier = await store.barrier(WAIT_MS);
      if (barrier.ok) return barrier.value;
      await pause(RETRY_MS);
    }
  };

  it("keeps one record an append, whose id is nobody's to choose", async () => {
    await remake();
    const store = opened(await openOn(bus));
    const first = await store.append({ category: 'grant', namespaceId: 'js', id: 'one' }, 0, [eventOf(), eventOf()]);
    expect(first).toEqual({ ok: true, value: { revision: 1, position: 1 } });
    const stored = await (await admin.jetstreamManager()).streams.getMessage('LOG', { last_by_subj: 'sharedos.v1.js.log.grant.one' });
    expect(stored.json<unknown[]>()).toHaveLength(2);
    expect(stored.header.get('sharedos-schema')).toBe('log.record/1');
    expect(stored.header.has('Nats-Msg-Id')).toBe(false);
    await store.close();
  });

  it('keeps its identity and its positions over a crash of the server, and loses, doubles and reorders nothing', async () => {
    await remake();
    const [store, writer] = [opened(await openOn(bus)), opened(await openOn(bus))];
    const heard = listen(store, 0);
    await appendMany(writer, 50);
    for (let round = 0; round < 2; round += 1) {
      const appends = appendMany(writer, 50);
      await broker.server.kill();
      await broker.server.restart();
      await appends;
    }
    const end = await barrierOf(store);
    await heard.until(() => heard.told.reached >= end && heard.told.alive === true);
    await heard.close();
    const clean = listen(writer, 0);
    await clean.until(() => clean.told.reached >= end);
    await clean.close();
    expect(clean.told.counts).toHaveLength(150);
    expect(heard.told.counts).toEqual(clean.told.counts);
    expect(opened(await openOn(bus)).storeId).toBe(store.storeId);
    await Promise.all([store.close(), writer.close()]);
  });

  it('is another store when its stream was made anew, and never follows it', async () => {
    await remake();
    const store = opened(await openOn(bus));
    await appendMany(store, 3);
    const heard = listen(store, 0);
    await heard.until(() => heard.told.reached === 3 && heard.told.alive === true);
    await remake();
    const other = opened(await openOn(bus));
    expect(other.storeId).not.toBe(store.storeId);
    await appendMany(other, 5);
    await heard.until(() => heard.told.alive === false);
    const mismatch = { ok: false, error: { kind: 'unavailable', reason: expect.stringContaining('another store') } };
    expect(await store.barrier(WAIT_MS)).toEqual(mismatch);
    expect(await store.append(newStream(), 0, [eventOf()])).toEqual(mismatch);
    expect(await store.read(newStream())).toEqual(mismatch);
    expect(heard.told.counts).toHaveLength(3);
    const late = listen(store, 0);
    await late.until(() => late.told.alive === false);
    expect(late.told.counts).toEqual([]);
    expect(await barrierOf(other)).toBe(5);
    await Promise.all([store.close(), other.close()]);
  });

  it('is unavailable once its history was set back in time', async () => {
    await remake();
    const store = opened(await openOn(bus));
    await appendMany(store, 3);
    await broker.server.kill();
    await broker.saveData();
    await broker.server.restart();
    await appendMany(store, 3);
    await broker.server.kill();
    await broker.restoreData();
    await broker.server.restart();
    for (
      let barrier = await store.barrier(WAIT_MS);
      !JSON.stringify(barrier).includes('lost some');
      barrier = await store.barrier(WAIT_MS)
    ) {
      expect(barrier.ok).toBe(false);
      await pause(RETRY_MS);
    }
    expect(await store.append(newStream(), 0, [eventOf()])).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    // A reader that comes from a position which this history never reached is not told that it is up to date.
    const [again, from] = [opened(await openOn(bus)), 6];
    expect(again.storeId).toBe(store.storeId);
    const heard = listen(again, from);
    await heard.until(() => heard.told.alive === false);
    await heard.close();
    await Promise.all([store.close(), again.close()]);
  });

  it('does not call an append a conflict that got no answer while the stream stands as expected', async () => {
    await remake();
    const mute = await broker.reader();
    const store = opened(await openOn(mute));
    expect(await store.append(newStream(), 0, [eventOf()])).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    await Promise.all([store.close(), mute.close()]);
  });

  it('knows an append without an answer for lost once the stream has moved on', async () => {
    await remake();
    const mute = await broker.reader();
    const [store, other] = [opened(await openOn(mute)), opened(await openOn(bus))];
    const stream = newStream();
    await other.append(stream, 0, [eventOf()]);
    expect(await store.append(stream, 0, [eventOf()])).toEqual({ ok: false, error: { kind: 'version_conflict', found: 1 } });
    await Promise.all([store.close(), other.close(), mute.close()]);
  });

  it('notices a record that was taken out of a stream', async () => {
    await remake();
    const store = opened(await openOn(bus));
    const stream = newStream();
    for (let revision = 0; revision < 3; revision += 1) await store.append(stream, revision, [eventOf()]);
    await (await admin.jetstreamManager()).streams.deleteMessage('LOG', 2);
    expect(await store.read(stream)).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    await store.close();
  });

  it('ends a subscription whose listener throws, as not alive, and hands the defect on', async () => {
    await remake();
    const defect = Promise.withResolvers<unknown>();
    const store = opened(await openOn(bus, { onDefect: defect.resolve }));
    await appendMany(store, 3);
    let told = 0;
    const alive: boolean[] = [];
    store.subscribe(0, {
      event: () => {
        told += 1;
        throw new Error('a listener broke');
      },
      parked: () => undefined,
      reached: () => undefined,
      alive: (isAlive) => void alive.push(isAlive),
    });
    expect(await defect.promise).toEqual(new Error('a listener broke'));
    expect([told, alive]).toEqual([1, [true, false]]);
    await store.close();
  });

  it('passes over the records of barriers', async () => {
    await remake();
    const store = opened(await openOn(bus));
    await appendMany(store, 1);
    await admin.jetstream().publish('sharedos.v1.js.log.barrier', 'any bytes');
    const heard = listen(store, 0);
    await heard.until(() => heard.told.reached === 2);
    await heard.close();
    expect(heard.told).toMatchObject({ parked: 0, counts: [expect.any(Number)] });
    await store.close();
  });

  it.each([
    ['without a schema', {}],
    ['of a version it does not know', { 'sharedos-schema': 'log.record/2', 'Nats-Expected-Last-Subject-Sequence': '0' }],
    ['that was appended at no revision', { 'sharedos-schema': 'log.record/1' }],
  ])('parks a record %s', async (_case, fields) => {
    await remake();
    const store = opened(await openOn(bus));
    const given = headers();
    for (const [name, value] of Object.entries(fields)) given.set(name, value);
    await admin.jetstream().publish('sharedos.v1.js.log.grant.x', JSON.stringify([eventOf()]), { headers: given });
    const heard = listen(store, 0);
    await heard.until(() => heard.told.reached === 1);
    await heard.close();
    expect(heard.told).toMatchObject({ parked: 1, counts: [] });
    await store.close();
  });

  it.each([
    ['forgets by age', { max_age: 60_000_000_000 }],
    ['forgets by number', { max_msgs_per_subject: 1 }],
    ['discards the old', { discard: 'old', max_bytes: 1_000_000 }],
    ['is a work queue', { retention: 'workqueue' }],
  ])('does not open on a stream that %s', async (_case, settings) => {
    const { streams } = await admin.jetstreamManager();
    await streams.delete('LOG').catch(() => false);
    await streams.add(logStream(settings as object));
    expect(await openOn(bus)).toMatchObject({ ok: false, error: { kind: 'unavailable', reason: expect.stringMatching(/^stream LOG /) } });
  });

  it('waits at the start for a stream that is not there yet, and is unavailable when none comes', async () => {
    const { streams } = await admin.jetstreamManager();
    await streams.delete('LOG').catch(() => false);
    expect(await openOn(bus, { openTimeoutMs: 50 })).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    const waiting = openOn(bus, { openTimeoutMs: WAIT_MS });
    await streams.add(logStream());
    const store = opened(await waiting);
    expect(await barrierOf(store)).toBe(0);
    await store.close();
  });
});
