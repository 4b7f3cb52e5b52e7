import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NOWHERE, type Place, SegmentTrie } from './segment-trie.ts';

const path = fc.array(fc.constantFrom('a', 'ab', 'b'), { maxLength: 4 });
const places = fc
  .array(fc.record({ path, scope: fc.constantFrom('exact' as const, 'descendants' as const) }), { maxLength: 40, size: 'max' })
  .map((all) => all.map((place, index): Place => ({ ...place, ordinal: Math.floor(index / 2) })));

// Said once more, slowly: a path is a text in which every segment is closed.
const text = (segments: readonly string[]): string => segments.map((segment) => `${segment}/`).join('');
const covers = ({ path: mine, scope }: Place, asked: readonly string[]): boolean =>
  scope === 'exact' ? text(mine) === text(asked) : text(asked).startsWith(text(mine));
const reaches = (place: Place, asked: readonly string[]): boolean =>
  text(place.path).startsWith(text(asked)) || (place.scope === 'descendants' && text(asked).startsWith(text(place.path)));

const ordinalsOf = (all: readonly Place[]): readonly number[] => [...new Set(all.map(({ ordinal }) => ordinal))];
const inOrder = (ordinals: readonly number[]): readonly number[] => [...new Set(ordinals)].sort((a, b) => a - b);

describe('a trie of path segments', () => {
  it('finds what a look at every place finds, and its first, asked in any order', () => {
    let crowded = 0;
    fc.assert(
      fc.property(places, fc.array(path, { minLength: 1, maxLength: 8 }), (all, asked) => {
        const trie = new SegmentTrie(all);
        for (const each of asked) {
          const covering = ordinalsOf(all.filter((place) => covers(place, each)));
          const reaching = ordinalsOf(all.filter((place) => reaches(place, each)));
          expect([trie.firstCovering(each), trie.firstReaching(each)]).toEqual([covering[0] ?? NOWHERE, reaching[0] ?? NOWHERE]);
          expect([inOrder(trie.covering(each)), inOrder(trie.reaching(each))]).toEqual([covering, reaching]);
          if (all.length > 10 && covering.length > 2) crowded += 1;
        }
      }),
      { numRuns: 2_000 },
    );
    expect(crowded).toBeGreaterThan(0);
  });
  it('holds more places at one path than a call has room for arguments', () => {
    const trie = new SegmentTrie(Array.from({ length: 200_000 }, (_, ordinal) => ({ path: ['a'], scope: 'descendants', ordinal })));
    expect([trie.firstCovering(['a', 'b']), trie.covering(['a', 'b']).length]).toEqual([0, 200_000]);
    expect(trie.reaching([]).length).toBe(200_000);
  });
  it('finds nothing where there is nothing', () => expect(new SegmentTrie([]).firstReaching([])).toBe(NOWHERE));
});
