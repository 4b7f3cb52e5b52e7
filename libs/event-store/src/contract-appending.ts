import { describe, expect, it } from 'vitest';
import { JSON_DEPTH_MAX, type JsonObj, type LogEvent } from '@sharedos/contracts';
import { appendSurely, barrierOf, eventOf, eventsOf, listen, newStream, noteOf, readSurely } from './contract-words.ts';
import type { UnderTest } from './contract-world.ts';
import { APPEND_BYTES_MAX, APPEND_EVENTS_MAX } from './log-record.ts';

export const appendingContract = (under: UnderTest): unknown =>
  describe('appending', () => {
    it('finds a stream never written empty at revision 0', async () => {
      expect(await readSurely(under.store, newStream())).toEqual({ events: [], revision: 0 });
    });

    it('gives back what was appended, in order, at once and to every client', async () => {
      const [stream, other] = [newStream(), await under.world.open()];
      const first = await appendSurely(under.store, stream, 0, eventsOf('a', 'b'));
      const second = await appendSurely(under.store, stream, first.revision, eventsOf('c'));
      for (const client of [under.store, other]) {
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
      const [stream, other] = [newStream(), await under.world.open()];
      let revision = 0;
      for (let round = 0; round < 20; round += 1) {
        const outcomes = await Promise.all([
          under.store.append(stream, revision, eventsOf('a')),
          other.append(stream, revision, eventsOf('b')),
        ]);
        const won = outcomes.filter((outcome) => outcome.ok);
        expect(won).toHaveLength(1);
        revision = won[0]?.ok ? won[0].value.revision : 0;
        expect(outcomes).toContainEqual({ ok: false, error: { kind: 'version_conflict', found: revision } });
      }
      expect((await readSurely(under.store, stream)).events).toHaveLength(20);
      await other.close();
    });

    it.each([
      ['below where the stream ends', -1],
      ['above where the stream ends', 1],
    ])('refuses a revision %s', async (_case, off) => {
      const stream = newStream();
      const first = await appendSurely(under.store, stream, 0, eventsOf('a'));
      const { revision } = await appendSurely(under.store, stream, first.revision, eventsOf('b'));
      const expected = off < 0 ? first.revision : revision + 1_000_000;
      expect(await under.store.append(stream, expected, eventsOf('x', 'y', 'z'))).toEqual({
        ok: false,
        error: { kind: 'version_conflict', found: revision },
      });
      expect((await readSurely(under.store, stream)).events.map(noteOf)).toEqual(['a', 'b']);
    });

    it('refuses any revision but 0 for a stream never written', async () => {
      expect(await under.store.append(newStream(), 7, eventsOf('a'))).toEqual({ ok: false, error: { kind: 'version_conflict', found: 0 } });
    });

    it('refuses "no stream" once it is written, however often it is asked', async () => {
      const stream = newStream();
      const { revision } = await appendSurely(under.store, stream, 0, eventsOf('issued'));
      for (let attempt = 0; attempt < 3; attempt += 1) {
        expect(await under.store.append(stream, 0, eventsOf('issued again'))).toEqual({
          ok: false,
          error: { kind: 'version_conflict', found: revision },
        });
      }
    });

    it('answers the same append again with the revision and position of then, and appends nothing', async () => {
      const stream = newStream();
      const events = eventsOf('a', 'b');
      const first = await appendSurely(under.store, stream, 0, events);
      expect(first.repeated).toBeUndefined();
      const repeated = { ok: true, value: { ...first, repeated: true } };
      expect(await under.store.append(stream, 0, events)).toEqual(repeated);
      await appendSurely(under.store, stream, first.revision, eventsOf('c'));
      expect(await under.store.append(stream, 0, events)).toEqual(repeated);
      const [changed, same] = [{ ...(events[0] as LogEvent), correlationId: 'another attempt' }, events[1] as LogEvent];
      expect(await under.store.append(stream, 0, [changed, same])).toEqual(repeated);
      expect((await readSurely(under.store, stream)).events.map(noteOf)).toEqual(['a', 'b', 'c']);
    });

    it('does not take an append for done of which only a part is there', async () => {
      const stream = newStream();
      const [known, fresh] = eventsOf('known', 'new') as [LogEvent, LogEvent];
      const { revision } = await appendSurely(under.store, stream, 0, [known]);
      expect(await under.store.append(stream, 0, [known, fresh])).toEqual({
        ok: false,
        error: { kind: 'version_conflict', found: revision },
      });
    });

    it('does not take an event of another stream for its own', async () => {
      const [one, two] = [newStream(), newStream()];
      const events = eventsOf('a');
      await appendSurely(under.store, one, 0, events);
      const second = await appendSurely(under.store, two, 0, events);
      expect((await readSurely(under.store, two)).events[0]?.position).toBe(second.position);
    });

    it('takes one up to its limits and refuses a larger one, which leaves nothing behind', async () => {
      const stream = newStream();
      expect(await under.store.append(stream, 0, [eventOf('large', APPEND_BYTES_MAX)])).toEqual({
        ok: false,
        error: { kind: 'too_large' },
      });
      const many = Array.from({ length: APPEND_EVENTS_MAX + 1 }, (_, index) => eventOf(`${index}`));
      expect(await under.store.append(stream, 0, many)).toEqual({ ok: false, error: { kind: 'too_large' } });
      const deep = JSON.parse('{"n":'.repeat(JSON_DEPTH_MAX - 1) + '{}' + '}'.repeat(JSON_DEPTH_MAX - 1)) as JsonObj;
      expect(await under.store.append(stream, 0, [{ ...eventOf('deep'), data: deep }])).toEqual({
        ok: false,
        error: { kind: 'too_large' },
      });
      const { revision } = await appendSurely(under.store, stream, 0, [eventOf('fits', APPEND_BYTES_MAX - 1_024)]);
      await appendSurely(under.store, stream, revision, many.slice(1));
      expect((await readSurely(under.store, stream)).events).toHaveLength(1 + APPEND_EVENTS_MAX);
    });

    it.each([
      ['no events', newStream(), []],
      ['an event that is not of the schema', newStream(), [{ ...eventOf('a'), eventId: 'not a uuid' }]],
      ['an identifier with outer whitespace', newStream(' a'), eventsOf('a')],
      ['an empty identifier', newStream(''), eventsOf('a')],
      ['an identifier with a lone surrogate', newStream('\ud800'), eventsOf('a')],
      ['an unknown category', { ...newStream(), category: 'barrier' as 'grant' }, eventsOf('a')],
    ])('never writes what its readers would park: %s is a defect', async (_case, stream, events) => {
      const heard = listen(under.store, await barrierOf(under.store));
      await expect(under.store.append(stream, 0, events)).rejects.toThrow(/expected that|lone surrogate/);
      const end = await appendSurely(under.store, newStream(), 0, eventsOf('the next'));
      await heard.untilReached(end.position);
      await heard.close();
      expect(heard.told.events.map(noteOf)).toEqual(['the next']);
      expect(heard.told.parked).toEqual([]);
    });
  });
