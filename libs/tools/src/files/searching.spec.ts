import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObj } from '@sharedos/contracts';
import { confinementKind } from '../confinement/confinement.ts';
import { treeSteps, walkTo } from '../confinement/tree-steps.ts';
import type { ScanControl } from './scan.ts';
import { searchBelow } from './search.ts';
import type { FilesProviderOptions } from './files-provider.ts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FilesWorld, KINDS, codeOf, outputOf } from './files.fixture.ts';

let world: FilesWorld;
beforeEach(() => {
  world = new FilesWorld();
});
afterEach(() => world.remove());

describe.each(KINDS)('files confined by %s', (confinement) => {
  describe('searching', () => {
    it('finds the files below the path that hold every word, letter case ignored, with their best line', async () => {
      world.put('notes/a.txt', 'nothing\r\nThe NEEDLE here\n');
      world.put('notes/deep/b.md', 'needle. (regex*) Needle');
      world.put('notes/binary', 'needle\0');
      world.put('other/c.txt', 'needle');
      const { ask } = world.open({ confinement });
      expect(outputOf(await ask('search', ['notes'], { query: 'needle' }))).toEqual({
        matches: [
          { path: ['notes', 'deep', 'b.md'], score: 2, line: 1, text: 'needle. (regex*) Needle' },
          { path: ['notes', 'a.txt'], score: 1, line: 2, text: 'The NEEDLE here' },
        ],
        truncated: false,
      });
      expect(outputOf(await ask('search', ['notes', 'a.txt'], { query: 'needle' }))['matches']).toHaveLength(1);
      expect(outputOf(await ask('search', [], { query: '(REGEX*)' }))['matches']).toHaveLength(1);
      expect(outputOf(await ask('search', [], { query: 'n.edle' }))['matches']).toEqual([]);
      expect(outputOf(await ask('search', [], { query: 'needle nothing' }))).toMatchObject({ matches: [{ path: ['notes', 'a.txt'] }] });
    });

    it('puts the whole query first, then words in the name, then how often a word is there, then the path', async () => {
      world.put('phrase', 'x\nred stone\n');
      world.put('red-stone', '');
      world.put('often', 'stone stone stone red red red');
      world.put('once-a', 'stone, red');
      world.put('once-b', 'stone, red');
      const { ask } = world.open({ confinement });
      const { matches } = outputOf<{ matches: { path: string[]; score: number }[] }>(await ask('search', [], { query: 'red stone' }));
      expect(matches.map(({ path }) => path[0])).toEqual(['phrase', 'red-stone', 'often', 'once-a', 'once-b']);
      expect(matches[0]).toMatchObject({ line: 2, text: 'red stone' });
      expect(matches[1]).not.toHaveProperty('line');
      const two = outputOf(await ask('search', [], { query: 'red stone', limit: 2 }));
      expect(two).toMatchObject({ matches: [{ path: ['phrase'] }, { path: ['red-stone'] }], truncated: true });
      expect(outputOf(await ask('search', [], { query: 'red stone', limit: 5 }))).toMatchObject({ truncated: false });
    });

    it('tells nothing of what is outside the subtree, `truncated` included', async () => {
      world.put('mine/a.txt', 'needle');
      for (let index = 0; index < 20; index += 1) world.put(`theirs/${index}.txt`, 'needle');
      const alone = await world.open({ confinement, search: { filesMax: 2, entriesMax: 4 } }).ask('search', ['mine'], { query: 'needle' });
      expect(outputOf(alone)).toMatchObject({ matches: [{ path: ['mine', 'a.txt'] }], truncated: false });
    });

    it('never follows a link', async () => {
      world.put('notes/a.txt', 'nothing');
      symlinkSync(world.outside, join(world.folder(), 'notes', 'folder'));
      symlinkSync(join(world.outside, 'secret.txt'), join(world.folder(), 'notes', 'file'));
      symlinkSync('.', join(world.folder(), 'notes', 'loop'));
      expect(outputOf(await world.open({ confinement }).ask('search', [], { query: 'secret' }))).toEqual({ matches: [], truncated: false });
    });

    it.each<[string, Partial<FilesProviderOptions>, number]>([
      ['files', { search: { filesMax: 3 } }, 3],
      ['entries', { search: { entriesMax: 3 } }, 3],
      ['bytes', { search: { bytesMax: 18 } }, 3],
      ['the size of one file', { maxReadBytes: 5 }, 0],
    ])('stops at its bound of %s and says so', async (_title, options, count) => {
      for (const name of ['a', 'b', 'c', 'd', 'e']) world.put(name, 'needle');
      const found = outputOf(await world.open({ confinement, ...options }).ask('search', [], { query: 'needle' }));
      expect(found).toMatchObject({ truncated: true });
      expect(found['matches']).toHaveLength(count);
    });

    it('shows a long line around its hit, and halves no pair', async () => {
      world.put('long', `${'🙂'.repeat(1_001)}needle${'🙂'.repeat(1_000)}`);
      const [match] = outputOf<{ matches: { text: string }[] }>(
        await world.open({ confinement }).ask('search', [], { query: 'needle' }),
      ).matches;
      expect(match?.text).toContain('needle');
      expect(match?.text.length).toBeLessThanOrEqual(512);
      expect(match?.text.isWellFormed()).toBe(true);
    });

    it('refuses a start that is not there', async () => {
      world.put('a', '');
      expect(codeOf(await world.open({ confinement }).ask('search', ['none'], { query: 'x' }))).toBe('file_not_found');
    });
  });

  describe('looking for a pattern', () => {
    const text = 'one\ntwo Two\nthree (3)\nfour\n';

    it.each<[string, JsonObj, readonly number[]]>([
      ['literal text, letter case ignored', { pattern: 'TWO' }, [2]],
      ['literal text in its case', { pattern: 'TWO', caseSensitive: true }, []],
      ['literal text that would be an expression', { pattern: '(3)' }, [3]],
      ['outer white space', { pattern: ' two' }, [2]],
      ['an expression', { pattern: '^t.*[)o]$', mode: 'regex' }, [2, 3]],
      ['an expression in its case', { pattern: 'T', mode: 'regex', caseSensitive: true }, [2]],
      ['a pattern over two lines, which no line holds', { pattern: 'one\ntwo' }, []],
    ])('finds %s', async (_title, input, lines) => {
      world.put('a.txt', text);
      const { matches } = outputOf<{ matches: { line: number }[] }>(await world.open({ confinement }).ask('grep', [], input));
      expect(matches.map(({ line }) => line)).toEqual(lines);
    });

    it('shows as many lines around as were asked for and are there', async () => {
      world.put('a.txt', text);
      const { ask } = world.open({ confinement });
      expect(outputOf(await ask('grep', ['a.txt'], { pattern: 'two', contextBefore: 5, contextAfter: 1 }))).toEqual({
        matches: [{ path: ['a.txt'], line: 2, text: 'two Two', before: ['one'], after: ['three (3)'] }],
        truncated: false,
      });
    });

    it.each(['(', '(?=a)', '(a)\\1', 'a{2000}'])('refuses the expression %s, which RE2 does not have', async (pattern) => {
      world.put('a.txt', text);
      expect(codeOf(await world.open({ confinement }).ask('grep', [], { pattern, mode: 'regex' }))).toBe('pattern_refused');
    });

    it('stops where the answer would grow too large, and says so', async () => {
      world.put('a.txt', 'needle\n'.repeat(1_500));
      world.put('b.txt', `needle${'x'.repeat(500)}\n`.repeat(300));
      const { ask } = world.open({ confinement });
      const many = outputOf(await ask('grep', ['a.txt'], { pattern: 'needle' }));
      expect(many).toMatchObject({ truncated: true });
      expect(many['matches']).toHaveLength(1_000);
      const long = outputOf(await ask('grep', ['b.txt'], { pattern: 'needle', contextBefore: 100, contextAfter: 100 }));
      expect(long).toMatchObject({ truncated: true });
      expect(JSON.stringify(long).length).toBeLessThan(2_000_000);
    });
  });
});

describe('an expression that one line holds up', () => {
  it('ends with its thread, and the next search finds another', async () => {
    // Every place of the text may begin a match that is decided 900 letters on.
    world.put('a.txt', 'aabab'.repeat(200_000));
    const expensive = { pattern: '[ab]*a[ab]{900}c', mode: 'regex' };
    expect(codeOf(await world.open({ search: { timeMs: 100 } }).ask('grep', ['a.txt'], expensive))).toBe('search_timed_out');
    expect(codeOf(await world.open().ask('grep', [], { pattern: 'a' }))).toBe('succeeded');
  });
});

describe('a scan', () => {
  const bounds = { filesMax: 10, entriesMax: 10, bytesMax: 100, fileBytesMax: 100, timeMs: 2_500 };
  const search = (control: ScanControl) => {
    const steps = treeSteps(confinementKind());
    const parent = walkTo(steps, world.folder(), []);
    if (!parent.ok) throw new Error(parent.error);
    const found = searchBelow(steps, { parent: parent.value, name: '.', path: [] }, { query: 'needle' }, bounds, control);
    parent.value.close();
    return found;
  };

  it('stops at its bound of time, and says so', () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) world.put(name, 'needle');
    let time = 0;
    // A clock on which every look takes a second.
    const found = search({ now: () => (time += 1_000), cancelled: () => false });
    expect(found).toMatchObject({ ok: true, value: { truncated: true, matches: [{ path: ['a'] }, { path: ['b'] }] } });
  });

  it('stops when nobody waits any more', () => {
    world.put('a', 'needle');
    expect(search({ now: () => 0, cancelled: () => true })).toEqual({ ok: false, error: 'operation_cancelled' });
  });
});
