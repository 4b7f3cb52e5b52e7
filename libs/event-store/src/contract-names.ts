import { describe, expect, it } from 'vitest';
import { encodeToken } from '@sharedos/contracts';
import { appendSurely, barrierOf, eventsOf, listen, noteOf, readSurely } from './contract-words.ts';
import type { UnderTest } from './contract-world.ts';
import type { StreamId } from './event-store.ts';

export const namesContract = (under: UnderTest): unknown =>
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
      const from = await barrierOf(under.store);
      const streams: StreamId[] = ODD.flatMap((id) => [
        { category: 'grant', namespaceId: 'odd', id },
        { category: 'grant', namespaceId: id, id: 'odd' },
      ]);
      await Promise.all(streams.map((stream) => appendSurely(under.store, stream, 0, eventsOf(JSON.stringify(stream)))));
      const heard = listen(under.store, from);
      await heard.untilReached(await barrierOf(under.store));
      await heard.close();
      expect(new Set(heard.told.events.map(({ stream }) => JSON.stringify(stream)))).toEqual(
        new Set(streams.map((stream) => JSON.stringify(stream))),
      );
      for (const recorded of heard.told.events) expect(noteOf(recorded)).toBe(JSON.stringify(recorded.stream));
      for (const stream of streams) expect((await readSurely(under.store, stream)).events.map(noteOf)).toEqual([JSON.stringify(stream)]);
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
      await appendSurely(under.store, one, 0, eventsOf('one'));
      expect(await readSurely(under.store, two)).toEqual({ events: [], revision: 0 });
    });
  });
