import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, linkSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EVERY, FilesWorld, KINDS, codeOf, outputOf } from './files.fixture.ts';

let world: FilesWorld;
beforeEach(() => {
  world = new FilesWorld();
});
afterEach(() => world.remove());

describe.each(KINDS)('files confined by %s', (confinement) => {
  describe('reading', () => {
    it('lists files and folders by name in code-unit order, links and special files left out', async () => {
      world.put('b.txt', 'hello');
      world.put('B.txt', '');
      world.put('a/inner.txt', 'x');
      world.put('é.txt', 'x');
      symlinkSync(world.outside, join(world.folder(), 'link'));
      execFileSync('mkfifo', [join(world.folder(), 'pipe')]);
      expect(outputOf(await world.open({ confinement }).ask('list', []))).toEqual({
        entries: [
          { name: 'B.txt', type: 'file', size: 0 },
          { name: 'a', type: 'directory' },
          { name: 'b.txt', type: 'file', size: 5 },
          { name: 'é.txt', type: 'file', size: 1 },
        ],
        truncated: false,
      });
    });

    it('lists no more than the bound, the first by name, and says that there are more', async () => {
      for (const name of ['c', 'a', 'd', 'b']) world.put(name, '');
      const { ask } = world.open({ confinement, maxListEntries: 3 });
      expect(outputOf(await ask('list', []))).toMatchObject({ entries: [{ name: 'a' }, { name: 'b' }, { name: 'c' }], truncated: true });
      rmSync(join(world.folder(), 'd'));
      expect(outputOf(await ask('list', []))).toMatchObject({ truncated: false });
    });

    it('takes a file with a second name for a link, for the other name may be anywhere', async () => {
      const { ask } = world.open({ confinement });
      linkSync(join(world.outside, 'secret.txt'), join(world.folder(), 'second'));
      const before = world.seen();
      for (const [verb, rest] of EVERY) {
        const result = await ask(verb, ['second'], rest);
        expect(codeOf(result), verb).toBe('path_not_confined');
      }
      expect(outputOf(await ask('list', []))).toMatchObject({ entries: [] });
      expect(outputOf(await ask('search', [], { query: 'secret' }))).toMatchObject({ matches: [] });
      expect(world.seen()).toEqual(before);
    });

    it("shows and enters no repository's own folder, however it is spelled", async () => {
      world.put('project/.git/config', 'needle');
      world.put('project/a.txt', 'needle');
      const { ask } = world.open({ confinement });
      for (const name of ['.git', '.GIT', '.git.', '.git ::$INDEX_ALLOCATION', 'GIT~1', '.g\u200cit']) {
        for (const [verb, rest] of EVERY) expect(codeOf(await ask(verb, ['project', name], rest)), verb).toBe('path_refused');
        for (const [verb, rest] of EVERY) expect(codeOf(await ask(verb, ['project', name, 'config'], rest)), verb).toBe('path_refused');
      }
      expect(outputOf(await ask('list', ['project']))).toMatchObject({ entries: [{ name: 'a.txt' }] });
      expect(outputOf(await ask('search', [], { query: 'needle' }))).toMatchObject({ matches: [{ path: ['project', 'a.txt'] }] });
      expect(codeOf(await ask('delete', ['project'], { recursive: true }))).toBe('holds_repository');
      expect(existsSync(join(world.folder(), 'project/.git/config'))).toBe(true);
    });

    it('leaves out names that no path can spell', async () => {
      world.put('plain', '');
      writeFileSync(join(world.folder(), 'back\\slash'), '');
      writeFileSync(join(world.folder(), ' padded'), '');
      writeFileSync(Buffer.concat([Buffer.from(`${world.folder()}/`), Buffer.from([0xff, 0xfe])]), '');
      expect(outputOf(await world.open({ confinement }).ask('list', []))).toMatchObject({ entries: [{ name: 'plain' }] });
    });

    it('gives text as it is and other bytes as base64', async () => {
      const { ask } = world.open({ confinement });
      world.put('bom.txt', '\ufeffgrüße 🙂\r\n');
      world.put('binary', Uint8Array.from([0xff, 0x00, 0x80]));
      world.put('nul', 'a\0b');
      world.put('empty', '');
      expect(outputOf(await ask('read', ['bom.txt']))).toMatchObject({ content: '\ufeffgrüße 🙂\r\n', encoding: 'utf8', size: 17 });
      expect(outputOf(await ask('read', ['binary']))).toMatchObject({ content: '/wCA', encoding: 'base64', size: 3 });
      expect(outputOf(await ask('read', ['nul']))).toMatchObject({ encoding: 'base64', size: 3 });
      expect(outputOf(await ask('read', ['empty']))).toMatchObject({ content: '', encoding: 'utf8', size: 0 });
    });

    it('gives one version for a file that did not change, the same in stat and read', async () => {
      const { ask } = world.open({ confinement });
      world.put('a.txt', 'one');
      const before = outputOf(await ask('stat', ['a.txt']));
      expect(before).toMatchObject({ type: 'file', size: 3 });
      expect(outputOf(await ask('read', ['a.txt']))).toMatchObject({ version: before['version'] });
      appendFileSync(join(world.folder(), 'a.txt'), '!');
      expect(outputOf(await ask('read', ['a.txt']))['version']).not.toBe(before['version']);
    });

    it('takes an owner nothing was written for as an empty world.root, and makes nothing', async () => {
      const { ask } = world.open({ confinement });
      expect(outputOf(await ask('list', []))).toEqual({ entries: [], truncated: false });
      expect(outputOf(await ask('search', [], { query: 'x' }))).toEqual({ matches: [], truncated: false });
      expect(outputOf(await ask('stat', []))).toMatchObject({ type: 'directory', size: 0 });
      expect(codeOf(await ask('list', ['a']))).toBe('file_not_found');
      expect(readdirSync(world.root)).toEqual([]);
    });

    it.each([
      ['what is not there', 'read', ['none'], 'file_not_found'],
      ['what is not there, further down', 'stat', ['none', 'none'], 'file_not_found'],
      ['a folder as a file', 'read', ['folder'], 'not_a_file'],
      ['the root as a file', 'read', [], 'not_a_file'],
      ['a file as a folder', 'list', ['a.txt'], 'not_a_directory'],
      ['a way through a file', 'read', ['a.txt', 'b'], 'not_a_directory'],
      ['a name in another case', 'read', ['A.txt'], 'file_not_found'],
      ['the composed form of a decomposed name', 'read', ['\u00e9'], 'file_not_found'],
      ['a file over the limit', 'read', ['large'], 'file_too_large'],
    ])('refuses %s', async (_title, verb, path, code) => {
      world.put('folder/x', '');
      world.put('a.txt', '');
      world.put('e\u0301', '');
      world.put('large', 'x'.repeat(101));
      world.put('limit', 'x'.repeat(100));
      const { ask } = world.open({ confinement, maxReadBytes: 100 });
      expect(codeOf(await ask(verb, path))).toBe(code);
      expect(codeOf(await ask('read', ['limit']))).toBe('succeeded');
    });

    it('says that the files cannot be reached, not that they are empty, when the root is gone', async () => {
      rmSync(world.root, { recursive: true });
      const { ask } = world.open({ confinement });
      for (const [verb, rest] of EVERY)
        expect(await ask(verb, ['a'], rest)).toMatchObject({ error: { code: 'files_unavailable', retryable: true } });
      expect(existsSync(world.root)).toBe(false);
    });
  });
});
