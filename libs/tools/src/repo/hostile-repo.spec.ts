import { chmodSync, cpSync, existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ToolResult } from '@sharedos/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SECRET, codeOf, outputOf } from '../files/files.fixture.ts';
import { EVERY_REPO, RepoWorld } from './repo.fixture.ts';

let world: RepoWorld;
let mark: string;
let program: string;
beforeEach(() => {
  world = new RepoWorld();
  mark = join(world.base, 'ran');
  program = join(world.base, 'program.sh');
  writeFileSync(program, `#!/bin/sh\ntouch ${mark}\ncat\n`);
  chmodSync(program, 0o755);
  world.write('a.txt', 'one\n');
  world.git('add', '.');
  world.git('commit', '-q', '-m', 'begin');
  world.write('a.txt', 'two\n');
});
afterEach(() => world.remove());

const askEverything = async (): Promise<readonly ToolResult[]> => {
  const results: ToolResult[] = [];
  for (const [verb, rest] of EVERY_REPO) results.push(await world.ask(verb, rest));
  return results;
};

describe('a hostile repository', () => {
  it.each<[string, () => void]>([
    ['core.fsmonitor', () => world.git('config', 'core.fsmonitor', program)],
    [
      'core.sshCommand and a remote',
      () => (world.git('config', 'core.sshCommand', program), world.git('remote', 'add', 'origin', 'ssh://x/y')),
    ],
    ['diff.external', () => world.git('config', 'diff.external', program)],
    ['core.pager', () => world.git('config', 'core.pager', program)],
    ['core.editor', () => world.git('config', 'core.editor', program)],
    ['gpg.program and a wish to sign', () => (world.git('config', 'gpg.program', program), world.git('config', 'commit.gpgSign', 'true'))],
    ['an alias of a subcommand', () => world.git('config', 'alias.status', `!${program}`)],
    ['a credential helper', () => world.git('config', 'credential.helper', program)],
    [
      'an included file',
      () => (
        writeFileSync(join(world.base, 'more'), `[core]\n\tfsmonitor = ${program}\n`),
        world.git('config', 'include.path', join(world.base, 'more'))
      ),
    ],
    [
      'a folder of hooks elsewhere',
      () => (
        mkdirSync(join(world.base, 'hooks')),
        cpSync(program, join(world.base, 'hooks', 'pre-commit')),
        world.git('config', 'core.hooksPath', join(world.base, 'hooks'))
      ),
    ],
    [
      'a promisor remote',
      () => (
        world.git('config', 'remote.x.url', `ext::${program}`),
        world.git('config', 'remote.x.promisor', 'true'),
        world.git('config', 'protocol.ext.allow', 'always')
      ),
    ],
  ])('with %s runs nothing', async (_title, prepare) => {
    prepare();
    expect((await askEverything()).map(codeOf)).toEqual(EVERY_REPO.map(() => 'succeeded'));
    expect(existsSync(mark)).toBe(false);
  });

  it('with every hook there is runs none', async () => {
    const hooks = [
      'pre-commit',
      'prepare-commit-msg',
      'commit-msg',
      'post-commit',
      'post-index-change',
      'reference-transaction',
      'fsmonitor-watchman',
    ];
    for (const hook of hooks) cpSync(program, join(world.project, '.git/hooks', hook));
    expect((await askEverything()).map(codeOf)).toEqual(EVERY_REPO.map(() => 'succeeded'));
    expect(existsSync(mark)).toBe(false);
  });

  it.each(['.gitattributes', '.git/info/attributes'])(
    'with filters, drivers and textconv in %s runs none, and takes content byte for byte',
    async (file) => {
      for (const key of ['filter.x.clean', 'filter.x.smudge', 'filter.x.process', 'diff.x.textconv', 'diff.x.command', 'merge.x.driver'])
        world.git('config', key, program);
      world.git('config', 'filter.x.required', 'true');
      world.git('config', 'core.autocrlf', 'input');
      world.write(file, '* filter=x diff=x merge=x text eol=crlf ident\n');
      world.write('a.txt', 'two\r\n$Id$\n');
      expect((await askEverything()).map(codeOf)).toEqual(EVERY_REPO.map(() => 'succeeded'));
      expect(existsSync(mark)).toBe(false);
      rmSync(join(world.project, file));
      world.git('config', '--unset', 'filter.x.required');
      expect(world.git('cat-file', 'blob', 'HEAD:a.txt')).toBe('two\r\n$Id$\n');
    },
  );

  it.each<[string, () => void, string]>([
    [
      'a `.git` file that leads elsewhere',
      () => (renameSync(join(world.project, '.git'), join(world.outside, 'git')), world.write('.git', `gitdir: ${world.outside}/git\n`)),
      'repo_not_supported',
    ],
    [
      'a `.git` link',
      () => (
        renameSync(join(world.project, '.git'), join(world.outside, 'git')),
        symlinkSync(join(world.outside, 'git'), join(world.project, '.git'))
      ),
      'path_not_confined',
    ],
    ['a common folder elsewhere', () => world.write('.git/commondir', world.outside), 'repo_not_supported'],
    ['borrowed objects', () => world.write('.git/objects/info/alternates', world.outside), 'repo_not_supported'],
    [
      'objects behind a link',
      () => (
        renameSync(join(world.project, '.git/objects'), join(world.outside, 'objects')),
        symlinkSync(join(world.outside, 'objects'), join(world.project, '.git/objects'))
      ),
      'path_not_confined',
    ],
    ['a HEAD that leads out', () => world.write('.git/HEAD', 'ref: refs/heads/../../../../../outside/secret.txt\n'), 'repo_not_supported'],
    [
      'a HEAD behind a link',
      () => (rmSync(join(world.project, '.git/HEAD')), symlinkSync(join(world.outside, 'secret.txt'), join(world.project, '.git/HEAD'))),
      'path_not_confined',
    ],
    [
      'a branch behind a link',
      () => (
        rmSync(join(world.project, '.git/refs/heads/main')),
        symlinkSync(join(world.outside, 'secret.txt'), join(world.project, '.git/refs/heads/main'))
      ),
      'path_not_confined',
    ],
  ])('with %s is refused, and nothing is read or written there', async (_title, prepare, code) => {
    prepare();
    const before = world.seen();
    const results = await askEverything();
    expect(results.map(codeOf)).toEqual(EVERY_REPO.map(() => code));
    expect(JSON.stringify(results)).not.toContain(SECRET);
    expect(world.seen()).toEqual(before);
  });

  it('shows, stages and follows no link, in whatever place of the path', async () => {
    symlinkSync(join(world.outside, 'secret.txt'), join(world.project, 'link'));
    symlinkSync(world.outside, join(world.project, 'folder'));
    rmSync(join(world.project, 'a.txt'));
    symlinkSync(join(world.outside, 'secret.txt'), join(world.project, 'a.txt'));
    const before = world.seen(world.outside);
    for (const path of [['link'], ['folder'], ['folder', 'secret.txt'], ['a.txt']])
      expect(codeOf(await world.ask('stage', { pathspec: [path] })), path.join('/')).toMatch(/path_not_confined/);
    expect(outputOf(await world.ask('status'))).toMatchObject({ links: [['a.txt'], ['folder'], ['link']], untracked: [], unstaged: [] });
    expect(JSON.stringify(await world.ask('diff'))).not.toContain(SECRET);
    expect(world.seen(world.outside)).toEqual(before);
  });

  it('does not reach into a repository inside it', async () => {
    mkdirSync(join(world.project, 'inner'));
    world.git('init', '-q', 'inner');
    writeFileSync(join(world.project, 'inner/file'), 'x');
    expect(JSON.stringify(await world.ask('status'))).not.toContain('inner');
    expect(codeOf(await world.ask('stage', { pathspec: [['inner']] }))).toBe('pathspec_unmatched');
    expect(codeOf(await world.ask('stage', { pathspec: [['inner', 'file']] }))).toBe('pathspec_unmatched');
  });
});

describe('the two planes over one folder', () => {
  it('have nothing of each other: no path of files leads into a repository, and no action of repo into files', async () => {
    const { provide } = world.open();
    for (const action of ['read', 'list', 'stat'])
      expect(codeOf(await provide(action, ['project', '.git', 'config']))).toBe('path_refused');
    expect(codeOf(await provide('create', ['project', '.git', 'hooks', 'pre-commit'], { content: 'x' }))).toBe('path_refused');
    expect(codeOf(await provide('commit', ['project'], { message: 'x' }))).toBe('action_not_supported');
  });
});
