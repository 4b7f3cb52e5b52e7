import { chmodSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ZodError } from 'zod';
import { codeOf, outputOf } from '../files/files.fixture.ts';
import { EVERY_REPO, RepoWorld } from './repo.fixture.ts';

let world: RepoWorld;
beforeEach(() => {
  world = new RepoWorld();
});
afterEach(() => world.remove());

/** One commit with `a.txt` and `sub/b.txt`. */
const begin = (): void => {
  world.write('a.txt', 'one\n');
  world.write('sub/b.txt', 'two\n');
  world.git('add', '.');
  world.git('commit', '-q', '-m', 'begin');
};

describe('a repository', () => {
  it('is told as it is: branch, commit, what is staged, changed, new and a link; what is ignored is not', async () => {
    begin();
    world.write('.gitignore', '*.log\n');
    world.write('noise.log', '');
    world.write('sub/.gitignore', 'private\n');
    world.write('sub/private', '');
    world.write('a.txt', 'changed\n');
    world.write('staged.txt', '');
    world.git('add', 'staged.txt');
    rmSync(join(world.project, 'sub/b.txt'));
    symlinkSync(world.outside, join(world.project, 'link'));
    expect(outputOf(await world.ask('status'))).toEqual({
      branch: 'main',
      head: world.git('rev-parse', 'HEAD').trim(),
      staged: [{ path: ['staged.txt'], change: 'added' }],
      unstaged: [
        { path: ['a.txt'], change: 'modified' },
        { path: ['sub', 'b.txt'], change: 'deleted' },
      ],
      untracked: [['.gitignore'], ['sub', '.gitignore']],
      conflicted: [],
      links: [['link']],
      truncated: false,
    });
  });

  it('shows what is changed, and with staged what would be recorded, all of it or some paths, each taken literally', async () => {
    begin();
    world.write('a.txt', 'changed\n');
    world.write('sub/b.txt', 'staged\n');
    world.git('add', 'sub/b.txt');
    const patchOf = async (rest = {}): Promise<string> => outputOf<{ patch: string }>(await world.ask('diff', rest)).patch;
    expect(await patchOf()).toBe(world.git('diff'));
    expect(await patchOf({ staged: true })).toBe(world.git('diff', '--cached'));
    expect(await patchOf({ pathspec: [['sub']] })).toBe('');
    expect(await patchOf({ staged: true, pathspec: [['sub']] })).toContain('+staged');
    expect(await patchOf({ pathspec: [['*']] })).toBe('');
    expect(await patchOf({ pathspec: [[':(top)a.txt']] })).toBe('');
  });

  it('stages what is asked for and commits it as whoever acts, in a form that git itself finds sound', async () => {
    begin();
    world.write('a.txt', 'changed\n');
    world.write('new/run.sh', '#!/bin/sh\n');
    world.write('new/other', 'x');
    chmodSync(join(world.project, 'new/run.sh'), 0o755);
    rmSync(join(world.project, 'sub'), { recursive: true });
    expect(outputOf(await world.ask('stage', { pathspec: [['new'], ['sub', 'b.txt']] }))).toEqual({ updated: 2, removed: 1 });
    const { commit } = outputOf(await world.ask('commit', { message: ' a message ' }));
    expect(world.git('rev-parse', 'main').trim()).toBe(commit);
    expect(world.git('log', '-1', '--format=%an|%ae|%cn|%at|%B').trim()).toBe(
      'agent:scout|scout@agent.north.sharedos.invalid|agent:scout|1767268800|a message',
    );
    expect(world.git('ls-tree', '-r', '--format=%(objectmode) %(path)', 'HEAD').trim().split('\n')).toEqual([
      '100644 a.txt',
      '100644 new/other',
      '100755 new/run.sh',
    ]);
    expect(world.git('status', '--short').trim()).toBe('M a.txt');
    expect(world.git('fsck', '--strict')).toBe('');
  });

  it('gets its first commit', async () => {
    world.write('a.txt', 'one');
    expect(codeOf(await world.ask('commit', { message: 'none' }))).toBe('nothing_to_commit');
    expect(outputOf(await world.ask('log'))).toEqual({ commits: [], truncated: false });
    await world.ask('stage', { pathspec: [['a.txt']] });
    expect(outputOf(await world.ask('commit', { message: 'first' }))).toMatchObject({ branch: 'main' });
    expect(world.git('log', '--format=%s').trim()).toBe('first');
  });

  it('lists its commits, the latest first, and says when there are more', async () => {
    begin();
    world.git('commit', '-q', '--allow-empty', '-m', 'second', '-m', 'with a body');
    const { commits } = outputOf<{ commits: { message: string; author: object; parents: string[] }[] }>(await world.ask('log'));
    expect(commits.map(({ message }) => message)).toEqual(['second\n\nwith a body', 'begin']);
    expect(commits[0]).toMatchObject({
      author: { name: 'host', email: 'host@example.invalid' },
      parents: [world.git('rev-parse', 'HEAD~').trim()],
    });
    expect(outputOf(await world.ask('log', { maxCount: 1 }))).toMatchObject({ commits: [{}], truncated: true });
  });

  it('is read from packed refs and a commit alone as well', async () => {
    begin();
    world.git('pack-refs', '--all');
    world.git('gc', '-q');
    expect(outputOf(await world.ask('status'))).toMatchObject({ branch: 'main', unstaged: [] });
    world.git('checkout', '-q', '--detach');
    world.write('a.txt', 'detached');
    await world.ask('stage', { pathspec: [['a.txt']] });
    const committed = outputOf(await world.ask('commit', { message: 'alone' }));
    expect(committed).not.toHaveProperty('branch');
    expect(world.git('rev-parse', 'HEAD').trim()).toBe(committed['commit']);
  });

  it.each<[string, () => void, string, object, string]>([
    ['where there is none', () => rmSync(join(world.project, '.git'), { recursive: true }), 'status', {}, 'repo_not_found'],
    ['to stage what is not there', begin, 'stage', { pathspec: [['none']] }, 'pathspec_unmatched'],
    ['to stage a pattern as one', begin, 'stage', { pathspec: [['*.txt']] }, 'pathspec_unmatched'],
    ['to commit nothing', begin, 'commit', { message: 'x' }, 'nothing_to_commit'],
    [
      'to write while another program does',
      () => (begin(), world.write('.git/index.lock', ''), world.write('a.txt', 'x')),
      'stage',
      { pathspec: [['a.txt']] },
      'repo_busy',
    ],
    [
      'to commit in the middle of a merge',
      () => (begin(), world.write('.git/MERGE_HEAD', 'x')),
      'commit',
      { message: 'x' },
      'repo_conflicted',
    ],
  ])('is refused %s', async (_title, prepare, verb, rest, code) => {
    prepare();
    expect(codeOf(await world.ask(verb, { ...rest }))).toBe(code);
  });

  it.each([
    ['stage', { pathspec: [] }],
    ['stage', { pathspec: [[]] }],
    ['stage', { pathspec: [['..', 'a']] }],
    ['stage', { pathspec: ['a.txt'] }],
    ['stage', {}],
    ['diff', { staged: 'yes' }],
    ['log', { maxCount: 101 }],
    ['commit', { message: 'two\nlines' }],
    ['commit', { message: ' ' }],
    ['commit', { message: 'x'.repeat(501) }],
    ['status', { staged: true }],
  ])('%s refuses %j', async (verb, rest) => {
    await expect(world.ask(verb, rest)).rejects.toThrow(ZodError);
  });

  it('lets many that stage and commit at once each have their turn', async () => {
    begin();
    const names = Array.from({ length: 6 }, (_, index) => `file-${index}`);
    for (const name of names) world.write(name, name);
    const staged = await Promise.all(names.map((name) => world.ask('stage', { pathspec: [[name]] })));
    // Providers of several processes meet at Git's own lock, and one may hear that it is taken.
    for (const result of staged) expect(['succeeded', 'repo_busy']).toContain(codeOf(result));
    expect(staged.map(codeOf)).toContain('succeeded');
    expect(world.git('fsck', '--strict', '--no-dangling')).toBe('');
  });

  it('does nothing once cancelled', async () => {
    begin();
    const before = world.seen();
    for (const [verb, rest] of EVERY_REPO)
      expect(codeOf(await world.ask(verb, rest, ['project'], { cancel: AbortSignal.abort() }))).toBe('operation_cancelled');
    expect(world.seen()).toEqual(before);
  });
});
