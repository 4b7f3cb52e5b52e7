import { execFileSync } from 'node:child_process';
import { appendFileSync, chmodSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObj } from '@sharedos/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ownerFolder } from '../confinement/owner-folder.ts';
import { FilesWorld, KINDS, NO_SNAPSHOT, codeOf, maren, outputOf } from './files.fixture.ts';

let world: FilesWorld;
beforeEach(() => {
  world = new FilesWorld();
});
afterEach(() => world.remove());

const idOf = (output: JsonObj): string => output['snapshotId'] as string;
/** The packs of an owner's snapshots, in bytes. */
const packed = (): number => {
  const at = join(world.root, '.sharedos', ...ownerFolder('north', maren), 'snapshots');
  return readdirSync(at).reduce((sum, id) => sum + statSync(join(at, id, 'pack')).size, 0);
};
/** Long before now, so that a snapshot may trust that a file that looks the same is the same. */
const settle = (path: string): void => utimesSync(join(world.folder(), path), 1_000_000, 1_000_000);

describe.each(KINDS)('snapshots, confined by %s', (confinement) => {
  it('bring back a folder as it was: what was changed, what is gone, and nothing that came later', async () => {
    world.put('notes/a.txt', 'one');
    world.put('notes/deep/b.txt', 'two');
    world.put('notes/run.sh', '#!/bin/sh');
    world.put('other.txt', 'other');
    mkdirSync(join(world.folder(), 'notes', 'empty'));
    chmodSync(join(world.folder(), 'notes/run.sh'), 0o755);
    const { ask } = world.open({ confinement });
    await ask('create', ['notes', 'c.txt'], { content: 'three', metadata: { by: 'me' } });
    const made = outputOf(await ask('snapshot.create', ['notes'], { label: ' before ' }));
    expect(made).toMatchObject({ path: ['notes'], label: 'before', files: 4, bytes: 20 });

    await ask('replace', ['notes', 'a.txt'], { content: 'changed' });
    await ask('delete', ['notes', 'deep'], { recursive: true });
    await ask('delete', ['notes', 'c.txt']);
    await ask('create', ['notes', 'later.txt'], { content: 'later' });
    await ask('replace', ['other.txt'], { content: 'changed' });

    const restored = outputOf(await ask('snapshot.restore', ['notes'], { snapshotId: idOf(made) }));
    expect(restored).toMatchObject({ files: 4, bytes: 20, version: outputOf(await ask('stat', ['notes']))['version'] });
    expect(readdirSync(join(world.folder(), 'notes'), { recursive: true, encoding: 'utf8' }).sort()).toEqual([
      'a.txt',
      'c.txt',
      'deep',
      'deep/b.txt',
      'empty',
      'run.sh',
    ]);
    expect(readFileSync(join(world.folder(), 'notes/a.txt'), 'utf8')).toBe('one');
    expect(statSync(join(world.folder(), 'notes/run.sh')).mode & 0o777).toBe(0o755);
    expect(outputOf(await ask('stat', ['notes', 'c.txt']))).toMatchObject({ metadata: { by: 'me' } });
    expect(readFileSync(join(world.folder(), 'other.txt'), 'utf8')).toBe('changed');
  });

  it('of a folder bring back one file of it, also when nothing is left of the folder', async () => {
    world.put('notes/deep/b.txt', 'two');
    world.put('notes/a.txt', 'one');
    const { ask } = world.open({ confinement });
    const id = idOf(outputOf(await ask('snapshot.create', [])));
    await ask('delete', ['notes'], { recursive: true });
    await ask('snapshot.restore', ['notes', 'deep', 'b.txt'], { snapshotId: id });
    expect(readdirSync(join(world.folder(), 'notes'), { recursive: true, encoding: 'utf8' }).sort()).toEqual(['deep', 'deep/b.txt']);
  });

  it('bring back a file in the place of a folder, and a folder in the place of a file', async () => {
    world.put('a', 'file');
    world.put('b/x', 'folder');
    const { ask } = world.open({ confinement });
    const id = idOf(outputOf(await ask('snapshot.create', [])));
    await ask('delete', ['a']);
    await ask('create', ['a', 'inside'], { content: '' });
    await ask('delete', ['b'], { recursive: true });
    await ask('create', ['b'], { content: '' });
    await ask('snapshot.restore', ['a'], { snapshotId: id });
    await ask('snapshot.restore', ['b'], { snapshotId: id });
    expect(readFileSync(join(world.folder(), 'a'), 'utf8')).toBe('file');
    expect(readFileSync(join(world.folder(), 'b', 'x'), 'utf8')).toBe('folder');
  });

  it.each<[string, readonly string[], (id: string) => JsonObj, string]>([
    ['of no snapshot', ['notes', 'a.txt'], () => ({ snapshotId: NO_SNAPSHOT }), 'snapshot_not_found'],
    ['of what is no id at all', ['notes', 'a.txt'], () => ({ snapshotId: '../../outside' }), 'snapshot_not_found'],
    ['of what lies beside the snapshot', ['other'], (snapshotId) => ({ snapshotId }), 'snapshot_not_found'],
    ['of what only begins like it', ['notes-2'], (snapshotId) => ({ snapshotId }), 'snapshot_not_found'],
    ['of what was not there', ['notes', 'none'], (snapshotId) => ({ snapshotId }), 'file_not_found'],
    ['over another version', ['notes', 'a.txt'], (snapshotId) => ({ snapshotId, expectedVersion: 'v1' }), 'version_mismatch'],
    ['over a version of what is gone', ['notes', 'gone'], (snapshotId) => ({ snapshotId, expectedVersion: 'v1' }), 'version_mismatch'],
    ['over a link', ['link'], (snapshotId) => ({ snapshotId }), 'path_not_confined'],
    ['over a repository', ['notes', 'project'], (snapshotId) => ({ snapshotId }), 'holds_repository'],
  ])('refuse a restore %s and leave everything as it was', async (_title, path, input, code) => {
    world.put('notes/a.txt', 'one');
    world.put('notes/project/x', 'x');
    world.put('other/a.txt', 'other');
    symlinkSync(world.outside, join(world.folder(), 'link'));
    const { ask } = world.open({ confinement });
    const id = idOf(outputOf(await ask('snapshot.create', ['notes'])));
    world.put('notes/project/.git/HEAD', 'ref: refs/heads/main');
    const before = world.seen();
    expect(codeOf(await ask('snapshot.restore', path, input(id)))).toBe(code);
    expect(world.seen()).toEqual(before);
  });

  it('are listed for what they are of and above, never for what lies beside or below', async () => {
    world.put('notes/deep/a.txt', '');
    world.put('other/a.txt', '');
    const { ask } = world.open({ confinement });
    expect(outputOf(await ask('snapshot.list', []))).toEqual({ snapshots: [], truncated: false });
    for (const path of [[], ['notes'], ['notes', 'deep'], ['other']]) await ask('snapshot.create', path);
    const listed = async (path: readonly string[], rest: JsonObj = {}) => {
      const output = outputOf<{ snapshots: { path: string[] }[]; truncated: boolean }>(await ask('snapshot.list', path, rest));
      return [...output.snapshots.map((snapshot) => snapshot.path.join('/')), ...(output.truncated ? ['more'] : [])];
    };
    expect(await listed([])).toEqual(['other', 'notes/deep', 'notes', '']);
    expect(await listed(['notes'])).toEqual(['notes/deep', 'notes']);
    expect(await listed(['notes', 'deep'])).toEqual(['notes/deep']);
    expect(await listed(['notes', 'deep', 'a.txt'])).toEqual([]);
    expect(await listed([], { limit: 2 })).toEqual(['other', 'notes/deep', 'more']);
    expect(outputOf(await ask('snapshot.list', [], {}, { namespaceId: 'south' }))).toEqual({ snapshots: [], truncated: false });
  });

  it('keep a content once, and read again only what may have changed', async () => {
    world.put('a', 'x'.repeat(1_000));
    world.put('b', 'x'.repeat(1_000));
    world.put('c', 'y'.repeat(1_000));
    const { ask } = world.open({ confinement });
    await ask('snapshot.create', []);
    expect(packed()).toBe(2_000);
    await ask('snapshot.create', []);
    expect(packed()).toBe(2_000);
    appendFileSync(join(world.folder(), 'c'), 'z');
    const id = idOf(outputOf(await ask('snapshot.create', [])));
    expect(packed()).toBe(3_001);
    await ask('delete', ['a']);
    await ask('snapshot.restore', ['a'], { snapshotId: id });
    expect(readFileSync(join(world.folder(), 'a'), 'utf8')).toBe('x'.repeat(1_000));
  });

  it('are not changed by a program that changes a file in place', async () => {
    world.put('a', 'before');
    settle('a');
    const { ask } = world.open({ confinement });
    const id = idOf(outputOf(await ask('snapshot.create', [])));
    writeFileSync(join(world.folder(), 'a'), 'after!');
    await ask('snapshot.restore', ['a'], { snapshotId: id });
    expect(readFileSync(join(world.folder(), 'a'), 'utf8')).toBe('before');
  });

  it('leave out links, special files and repositories, and follow none of them', async () => {
    world.put('notes/a.txt', 'one');
    world.put('notes/.git/config', 'x');
    symlinkSync(world.outside, join(world.folder(), 'notes/link'));
    execFileSync('mkfifo', [join(world.folder(), 'notes/pipe')]);
    expect(outputOf(await world.open({ confinement }).ask('snapshot.create', ['notes']))).toMatchObject({ files: 1, bytes: 3 });
  });

  it.each([
    ['entries', { entriesMax: 2 }],
    ['bytes', { bytesMax: 5 }],
    ['snapshots', { snapshotsMax: 1 }],
  ])('are refused beyond the bound of %s, and nothing is left of them', async (name, snapshots) => {
    world.put('a', 'one');
    world.put('b', 'two');
    const { ask } = world.open({ confinement, snapshots });
    const first = codeOf(await ask('snapshot.create', ['a']));
    expect(codeOf(await ask('snapshot.create', []))).toBe('snapshot_limit');
    expect(first).toBe('succeeded');
    expect(outputOf(await ask('snapshot.list', []))['snapshots']).toHaveLength(1);
    expect(name).not.toBe('');
  });

  it('say when they are damaged, and put nothing in the place of what is there', async () => {
    world.put('a', 'one');
    const { ask } = world.open({ confinement });
    const id = idOf(outputOf(await ask('snapshot.create', [])));
    writeFileSync(join(world.root, '.sharedos', ...ownerFolder('north', maren), 'snapshots', id, 'pack'), 'two');
    const before = world.seen();
    expect(codeOf(await ask('snapshot.restore', ['a'], { snapshotId: id }))).toBe('snapshot_damaged');
    expect(world.seen()).toEqual(before);
  });
});
