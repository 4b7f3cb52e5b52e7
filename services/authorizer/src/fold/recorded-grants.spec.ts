import { readFileSync } from 'node:fs';
import { type Address, type CapabilityGrant, type LogEvent, addressKey, hashOf } from '@sharedos/contracts';
import { logSubject, memoryEventStore } from '@sharedos/event-store';
import { describe, expect, it } from 'vitest';
import { AuthorityFold } from './authority-fold.ts';
import { loaded, settled } from '../authorizer.fixture.ts';
import { AuthorityIndex } from './authority-index.ts';
import { readGrantEvent } from '../changes/grant-command.ts';
import { NaiveIndex } from './naive-index.fixture.ts';

// Recorded by this release, and never to be changed: what was once written is read the same for ever. A later release adds files.
const read = (name: string): string => readFileSync(new URL(`../recorded/${name}`, import.meta.url), 'utf8');

interface Line {
  readonly stream: { readonly category: 'grant'; readonly namespaceId: string; readonly id: string };
  readonly event: LogEvent;
}
const LINES = read('grant-events.v1.jsonl')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Line);
/** One hash for each position from 0 on: of what every holder has there. */
const HASHES = JSON.parse(read('grant-events.v1.hashes.json')) as readonly string[];

const NAMESPACES = [...new Set(LINES.map(({ stream }) => stream.namespaceId))];
const ADMITTED = Date.parse('2026-01-01T12:00:45Z');
const pairs = [
  ...new Map(
    LINES.flatMap(({ event }) => (event.type === 'GrantIssued' ? [(event.data as { grant: CapabilityGrant }).grant] : [])).map(
      ({ subject, issuer }): [string, readonly [Address, Address]] => [addressKey(subject) + addressKey(issuer), [subject, issuer]],
    ),
  ).values(),
];

type Held = (namespaceId: string, subject: Address, issuer: Address, position: number) => readonly CapabilityGrant[];
const hashAt = (position: number, held: Held): string =>
  hashOf(NAMESPACES.map((namespaceId) => pairs.map(([subject, issuer]) => held(namespaceId, subject, issuer, position))));
const inIndex =
  (index: AuthorityIndex): Held =>
  (namespaceId, subject, issuer, position) =>
    index.heldAt(namespaceId, subject, issuer, position, ADMITTED).map(({ grant }) => grant);
const hashes = (held: Held): readonly string[] => Array.from({ length: LINES.length + 1 }, (_, position) => hashAt(position, held));

/** A replica that followed a log of these records, each written as it was. */
const followed = async (lines: readonly Line[]) => {
  const store = memoryEventStore({ storeId: 'log' });
  const troubles: string[] = [];
  const fold = new AuthorityFold((what) => void troubles.push(what));
  fold.follow(store);
  for (const { stream, event } of lines) store.appendRaw(logSubject(stream), Buffer.from(JSON.stringify([event])));
  await settled();
  return { fold, troubles };
};

describe('the recorded events of grants', () => {
  it('fold to the same at every position, for ever', async () => {
    const { fold, troubles } = await followed(LINES);
    expect(troubles).toEqual([]);
    expect([fold.position, fold.index.size]).toEqual([33, 29]);
    expect(hashes(inIndex(fold.index))).toEqual(HASHES);
  });

  it('fold to the same by the second statement of the index, which never saw ours', () => {
    const naive = new Map(
      NAMESPACES.map((namespaceId) => {
        const history = LINES.map(({ stream, event }) => {
          const known = readGrantEvent(event);
          if (known === undefined) throw new Error('a recorded event cannot be read');
          // One of another namespace takes up its place in the log, and says nothing here.
          const said =
            stream.namespaceId === namespaceId ? known : ({ type: 'GrantRevoked', grantId: 'of nobody', revokedAt: event.at } as const);
          return { event: said, at: Date.parse(event.at) };
        });
        return [namespaceId, new NaiveIndex(namespaceId, history)];
      }),
    );
    const held: Held = (namespaceId, subject, issuer, position) =>
      naive.get(namespaceId)?.heldAt(subject, issuer, position, ADMITTED) ?? [];
    expect(hashes(held)).toEqual(HASHES);
  });

  it('fold to the same from a snapshot of any of them', async () => {
    for (let kept = 0; kept <= LINES.length; kept += 4) {
      const { fold } = await followed(LINES.slice(0, kept));
      const index = AuthorityIndex.restore(loaded(fold.index.snapshot()));
      LINES.slice(kept).forEach(({ stream, event }, place) => {
        const known = readGrantEvent(event);
        if (known !== undefined) index.apply(stream.namespaceId, known, Date.parse(event.at), kept + place + 1);
      });
      expect(hashAt(LINES.length, inIndex(index))).toBe(HASHES[LINES.length]);
    }
  });

  it('name one that a later release wrote, and the replica is not to be trusted', async () => {
    const [first, second, ...rest] = LINES as [Line, Line, ...Line[]];
    const { fold, troubles } = await followed([first, { ...second, event: { ...second.event, schemaVersion: 2 } }, ...rest]);
    expect(troubles).toEqual(['GrantIssued of version 2 is not known (grant/cell-3 at 2)']);
    expect(fold.trouble).toContain('GrantIssued of version 2 is not known');
    expect(fold.folded).toBeUndefined();
    expect(fold.index.size).toBe(28);
  });
});
