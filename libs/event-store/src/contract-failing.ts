import { type TestContext, describe, expect, it } from 'vitest';
import { byCodeUnit } from '@sharedos/contracts';
import { appendSurely, barrierOf, eventsOf, listen, newStream, noteOf, readSurely } from './contract-words.ts';
import type { CannotBeHad, EventStoreWorld, UnderTest } from './contract-world.ts';

const PROBE_MS = 50;
/** How late a timer of this process may be on a busy machine. */
const LATE_MS = 1_000;

/** A case that not every adapter can be put through; one that cannot says why in the output. */
const ifPossible =
  <T extends object>(under: UnderTest, means: (world: EventStoreWorld) => T | CannotBeHad, run: (had: T) => Promise<void>) =>
  async ({ annotate }: TestContext): Promise<void> => {
    const had = means(under.world);
    if ('cannot' in had) await annotate(`cannot be had here: ${had.cannot}`);
    else await run(had);
  };

export const failingContract = (under: UnderTest): unknown =>
  describe('a store that stops answering', () => {
    it('is unavailable within the deadline, says that its feed is not alive, and recovers by itself', async () => {
      const [known, fresh, later] = [newStream(), newStream(), newStream()];
      const { revision } = await appendSurely(under.store, known, 0, eventsOf('a'));
      const heard = listen(under.store, await barrierOf(under.store));
      await heard.untilAlive(true);
      const [onKnown, onFresh] = [eventsOf('b'), eventsOf('c', 'd')];

      under.world.stop();
      // A process that was told to stop may still answer what it was about to.
      while ((await under.store.barrier(PROBE_MS)).ok);
      const startedAt = performance.now();
      const answers = await Promise.all([
        under.store.append(known, revision, onKnown),
        under.store.append(fresh, 0, onFresh),
        under.store.read(known),
        under.store.barrier(under.world.deadlineMs / 2),
      ]);
      expect(performance.now() - startedAt).toBeLessThan(under.world.deadlineMs + LATE_MS);
      for (const answer of answers) expect(answer).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
      await heard.untilAlive(false);
      under.world.resume();

      await heard.untilAlive(true);
      // Both had in fact been sent: asked again with the same ids they get one answer, and there is one of each.
      const again = await appendSurely(under.store, known, revision, onKnown);
      const againFresh = await appendSurely(under.store, fresh, 0, onFresh);
      expect(await under.store.append(fresh, 0, onFresh)).toEqual({ ok: true, value: { ...againFresh, repeated: true } });
      expect((await readSurely(under.store, known)).revision).toBe(again.revision);
      expect((await readSurely(under.store, known)).events.map(noteOf)).toEqual(['a', 'b']);
      expect((await readSurely(under.store, fresh)).events.map(noteOf)).toEqual(['c', 'd']);
      await appendSurely(under.store, later, 0, eventsOf('e'));
      await heard.untilReached(await barrierOf(under.store));
      await heard.close();
      expect(heard.told.events.map(noteOf).sort(byCodeUnit)).toEqual(['b', 'c', 'd', 'e']);
    });

    it('gives the answer of then to an append that was stored unheard and is sent again', async () => {
      const [stream, other] = [newStream(), newStream()];
      const before = await appendSurely(under.store, stream, 0, eventsOf('a'));
      const unheard = eventsOf('b', 'c');
      under.world.mute();
      const answer = await under.store.append(stream, before.revision, unheard);
      under.world.hear();
      expect(answer).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
      await appendSurely(under.store, other, 0, eventsOf('meanwhile'));
      const again = await appendSurely(under.store, stream, before.revision, unheard);
      expect(again.repeated).toBe(true);
      const read = await readSurely(under.store, stream);
      expect(read.events.map(noteOf)).toEqual(['a', 'b', 'c']);
      expect(again).toEqual({ revision: read.revision, position: read.events.at(-1)?.position, repeated: true });
    });

    it(
      'is unavailable behind a black hole within the deadline, and recovers alone',
      ifPossible(
        under,
        (world) => world.blackHole,
        async (blackHole) => {
          const stream = newStream();
          const { revision } = await appendSurely(under.store, stream, 0, eventsOf('a'));
          const heard = listen(under.store, await barrierOf(under.store));
          await heard.untilAlive(true);
          const unheard = eventsOf('b');
          blackHole.begin();
          const startedAt = performance.now();
          const answers = await Promise.all([
            under.store.append(stream, revision, unheard),
            under.store.read(stream),
            under.store.barrier(under.world.deadlineMs / 2),
          ]);
          expect(performance.now() - startedAt).toBeLessThan(under.world.deadlineMs + LATE_MS);
          for (const answer of answers) expect(answer).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
          await heard.untilAlive(false);
          blackHole.end();
          await heard.untilAlive(true);
          await appendSurely(under.store, stream, revision, unheard);
          await heard.untilReached(await barrierOf(under.store));
          await heard.close();
          expect(heard.told.events.map(noteOf)).toEqual(['b']);
        },
      ),
    );

    it(
      'keeps what it acknowledged over a crash, and goes on after it by itself',
      ifPossible(
        under,
        (world) => world.restart,
        async (restart) => {
          const streams = Array.from({ length: 20 }, () => newStream());
          const heard = listen(under.store, await barrierOf(under.store));
          const before = await Promise.all(streams.map((stream) => appendSurely(under.store, stream, 0, eventsOf('before'))));
          const underWay = Promise.all(
            streams.map((stream, index) => appendSurely(under.store, stream, before[index]?.revision ?? 0, eventsOf('after'))),
          );
          await restart();
          await underWay;
          for (const stream of streams) expect((await readSurely(under.store, stream)).events.map(noteOf)).toEqual(['before', 'after']);
          const later = await under.world.open();
          expect(later.storeId).toBe(under.store.storeId);
          await heard.untilReached(await barrierOf(later));
          await heard.close();
          await later.close();
          expect(heard.told.events).toHaveLength(40);
          for (const stream of streams)
            expect(heard.told.events.filter((recorded) => recorded.stream.id === stream.id).map(noteOf)).toEqual(['before', 'after']);
        },
      ),
    );
  });
