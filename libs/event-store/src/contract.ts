import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { JSON_DEPTH_MAX, type JsonObj, type LogEvent, byCodeUnit, encodeToken, timestampOf } from '@sharedos/contracts';
import { eventIdOf } from './event-id.ts';
import type { Appended, EventStore, LogListener, Position, Recorded, StreamId } from './event-store.ts';
import { APPEND_BYTES_MAX, APPEND_EVENTS_MAX } from './log-record.ts';

/** One history under test, and what may happen to it. */
export interface EventStoreWorld {
  /** A further client of the same history. */
  open(): Promise<EventStore>;
  /** Writes any bytes under any subject of the log, past the port. */
  appendRaw(natsSubject: string, body: Uint8Array): Promise<Position>;
  /** From now on nothing is answered; what is sent is kept, and done after {@link EventStoreWorld.resume}. */
  stop(): void;
  resume(): void;
  /** Cuts the connection of a client once; it comes back by itself. */
  reconnect(store: EventStore): Promise<void>;
  /** By when every call must be answered while the store is stopped, in milliseconds. */
  readonly deadlineMs: number;
  close(): Promise<void>;
}

const WAIT_MS = 8_000;
const PROBE_MS = 50;
/** How late a timer of this process may be on a busy machine. */
const LATE_MS = 1_000;
const RESUMED_STREAMS = 8;

let counted = 0;
/** An event of its own id; `note` is what tests tell events apart by. */
const eventOf = (note: string, size = 0): LogEvent => {
  counted += 1;
  return {
    eventId: eventIdOf({ namespaceId: 'contract', principal: 'tester', verb: 'note', commandId: `${counted}`, index: 0 }),
    type: 'Noted',
    schemaVersion: 1,
    at: timestampOf(Date.UTC(2026, 0, 1, 12)),
    principal: { kind: 'human', userId: 'tester' },
    correlationId: 'contract',
    data: { note, padding: 'x'.repeat(size) },
  };
};
const eventsOf = (...notes: readonly string[]): readonly LogEvent[] => notes.map((note) => eventOf(note));
const newStream = (id = `g-${(counted += 1)}`): StreamId => ({ category: 'grant', namespaceId: 'contract', id });
const noteOf = ({ event }: Recorded): string => event.data['note'] as string;

const sameEvents = (a: readonly Recorded[], b: readonly Recorded[]) =>
  expect(a.map((each) => [each.position, each.event.eventId])).toEqual(b.map((each) => [each.position, each.event.eventId]));

/** Appends, trying again with the same events while there is no answer: what every caller of the port does. */
const appendSurely = async (store: EventStore, stream: StreamId, expected: number, events: readonly LogEvent[]): Promise<Appended> => {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const appended = await store.append(stream, expected, events);
    if (appended.ok) return appended.value;
    if (appended.error.kind !== 'unavailable') throw new Error(`not appended: ${JSON.stringify(appended.error)}`);
  }
  throw new Error('not appended in 20 attempts');
};
const readSurely = async (store: EventStore, stream: StreamId) => {
  const read = await store.read(stream);
  if (!read.ok) throw new Error(`not read: ${read.error.reason}`);
  return read.value;
};
const barrierOf = async (store: EventStore): Promise<Position> => {
  const barrier = await store.barrier(WAIT_MS);
  if (!barrier.ok) throw new Error(`no barrier: ${barrier.error.reason}`);
  return barrier.value;
};

/** All that one subscription was told. */
const listen = (store: EventStore, from: Position, also: Partial<LogListener> = {}) => {
  const told = {
    events: [] as Recorded[],
    parked: [] as { position: Position; natsSubject: string; why: string }[],
    reached: from,
    alive: [] as boolean[],
  };
  const waiting = new Set<() => void>();
  const look = () => waiting.forEach((check) => check());
  const subscription = store.subscribe(from, {
    event: (recorded) => {
      expect(recorded.position, 'an event is told before its position is reached').toBeGreaterThan(told.reached);
      told.events.push(recorded);
      also.event?.(recorded);
    },
    parked: (parked) => void told.parked.push(parked),
    reached: (position) => {
      expect(position, 'positions grow').toBeGreaterThan(told.reached);
      told.reached = position;
      look();
    },
    alive: (isAlive) => {
      expect(isAlive, 'only changes are told').not.toBe(told.alive.at(-1));
      told.alive.push(isAlive);
      look();
    },
  });
  const until = (what: string, condition: () => boolean) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`waited for ${what}; reached ${told.reached}, alive ${told.alive.join()}`)), WAIT_MS);
      const check = () => {
        if (!condition()) return;
        clearTimeout(timer);
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
      check();
    });
  return {
    told,
    untilReached: (position: Position) => until(`position ${position}`, () => told.reached >= position),
    untilAlive: (isAlive: boolean) => until(`alive: ${isAlive}`, () => told.alive.at(-1) === isAlive),
    close: () => subscription.close(),
  };
};

/** The rules of the port, for every adapter. Names of `world` are of one history; each test writes streams of its own. */
export const eventStoreContract = (adapter: string, begin: () => Promise<EventStoreWorld>): unknown =>
  describe(`${adapter} as an event store`, () => {
    let world: EventStoreWorld;
    let store: EventStore;
    beforeAll(async () => {
      world = await begin();
      store = await world.open();
    });
    afterAll(async () => {
      world?.resume();
      await store?.close();
      await world?.close();
    });

    describe('appending', () => {
      it('finds a stream never written empty at revision 0', async () => {
        expect(await readSurely(store, newStream())).toEqual({ events: [], revision: 0 });
      });

      it('gives back what was appended, in order, at once and to every client', async () => {
        const [stream, other] = [newStream(), await world.open()];
        const first = await appendSurely(store, stream, 0, eventsOf('a', 'b'));
        const second = await appendSurely(store, stream, first.revision, eventsOf('c'));
        for (const client of [store, other]) {
          const read = await readSurely(client, stream);
          expect(read.events.map(noteOf)).toEqual(['a', 'b', 'c']);
          expect(read.events.every((each) => each.stream.id === stream.id)).toBe(true);
          expect(read.revision).toBe(second.revision);
          expect(read.events[1]?.position).toBe(first.position);
          expect(read.events[2]?.position).toBe(second.position);
        }
        expect(second.position).toBeGreaterThan(first.position);
        await other.close();
      });

      it('lets exactly one of two writers at the same revision win, and tells the other what it found', async () => {
        const [stream, other] = [newStream(), await world.open()];
        let revision = 0;
        for (let round = 0; round < 20; round += 1) {
          const outcomes = await Promise.all([
            store.append(stream, revision, eventsOf('a')),
            other.append(stream, revision, eventsOf('b')),
          ]);
          const won = outcomes.filter((outcome) => outcome.ok);
          expect(won).toHaveLength(1);
          revision = won[0]?.ok ? won[0].value.revision : 0;
          expect(outcomes).toContainEqual({ ok: false, error: { kind: 'version_conflict', found: revision } });
        }
        expect((await readSurely(store, stream)).events).toHaveLength(20);
        await other.close();
      });

      it.each([
        ['below where the stream ends', -1],
        ['above where the stream ends', 1],
      ])('refuses a revision %s', async (_case, off) => {
        const stream = newStream();
        const first = await appendSurely(store, stream, 0, eventsOf('a'));
        const { revision } = await appendSurely(store, stream, first.revision, eventsOf('b'));
        const expected = off < 0 ? first.revision : revision + 1_000_000;
        expect(await store.append(stream, expected, eventsOf('x', 'y', 'z'))).toEqual({
          ok: false,
          error: { kind: 'version_conflict', found: revision },
        });
        expect((await readSurely(store, stream)).events.map(noteOf)).toEqual(['a', 'b']);
      });

      it('refuses any revision but 0 for a stream never written', async () => {
        expect(await store.append(newStream(), 7, eventsOf('a'))).toEqual({ ok: false, error: { kind: 'version_conflict', found: 0 } });
      });

      it('refuses "no stream" once it is written, however often it is asked', async () => {
        const stream = newStream();
        const { revision } = await appendSurely(store, stream, 0, eventsOf('issued'));
        for (let attempt = 0; attempt < 3; attempt += 1) {
          expect(await store.append(stream, 0, eventsOf('issued again'))).toEqual({
            ok: false,
            error: { kind: 'version_conflict', found: revision },
          });
        }
      });

      it('answers the same append again with the revision and position of then, and appends nothing', async () => {
        const stream = newStream();
        const events = eventsOf('a', 'b');
        const first = await appendSurely(store, stream, 0, events);
        expect(first.repeated).toBeUndefined();
        const repeated = { ok: true, value: { ...first, repeated: true } };
        expect(await store.append(stream, 0, events)).toEqual(repeated);
        await appendSurely(store, stream, first.revision, eventsOf('c'));
        expect(await store.append(stream, 0, events)).toEqual(repeated);
        const [changed, same] = [{ ...(events[0] as LogEvent), correlationId: 'another attempt' }, events[1] as LogEvent];
        expect(await store.append(stream, 0, [changed, same])).toEqual(repeated);
        expect((await readSurely(store, stream)).events.map(noteOf)).toEqual(['a', 'b', 'c']);
      });

      it('does not take an append for done of which only a part is there', async () => {
        const stream = newStream();
        const [known, fresh] = eventsOf('known', 'new') as [LogEvent, LogEvent];
        const { revision } = await appendSurely(store, stream, 0, [known]);
        expect(await store.append(stream, 0, [known, fresh])).toEqual({ ok: false, error: { kind: 'version_conflict', found: revision } });
      });

      it('does not take an event of another stream for its own', async () => {
        const [one, two] = [newStream(), newStream()];
        const events = eventsOf('a');
        await appendSurely(store, one, 0, events);
        const second = await appendSurely(store, two, 0, events);
        expect((await readSurely(store, two)).events[0]?.position).toBe(second.position);
      });

      it('takes one up to its limits and refuses a larger one, which leaves nothing behind', async () => {
        const stream = newStream();
        expect(await store.append(stream, 0, [eventOf('large', APPEND_BYTES_MAX)])).toEqual({ ok: false, error: { kind: 'too_large' } });
        const many = Array.from({ length: APPEND_EVENTS_MAX + 1 }, (_, index) => eventOf(`${index}`));
        expect(await store.append(stream, 0, many)).toEqual({ ok: false, error: { kind: 'too_large' } });
        const deep = JSON.parse('{"n":'.repeat(JSON_DEPTH_MAX - 1) + '{}' + '}'.repeat(JSON_DEPTH_MAX - 1)) as JsonObj;
        expect(await store.append(stream, 0, [{ ...eventOf('deep'), data: deep }])).toEqual({ ok: false, error: { kind: 'too_large' } });
        const { revision } = await appendSurely(store, stream, 0, [eventOf('fits', APPEND_BYTES_MAX - 1_024)]);
        await appendSurely(store, stream, revision, many.slice(1));
        expect((await readSurely(store, stream)).events).toHaveLength(1 + APPEND_EVENTS_MAX);
      });

      it.each([
        ['no events', newStream(), []],
        ['an event that is not of the schema', newStream(), [{ ...eventOf('a'), eventId: 'not a uuid' }]],
        ['an identifier with outer whitespace', newStream(' a'), eventsOf('a')],
        ['an empty identifier', newStream(''), eventsOf('a')],
        ['an identifier with a lone surrogate', newStream('\ud800'), eventsOf('a')],
        ['an unknown category', { ...newStream(), category: 'barrier' as 'grant' }, eventsOf('a')],
      ])('never writes what its readers would park: %s is a defect', async (_case, stream, events) => {
        const before = await barrierOf(store);
        await expect(store.append(stream, 0, events)).rejects.toThrow(/expected that|lone surrogate/);
        expect(await barrierOf(store)).toBe(before);
      });
    });

    describe('names', () => {
      const ODD = [
        'a.b',
        'A.B',
        'a',
        'A',
        '*',
        '>',
        '..',
        '../x',
        'a b',
        'a/b',
        '~a',
        '~YQ',
        '🦊',
        'é',
        'e\u0301',
        'a\u0000b',
        'a\nb',
        'x'.repeat(250),
        'X'.repeat(250),
        'ü'.repeat(125),
        '🦊'.repeat(62),
        '-',
        '_',
        '%2e',
        'log',
        'grant',
        'barrier',
      ];

      it('keeps every odd name apart as a stream and as a namespace, and tells it back unchanged', async () => {
        const from = await barrierOf(store);
        const streams: StreamId[] = ODD.flatMap((id) => [
          { category: 'grant', namespaceId: 'odd', id },
          { category: 'grant', namespaceId: id, id: 'odd' },
        ]);
        await Promise.all(streams.map((stream) => appendSurely(store, stream, 0, eventsOf(JSON.stringify(stream)))));
        const heard = listen(store, from);
        await heard.untilReached(await barrierOf(store));
        await heard.close();
        expect(new Set(heard.told.events.map(({ stream }) => JSON.stringify(stream)))).toEqual(
          new Set(streams.map((stream) => JSON.stringify(stream))),
        );
        for (const recorded of heard.told.events) expect(noteOf(recorded)).toBe(JSON.stringify(recorded.stream));
        for (const stream of streams) expect((await readSurely(store, stream)).events.map(noteOf)).toEqual([JSON.stringify(stream)]);
      });

      it.each<[string, StreamId, StreamId]>([
        [
          'a separator in either part',
          { category: 'grant', namespaceId: 'j1', id: 'b.c' },
          { category: 'grant', namespaceId: 'j1.b', id: 'c' },
        ],
        [
          'a category in the namespace',
          { category: 'grant', namespaceId: 'j2', id: 'x' },
          { category: 'grant', namespaceId: 'j2.log.grant', id: 'x' },
        ],
        ['the category alone', { category: 'grant', namespaceId: 'j3', id: 'x' }, { category: 'policy', namespaceId: 'j3', id: 'x' }],
        [
          'an id that is the encoding of another',
          { category: 'grant', namespaceId: 'j4', id: 'a b' },
          { category: 'grant', namespaceId: 'j4', id: encodeToken('a b') },
        ],
      ])('never joins parts ambiguously: %s', async (_case, one, two) => {
        await appendSurely(store, one, 0, eventsOf('one'));
        expect(await readSurely(store, two)).toEqual({ events: [], revision: 0 });
      });
    });

    describe('subscribing', () => {
      it('tells events in the order of appending, under 16 writers at once', async () => {
        const from = await barrierOf(store);
        const heard = listen(store, from);
        const streams = Array.from({ length: 5 }, () => newStream());
        const finished: { startedAfter: number; position: Position }[] = [];
        const writer = async (name: number) => {
          for (let count = 0; count < 10; count += 1) {
            const stream = streams[(name + count) % streams.length] as StreamId;
            const events = eventsOf(`${name}/${count}`);
            for (;;) {
              // What had been acknowledged when this append began must come before it.
              const startedAfter = finished.reduce((most, done) => Math.max(most, done.position), 0);
              const appended = await store.append(stream, (await readSurely(store, stream)).revision, events);
              if (appended.ok) {
                finished.push({ startedAfter, position: appended.value.position });
                break;
              }
            }
          }
        };
        await Promise.all(Array.from({ length: 16 }, (_, name) => writer(name)));
        await heard.untilReached(await barrierOf(store));
        await heard.close();
        expect(heard.told.events).toHaveLength(160);
        expect(finished.every(({ startedAfter, position }) => position > startedAfter)).toBe(true);
        expect(heard.told.events.map(({ position }) => position)).toEqual(finished.map(({ position }) => position).sort((a, b) => a - b));
        for (const stream of streams) {
          sameEvents(
            heard.told.events.filter((recorded) => recorded.stream.id === stream.id),
            (await readSurely(store, stream)).events,
          );
        }
      });

      it('resumes at every position with exactly what comes after it', async () => {
        const from = await barrierOf(store);
        for (let count = 0; count < RESUMED_STREAMS; count += 1)
          await appendSurely(store, newStream(), 0, eventsOf(`${count}`, `${count}+`));
        const end = await barrierOf(store);
        const whole = listen(store, from);
        await whole.untilReached(end);
        await whole.close();
        expect(whole.told.events).toHaveLength(2 * RESUMED_STREAMS);
        for (let position = from; position < end; position += 1) {
          const resumed = listen(store, position);
          await resumed.untilReached(end);
          await resumed.close();
          sameEvents(
            resumed.told.events,
            whole.told.events.filter((recorded) => recorded.position > position),
          );
        }
      });

      it('loses, doubles and reorders nothing over 20 reconnects in 2 000 events', async () => {
        const [writer, reader] = [store, await world.open()];
        const from = await barrierOf(writer);
        let heard = listen(reader, from);
        const all: Recorded[] = [];
        for (let round = 0; round < 20; round += 1) {
          const appends = Promise.all(
            Array.from({ length: 50 }, (_, index) => appendSurely(writer, newStream(), 0, eventsOf(`${round}/${index}`, '+'))),
          );
          await world.reconnect(reader);
          if (round % 5 === 4) {
            const { reached } = heard.told;
            await heard.close();
            all.push(...heard.told.events.filter((recorded) => recorded.position <= reached));
            heard = listen(reader, reached);
          }
          await appends;
        }
        const end = await barrierOf(writer);
        await heard.untilReached(end);
        await heard.close();
        all.push(...heard.told.events);
        const clean = listen(writer, from);
        await clean.untilReached(end);
        await clean.close();
        expect(clean.told.events).toHaveLength(2_000);
        sameEvents(all, clean.told.events);
        await reader.close();
      });

      it('parks and names what is no event of ours, while the others flow', async () => {
        const from = await barrierOf(store);
        const good = newStream();
        const first = await appendSurely(store, good, 0, eventsOf('before'));
        const junk: [string, Buffer][] = [
          ['sharedos.v1.contract.log.grant.junk-1', Buffer.from('not json')],
          ['sharedos.v1.contract.log.grant.junk-2', Buffer.from('{}')],
          ['sharedos.v1.contract.log.grant.junk-3', Buffer.from([0xff, 0xfe])],
          ['sharedos.v1.contract.log.grant.junk-4', Buffer.from('[{"eventId":1}]')],
          ['sharedos.v1.contract.log.grant.junk-5', Buffer.from('')],
          ['sharedos.v1.contract.log.grant.a.b', Buffer.from(JSON.stringify(eventsOf('stray')))],
          ['sharedos.v1.contract.log.nothing.x', Buffer.from(JSON.stringify(eventsOf('stray')))],
          ['sharedos.v1.contract.log.grant.~YQ', Buffer.from(JSON.stringify(eventsOf('another spelling of a')))],
        ];
        const positions: Position[] = [];
        for (const [natsSubject, body] of junk) positions.push(await world.appendRaw(natsSubject, body));
        await appendSurely(store, good, first.revision, eventsOf('after'));
        const heard = listen(store, from);
        await heard.untilReached(await barrierOf(store));
        await heard.close();
        expect(heard.told.events.map(noteOf)).toEqual(['before', 'after']);
        expect(heard.told.parked.map(({ position, natsSubject }) => [position, natsSubject])).toEqual(
          junk.map(([natsSubject], index) => [positions[index], natsSubject]),
        );
        expect(heard.told.parked.every(({ why }) => why.length > 0)).toBe(true);
      });

      it('does not answer from a stream with a record it cannot read', async () => {
        const stream = newStream();
        const { revision } = await appendSurely(store, stream, 0, eventsOf('a'));
        await world.appendRaw(`sharedos.v1.contract.log.grant.${stream.id}`, Buffer.from('[{"type":"GrantRevokedV9"}]'));
        expect(await store.read(stream)).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        expect(await store.append(stream, revision, eventsOf('b'))).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
      });

      it('tells nothing after it is closed', async () => {
        const heard = listen(store, await barrierOf(store));
        await heard.untilAlive(true);
        await heard.close();
        await appendSurely(store, newStream(), 0, eventsOf('unheard'));
        const other = listen(store, (await barrierOf(store)) - 1);
        await other.untilReached(await barrierOf(store));
        await other.close();
        expect(heard.told.events).toEqual([]);
      });

      it('lets a listener append', async () => {
        const [stream, answer] = [newStream(), newStream()];
        const answered = Promise.withResolvers<Appended>();
        const heard = listen(store, await barrierOf(store), {
          event: (recorded) => {
            if (recorded.stream.id === stream.id)
              void appendSurely(store, answer, 0, eventsOf('answer')).then(answered.resolve, answered.reject);
          },
        });
        await appendSurely(store, stream, 0, eventsOf('question'));
        await heard.untilReached((await answered.promise).position);
        await heard.close();
        expect(heard.told.events.map(noteOf)).toEqual(['question', 'answer']);
      });
    });

    describe('the barrier', () => {
      it('is at or above every append acknowledged before, by any client', async () => {
        const other = await world.open();
        let acknowledged = 0;
        const writer = async () => {
          for (let count = 0; count < 50; count += 1)
            acknowledged = Math.max(acknowledged, (await appendSurely(store, newStream(), 0, eventsOf('a'))).position);
        };
        const asker = async () => {
          for (let count = 0; count < 50; count += 1) {
            const before = acknowledged;
            expect(await barrierOf(other)).toBeGreaterThanOrEqual(before);
          }
        };
        await Promise.all([writer(), writer(), ...Array.from({ length: 8 }, asker)]);
        await other.close();
      });

      it('is reached by a subscription', async () => {
        await appendSurely(store, newStream(), 0, eventsOf('a'));
        const heard = listen(store, 0);
        await heard.untilReached(await barrierOf(store));
        await heard.close();
      });
    });

    describe('a store that stops answering', () => {
      it('is unavailable within the deadline, says that its feed is not alive, and recovers by itself', async () => {
        const [known, fresh, later] = [newStream(), newStream(), newStream()];
        const { revision } = await appendSurely(store, known, 0, eventsOf('a'));
        const heard = listen(store, await barrierOf(store));
        await heard.untilAlive(true);
        const [onKnown, onFresh] = [eventsOf('b'), eventsOf('c', 'd')];

        world.stop();
        // A process that was told to stop may still answer what it was about to.
        while ((await store.barrier(PROBE_MS)).ok);
        const startedAt = performance.now();
        const answers = await Promise.all([
          store.append(known, revision, onKnown),
          store.append(fresh, 0, onFresh),
          store.read(known),
          store.barrier(world.deadlineMs / 2),
        ]);
        expect(performance.now() - startedAt).toBeLessThan(world.deadlineMs + LATE_MS);
        for (const answer of answers) expect(answer).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
        await heard.untilAlive(false);
        world.resume();

        await heard.untilAlive(true);
        // Both had in fact been sent: asked again with the same ids they get one answer, and there is one of each.
        const again = await appendSurely(store, known, revision, onKnown);
        const againFresh = await appendSurely(store, fresh, 0, onFresh);
        expect(await store.append(fresh, 0, onFresh)).toEqual({ ok: true, value: { ...againFresh, repeated: true } });
        expect((await readSurely(store, known)).revision).toBe(again.revision);
        expect((await readSurely(store, known)).events.map(noteOf)).toEqual(['a', 'b']);
        expect((await readSurely(store, fresh)).events.map(noteOf)).toEqual(['c', 'd']);
        await appendSurely(store, later, 0, eventsOf('e'));
        await heard.untilReached(await barrierOf(store));
        await heard.close();
        expect(heard.told.events.map(noteOf).sort(byCodeUnit)).toEqual(['b', 'c', 'd', 'e']);
      });
    });
  });
