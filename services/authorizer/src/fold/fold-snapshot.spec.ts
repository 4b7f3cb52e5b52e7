import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { timestampOf } from '@sharedos/contracts';
import { memoryEventStore } from '@sharedos/event-store';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AuthorityFold } from './authority-fold.ts';
import { NAMESPACE, alice, authorizerWorld, bob, settled, toRead } from '../authorizer.fixture.ts';
import { loadFold, saveFold } from './fold-snapshot.ts';
import { keepFold } from './keep-fold.ts';
import type { SnapshotPlace } from './snapshot-file.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sharedos-snapshot-'));
});
afterAll(() => rm(folder, { recursive: true }));

let places = 0;
const newPlace = (): SnapshotPlace => {
  places += 1;
  return { path: join(folder, `p-${places}`, 'authority.snapshot'), storeId: 'log', secret: 'a secret of more than thirty-two characters' };
};
const HEAD = 1_000_000;

/** A world with a little history, and a snapshot of it. */
const kept = async () => {
  const world = await authorizerWorld();
  await world.issue('a');
  await world.issue('b', { expiresAt: '2026-02-01T00:00:00Z', maxUses: 3 });
  await world.revoke('a');
  const place = newPlace();
  expect(await saveFold(world.fold, place)).toBe(3);
  return { world, place };
};
const startFrom = async (place: SnapshotPlace, head = HEAD): Promise<AuthorityFold> => {
  const loaded = await loadFold(place, head);
  if (!loaded.ok || loaded.value === undefined) throw new Error('there is no snapshot to start from');
  return new AuthorityFold(() => undefined, loaded.value);
};
const heldIn = ({ index, position }: AuthorityFold) =>
  Array.from({ length: position + 1 }, (_, at) =>
    index.heldAt(NAMESPACE, bob, alice, at, Date.parse('2026-01-02T00:00:00Z')).map(({ grant }) => grant),
  );

describe('a replica that starts from a snapshot', () => {
  it('stands where the snapshot was taken, and then follows the log', async () => {
    const { world, place } = await kept();
    await world.issue('c');
    await world.revoke('b');
    const fold = await startFrom(place);
    expect(fold.position).toBe(3);
    fold.follow(world.store);
    await settled();
    expect(fold.position).toBe(5);
    expect(heldIn(fold)).toEqual(heldIn(world.fold));
    expect(heldIn(fold)[5]?.map(({ id }) => id)).toEqual(['c', 'b', 'a']);
    await fold.close();
  });

  it('folds no event twice, from wherever the log is told again', async () => {
    const { world, place } = await kept();
    const fold = await startFrom(place);
    const again = world.store.subscribe(0, fold);
    await settled();
    expect(heldIn(fold)).toEqual(heldIn(world.fold));
    expect(fold.index.size).toBe(2);
    await again.close();
  });

  it('keeps one again that is as good', async () => {
    const { world, place } = await kept();
    const second = newPlace();
    await saveFold(await startFrom(place), second);
    expect(heldIn(await startFrom(second))).toEqual(heldIn(world.fold));
  });

  it('finds none where none was kept', async () => {
    expect(await loadFold(newPlace(), HEAD)).toEqual({ ok: true, value: undefined });
  });

  it('is told why one cannot be used, and then begins at the beginning', async () => {
    const { place } = await kept();
    expect(await loadFold({ ...place, storeId: 'another' }, HEAD)).toEqual({ ok: false, error: 'it is of another log' });
    expect(await loadFold(place, 2)).toEqual({ ok: false, error: 'it stands at 3, and the log ends at 2' });
    const forged = await loadFold({ ...place, secret: 'another secret of more than thirty-two' }, HEAD);
    expect(forged).toEqual({ ok: false, error: 'it is damaged, or sealed with another secret' });
  });

  it('uses none with a single byte changed, left out or added, wherever that is', async () => {
    const { place } = await kept();
    const whole = await readFile(place.path);
    const verdictOn = async (bytes: Uint8Array) => {
      await writeFile(place.path, bytes);
      return (await loadFold(place, HEAD)).ok;
    };
    const places = Array.from({ length: 60 }, (_, step) => Math.floor((step * (whole.byteLength - 1)) / 59));
    for (const at of places) {
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] ?? 0) ^ 0x20;
      expect([at, await verdictOn(changed)]).toEqual([at, false]);
      expect([at, await verdictOn(whole.subarray(0, at))]).toEqual([at, false]);
    }
    expect(await verdictOn(Buffer.concat([whole, Buffer.from('x')]))).toBe(false);
    expect(await verdictOn(whole)).toBe(true);
  });

  it('uses none of a format that this release does not read', async () => {
    const { place } = await kept();
    const text = (await readFile(place.path)).toString('latin1');
    await writeFile(place.path, text.replace('"format":1', '"format":9'), 'latin1');
    expect(await loadFold(place, HEAD)).toEqual({ ok: false, error: 'it is of format 9, and this release reads 1' });
  });
});

describe('keeping a snapshot', () => {
  it('is not done of a fold that left something of the log out', async () => {
    const world = await authorizerWorld();
    await world.issue('a');
    world.store.appendRaw('sharedos.v1.w1.log.grant.b', Buffer.from('not json'));
    await settled();
    const place = newPlace();
    expect(await saveFold(world.fold, place)).toBeUndefined();
    expect(await loadFold(place, HEAD)).toEqual({ ok: true, value: undefined });
  });

  it('leaves the one before where it fails, and nothing beside it', async () => {
    const { world, place } = await kept();
    await world.issue('c');
    await expect(saveFold(world.fold, { ...place, path: join(place.path, 'below-a-file') })).rejects.toThrow();
    expect((await startFrom(place)).position).toBe(3);
    expect(await readdir(join(place.path, '..'))).toEqual(['authority.snapshot']);
  });

  it('is done when the service stops, if anything changed', async () => {
    const { world, place } = await kept();
    const logged: string[] = [];
    const snapshots = { place, everyMs: 3_600_000 };
    const keeper = keepFold(world.fold, { clock: () => world.clock.now(), historyMs: 1, snapshots, log: (event) => logged.push(event) });
    await world.issue('c');
    await keeper.stop();
    expect((await startFrom(place)).position).toBe(4);
    expect(logged).toEqual(['snapshot kept']);
  });

  it('says so when it cannot be done, and the service goes on', async () => {
    const { world, place } = await kept();
    const logged: string[] = [];
    const snapshots = { place: { ...place, path: join(place.path, 'below-a-file') }, everyMs: 3_600_000 };
    await keepFold(world.fold, { clock: () => world.clock.now(), historyMs: 1, snapshots, log: (event) => logged.push(event) }).stop();
    expect(logged).toEqual(['snapshot not kept']);
  });
});

describe('history that no open turn needs', () => {
  const minute = 60_000;

  it('is forgotten: a turn opened on it is unavailable, and none that is younger', async () => {
    const world = await authorizerWorld();
    await world.issue('a');
    const old = await world.opened({ validForMs: 1_200_000 });
    world.clock.advance(10 * minute);
    await world.issue('b');
    const young = await world.opened({ validForMs: 1_200_000 });
    world.clock.advance(10 * minute);
    await world.revoke('a');

    const other = await authorizerWorld({ store: world.store, clock: world.clock });
    other.fold.forget(world.clock.now() - 5 * minute);
    expect(other.fold.oldest).toBe(2);
    const question = { kind: 'authorize', request: toRead('Work'), consume: false } as const;
    expect(await other.ask(young.token, question)).toMatchObject({ ok: true, value: { status: 'allowed', revision: 'log@2' } });
    expect(await other.ask(old.token, question)).toMatchObject({ ok: false, error: { code: 'authority_unavailable' } });
  });

  it('stays forgotten in a snapshot', async () => {
    const { world, place } = await kept();
    world.fold.forget(world.clock.now());
    await saveFold(world.fold, place);
    const fold = await startFrom(place);
    expect(fold.oldest).toBe(world.fold.oldest);
    expect(fold.oldest).toBeGreaterThan(0);
    expect(fold.index.latestInstant(3)).toBe(world.clock.now());
    expect(timestampOf(fold.index.latestInstant(fold.oldest))).toBe('2026-01-01T12:00:00.000Z');
  });

  it('is nothing before the first event, and nothing later than what happened', async () => {
    const { fold } = await authorizerWorld({ store: memoryEventStore({ storeId: 'log' }) });
    fold.forget(Infinity);
    expect(fold.oldest).toBe(0);
  });
});
