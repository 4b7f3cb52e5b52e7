import { describe, expect, it } from 'vitest';
import { appendSurely, barrierOf, eventsOf, listen, newStream, noteOf, readSurely, sameEvents } from './contract-words.ts';
import type { UnderTest } from './contract-world.ts';
import type { Appended, Position, Recorded, StreamId } from './event-store.ts';

const RESUMED_STREAMS = 8;
/** With 50 it is 10 000 events; the ordinary run has fewer. */
const RECONNECTS = Number(process.env['SHAREDOS_CONTRACT_RECONNECTS'] ?? 10);
const EVENTS_BETWEEN = 200;
const LONG_MS = 60_000 + RECONNECTS * 5_000;

export const subscribingContract = (under: UnderTest): unknown =>
  describe('subscribing', () => {
    it('tells events in the order of appending, under 16 writers at once', async () => {
      const from = await barrierOf(under.store);
      const heard = listen(under.store, from);
      const streams = Array.from({ length: 5 }, () => newStream());
      const finished: { startedAfter: number; position: Position }[] = [];
      const writer = async (name: number) => {
        for (let count = 0; count < 10; count += 1) {
          const stream = streams[(name + count) % streams.length] as StreamId;
          const events = eventsOf(`${name}/${count}`);
          for (;;) {
            // What had been acknowledged when this append began must come before it.
            const startedAfter = finished.reduce((most, done) => Math.max(most, done.position), 0);
            const appended = await under.store.append(stream, (await readSurely(under.store, stream)).revision, events);
            if (appended.ok) {
              finished.push({ startedAfter, position: appended.value.position });
              break;
            }
          }
        }
      };
      await Promise.all(Array.from({ length: 16 }, (_, name) => writer(name)));
      await heard.untilReached(await barrierOf(under.store));
      await heard.close();
      expect(heard.told.events).toHaveLength(160);
      expect(finished.every(({ startedAfter, position }) => position > startedAfter)).toBe(true);
      expect(heard.told.events.map(({ position }) => position)).toEqual(finished.map(({ position }) => position).sort((a, b) => a - b));
      for (const stream of streams) {
        sameEvents(
          heard.told.events.filter((recorded) => recorded.stream.id === stream.id),
          (await readSurely(under.store, stream)).events,
        );
      }
    });

    it('resumes at every position with exactly what comes after it', async () => {
      const from = await barrierOf(under.store);
      for (let count = 0; count < RESUMED_STREAMS; count += 1)
        await appendSurely(under.store, newStream(), 0, eventsOf(`${count}`, `${count}+`));
      const end = await barrierOf(under.store);
      const whole = listen(under.store, from);
      await whole.untilReached(end);
      await whole.close();
      expect(whole.told.events).toHaveLength(2 * RESUMED_STREAMS);
      for (const position of [from, ...whole.told.places].filter((place) => place < end)) {
        const resumed = listen(under.store, position);
        await resumed.untilReached(end);
        await resumed.close();
        sameEvents(
          resumed.told.events,
          whole.told.events.filter((recorded) => recorded.position > position),
        );
      }
    });

    it(
      `loses, doubles and reorders nothing over ${RECONNECTS} reconnects in ${RECONNECTS * EVENTS_BETWEEN} events`,
      { timeout: LONG_MS },
      async () => {
        const [writer, reader] = [under.store, await under.world.open()];
        const from = await barrierOf(writer);
        let heard = listen(reader, from);
        const all: Recorded[] = [];
        for (let round = 0; round < RECONNECTS; round += 1) {
          const appends = Promise.all(
            Array.from({ length: EVENTS_BETWEEN / 2 }, (_, index) =>
              appendSurely(writer, newStream(), 0, eventsOf(`${round}/${index}`, '+')),
            ),
          );
          await under.world.reconnect(reader);
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
        expect(clean.told.events).toHaveLength(RECONNECTS * EVENTS_BETWEEN);
        sameEvents(all, clean.told.events);
        await reader.close();
      },
    );

    it('parks and names what is no event of ours, while the others flow', async () => {
      const from = await barrierOf(under.store);
      const good = newStream();
      const first = await appendSurely(under.store, good, 0, eventsOf('before'));
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
      for (const [natsSubject, body] of junk) positions.push(await under.world.appendRaw(natsSubject, body));
      await appendSurely(under.store, good, first.revision, eventsOf('after'));
      const heard = listen(under.store, from);
      await heard.untilReached(await barrierOf(under.store));
      await heard.close();
      expect(heard.told.events.map(noteOf)).toEqual(['before', 'after']);
      expect(heard.told.parked.map(({ position, natsSubject }) => [position, natsSubject])).toEqual(
        junk.map(([natsSubject], index) => [positions[index], natsSubject]),
      );
      expect(heard.told.parked.every(({ why }) => why.length > 0)).toBe(true);
    });

    it('does not answer from a stream with a record it cannot read', async () => {
      const stream = newStream();
      const { revision } = await appendSurely(under.store, stream, 0, eventsOf('a'));
      await under.world.appendRaw(`sharedos.v1.contract.log.grant.${stream.id}`, Buffer.from('[{"type":"GrantRevokedV9"}]'));
      expect(await under.store.read(stream)).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
      expect(await under.store.append(stream, revision, eventsOf('b'))).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    });

    it('tells nothing after it is closed', async () => {
      const from = await barrierOf(under.store);
      const heard = listen(under.store, from);
      await heard.untilAlive(true);
      await heard.close();
      const { position } = await appendSurely(under.store, newStream(), 0, eventsOf('unheard'));
      const other = listen(under.store, from);
      await other.untilReached(position);
      await other.close();
      expect(other.told.events.map(noteOf)).toEqual(['unheard']);
      expect(heard.told.events).toEqual([]);
    });

    it('lets a listener append', async () => {
      const [stream, answer] = [newStream(), newStream()];
      const answered = Promise.withResolvers<Appended>();
      const heard = listen(under.store, await barrierOf(under.store), {
        event: (recorded) => {
          if (recorded.stream.id === stream.id)
            void appendSurely(under.store, answer, 0, eventsOf('answer')).then(answered.resolve, answered.reject);
        },
      });
      await appendSurely(under.store, stream, 0, eventsOf('question'));
      await heard.untilReached((await answered.promise).position);
      await heard.close();
      expect(heard.told.events.map(noteOf)).toEqual(['question', 'answer']);
    });
  });
