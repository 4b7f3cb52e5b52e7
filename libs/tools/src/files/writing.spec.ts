import { appendFileSync, chmodSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObj } from '@sharedos/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EVERY, FilesWorld, KINDS, codeOf, outputOf } from './files.fixture.ts';

let world: FilesWorld;
beforeEach(() => {
  world = new FilesWorld();
});
afterEach(() => world.remove());

const LARGE = { text: 'x'.repeat(16 * 1024) };

describe.each(KINDS)('files confined by %s', (confinement) => {
  describe('writing', () => {
    it('creates a file with the folders above it, text as text and other content as JSON', async () => {
      const { ask } = world.open({ confinement });
      const created = outputOf(await ask('create', ['new', 'deep', 'a.txt'], { content: 'grüße' }));
      expect(created).toMatchObject({ size: 7 });
      expect(outputOf(await ask('read', ['new', 'deep', 'a.txt']))).toMatchObject({ content: 'grüße', version: created['version'] });
      await ask('create', ['b.json'], { content: { b: [1, null], a: '\ud800' } });
      await ask('create', ['null.json'], { content: null });
      expect(readFileSync(join(world.folder(), 'b.json'), 'utf8')).toBe('{"b":[1,null],"a":"\\ud800"}');
      expect(readFileSync(join(world.folder(), 'null.json'), 'utf8')).toBe('null');
    });

    it('writes bytes that are no text, as a read tells them', async () => {
      const { ask } = world.open({ confinement });
      await ask('create', ['binary'], { content: { encoding: 'base64', content: '/wCA' } });
      expect([...readFileSync(join(world.folder(), 'binary'))]).toEqual([0xff, 0x00, 0x80]);
      await ask('append', ['binary'], { content: { encoding: 'base64', content: '/w==' } });
      expect(outputOf(await ask('read', ['binary']))).toMatchObject({ content: '/wCA/w==', encoding: 'base64', size: 4 });
      await ask('create', ['json'], { content: { encoding: 'base64', content: '/wCA', more: 1 } });
      expect(readFileSync(join(world.folder(), 'json'), 'utf8')).toBe('{"encoding":"base64","content":"/wCA","more":1}');
    });

    it('replaces a file that is there, keeps who may run it, and only if it has the version expected', async () => {
      const { ask } = world.open({ confinement });
      const { version } = outputOf(await ask('create', ['a'], { content: 'one' }));
      chmodSync(join(world.folder(), 'a'), 0o755);
      expect(codeOf(await ask('replace', ['a'], { content: 'two', expectedVersion: version as string }))).toBe('version_mismatch');
      const now = outputOf(await ask('stat', ['a']))['version'];
      expect(outputOf(await ask('replace', ['a'], { content: 'two', expectedVersion: now as string }))).toMatchObject({ size: 3 });
      expect(readFileSync(join(world.folder(), 'a'), 'utf8')).toBe('two');
      expect(statSync(join(world.folder(), 'a')).mode & 0o777).toBe(0o755);
    });

    it('gives no two forms of a file the same version, however fast they follow', async () => {
      const { ask } = world.open({ confinement });
      const versions = [outputOf(await ask('create', ['a'], { content: '0' }))['version']];
      for (let round = 1; round < 40; round += 1) {
        versions.push(outputOf(await ask('replace', ['a'], { content: String(round % 10) }))['version']);
        if (round % 4 !== 0) continue;
        await ask('delete', ['a']);
        versions.push(outputOf(await ask('create', ['a'], { content: '0' }))['version']);
      }
      expect(new Set(versions).size).toBe(versions.length);
    });

    it('keeps metadata beside a file until the file goes or is changed from outside', async () => {
      const { ask } = world.open({ confinement });
      const metadataOf = async (): Promise<unknown> => outputOf(await ask('stat', ['a']))['metadata'];
      await ask('create', ['a'], { content: '1', metadata: { by: 'me', tags: ['x'] } });
      expect(await metadataOf()).toEqual({ by: 'me', tags: ['x'] });
      await ask('append', ['a'], { content: '2' });
      await ask('replace', ['a'], { content: '3' });
      expect(await metadataOf()).toEqual({ by: 'me', tags: ['x'] });
      await ask('append', ['a'], { content: '4', metadata: { by: 'you' } });
      expect(await metadataOf()).toEqual({ by: 'you' });
      appendFileSync(join(world.folder(), 'a'), '5');
      expect(await metadataOf()).toBeUndefined();
      await ask('delete', ['a']);
      await ask('create', ['a'], { content: '6' });
      expect(await metadataOf()).toBeUndefined();
    });

    it('deletes a file, an empty folder, and with recursive all of a folder, links as links', async () => {
      world.put('a.txt', 'x');
      world.put('folder/deep/b.txt', 'x');
      mkdirSync(join(world.folder(), 'empty'));
      symlinkSync(world.outside, join(world.folder(), 'folder', 'deep', 'link'));
      writeFileSync(Buffer.concat([Buffer.from(`${world.folder()}/folder/`), Buffer.from([0xff])]), '');
      const before = world.seen(world.outside);
      const { ask } = world.open({ confinement });
      const { version } = outputOf(await ask('stat', ['a.txt']));
      expect(outputOf(await ask('delete', ['a.txt'], { expectedVersion: version as string }))).toEqual({ files: 1, folders: 0 });
      expect(outputOf(await ask('delete', ['empty']))).toEqual({ files: 0, folders: 1 });
      expect(outputOf(await ask('delete', ['folder'], { recursive: true }))).toEqual({ files: 3, folders: 2 });
      expect(readdirSync(world.folder())).toEqual([]);
      expect(world.seen(world.outside)).toEqual(before);
    });

    it('appends to a file that is there, and only if it has the version expected', async () => {
      const { ask } = world.open({ confinement });
      const { version } = outputOf(await ask('create', ['log'], { content: 'a' }));
      expect(outputOf(await ask('append', ['log'], { content: 'b', expectedVersion: version as string }))).toMatchObject({ size: 2 });
      expect(codeOf(await ask('append', ['log'], { content: 'c', expectedVersion: version as string }))).toBe('version_mismatch');
      expect(outputOf(await ask('append', ['log'], { content: 'd' }))).toMatchObject({ size: 3 });
      expect(readFileSync(join(world.folder(), 'log'), 'utf8')).toBe('abd');
    });

    it('lets exactly one of many that expect the same version append', async () => {
      const { ask } = world.open({ confinement });
      const { version } = outputOf(await ask('create', ['log'], { content: '' }));
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          ask('append', ['log'], { content: `line ${index}\n`, expectedVersion: version as string }),
        ),
      );
      expect(outcomes.filter((outcome) => outcome.status === 'succeeded')).toHaveLength(1);
      expect(readFileSync(join(world.folder(), 'log'), 'utf8')).toMatch(/^line \d+\n$/);
    });

    it('loses and mixes nothing of many that append at once', async () => {
      const { ask } = world.open({ confinement });
      await ask('create', ['log'], { content: '' });
      const lines = Array.from({ length: 40 }, (_, index) => `${String(index).repeat(500)}\n`);
      const outcomes = await Promise.all(lines.map((content) => ask('append', ['log'], { content })));
      expect(outcomes.map(codeOf)).toEqual(lines.map(() => 'succeeded'));
      expect(readFileSync(join(world.folder(), 'log'), 'utf8').split('\n').sort()).toEqual(
        [...lines.map((line) => line.trim()), ''].sort(),
      );
    });

    it('refuses those beyond the bound of the line for one file, and forgets the line after', async () => {
      const { ask } = world.open({ confinement });
      await ask('create', ['log'], { content: '' });
      const codes = (await Promise.all(Array.from({ length: 70 }, () => ask('append', ['log'], { content: 'x' })))).map(codeOf);
      expect(codes.filter((code) => code === 'succeeded')).toHaveLength(65);
      expect(codes.filter((code) => code === 'file_busy')).toHaveLength(5);
      expect(codeOf(await ask('append', ['log'], { content: 'x' }))).toBe('succeeded');
    });

    it('lets exactly one of many create the same file, whose content then is whole', async () => {
      const { ask } = world.open({ confinement });
      const outcomes = await Promise.all(Array.from({ length: 20 }, (_, index) => ask('create', ['a', 'b'], { content: `${index}` })));
      expect(outcomes.map(codeOf).filter((code) => code === 'succeeded')).toHaveLength(1);
      expect(outcomes.map(codeOf).filter((code) => code === 'file_exists')).toHaveLength(19);
    });

    it.each<[string, string, readonly string[], JsonObj, string]>([
      ['to create what is a file', 'create', ['a.txt'], { content: 'x' }, 'file_exists'],
      ['to create what is a folder', 'create', ['folder'], { content: 'x' }, 'file_exists'],
      ['to create below a file', 'create', ['a.txt', 'b'], { content: 'x' }, 'not_a_directory'],
      ['to create more than a file may hold', 'create', ['new', 'b'], { content: 'x'.repeat(101) }, 'file_too_large'],
      ['to create text with half a pair', 'create', ['new', 'b'], { content: 'a\udc00' }, 'content_refused'],
      ['to create with more metadata than is kept', 'create', ['new', 'b'], { content: 'x', metadata: LARGE }, 'metadata_too_large'],
      [
        'to create what calls itself base64 and is not',
        'create',
        ['new', 'b'],
        { content: { encoding: 'base64', content: 'a' } },
        'content_refused',
      ],
      ['to replace what is not there', 'replace', ['none'], { content: 'x' }, 'file_not_found'],
      ['to replace a folder', 'replace', ['folder'], { content: 'x' }, 'not_a_file'],
      ['to replace another version', 'replace', ['a.txt'], { content: 'x', expectedVersion: 'v1' }, 'version_mismatch'],
      ['to replace with more than a file may hold', 'replace', ['a.txt'], { content: 'x'.repeat(101) }, 'file_too_large'],
      ['to delete what is not there', 'delete', ['none'], {}, 'file_not_found'],
      ['to delete another version', 'delete', ['a.txt'], { expectedVersion: 'v1' }, 'version_mismatch'],
      ['to delete a folder that holds something', 'delete', ['folder'], {}, 'folder_not_empty'],
      ['to delete below a file', 'delete', ['a.txt', 'b'], {}, 'not_a_directory'],
      ['to append to what is not there', 'append', ['none'], { content: 'x' }, 'file_not_found'],
      ['to append below what is not there', 'append', ['new', 'none'], { content: 'x' }, 'file_not_found'],
      ['to append to a folder', 'append', ['folder'], { content: 'x' }, 'not_a_file'],
      ['to append beyond what a file may hold', 'append', ['a.txt'], { content: 'x'.repeat(99) }, 'file_too_large'],
      ['to append text with half a pair', 'append', ['a.txt'], { content: '\ud800' }, 'content_refused'],
      ['to append with more metadata than is kept', 'append', ['a.txt'], { content: 'x', metadata: LARGE }, 'metadata_too_large'],
      ['to append to a made-up version', 'append', ['a.txt'], { content: 'x', expectedVersion: 'v1' }, 'version_mismatch'],
    ])('refuses %s and leaves everything as it was', async (_title, verb, path, rest, code) => {
      world.put('a.txt', 'ab');
      world.put('folder/x', '');
      const before = world.seen();
      expect(codeOf(await world.open({ confinement, maxFileBytes: 100 }).ask(verb, path, rest))).toBe(code);
      expect(world.seen()).toEqual(before);
    });

    it('makes nothing once cancelled, at the start or while waiting in line', async () => {
      world.put('a.txt', 'ab');
      const { ask } = world.open({ confinement });
      const before = world.seen();
      for (const [verb, rest] of EVERY)
        expect(codeOf(await ask(verb, ['a.txt'], rest, { cancel: AbortSignal.abort() }))).toBe('operation_cancelled');
      expect(world.seen()).toEqual(before);
      const controller = new AbortController();
      const first = ask('append', ['a.txt'], { content: 'c' });
      const second = ask('append', ['a.txt'], { content: 'd' }, { cancel: controller.signal });
      controller.abort();
      expect([codeOf(await first), codeOf(await second)]).toEqual(['succeeded', 'operation_cancelled']);
      expect(readFileSync(join(world.folder(), 'a.txt'), 'utf8')).toBe('abc');
    });

    it('honours a cancellation that comes during the walk, before it makes or changes the file', async () => {
      world.put('a.txt', 'ab');
      const { ask } = world.open({ confinement });
      const controller = new AbortController();
      const writes = [
        ask('append', ['a.txt'], { content: 'c' }, { cancel: controller.signal }),
        ask('create', ['b.txt'], { content: 'c' }, { cancel: controller.signal }),
      ];
      controller.abort();
      expect((await Promise.all(writes)).map(codeOf)).toEqual(['operation_cancelled', 'operation_cancelled']);
      expect(readdirSync(world.folder())).toEqual(['a.txt']);
      expect(readFileSync(join(world.folder(), 'a.txt'), 'utf8')).toBe('ab');
    });
  });
});
