import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Json } from '@sharedos/contracts';
import { ZodError } from 'zod';
import { ownerFolder } from '../confinement/owner-folder.ts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Asking, EVERY, FilesWorld, KINDS, SECRET, codeOf, maren, outputOf } from './files.fixture.ts';

let world: FilesWorld;
beforeEach(() => {
  world = new FilesWorld();
});
afterEach(() => world.remove());

describe.each(KINDS)('files confined by %s', (confinement) => {
  describe('a hostile path', () => {
    /** Refused by the tools' parser and, for whoever goes round it, by the provider before it touches anything. */
    it.each<[string, readonly string[]]>([
      ['the folder above', ['..']],
      ['the folder above, further down', ['a', '..', '..', '..', 'outside', 'secret.txt']],
      ['the same folder', ['.']],
      ['a separator', ['../../../../outside/secret.txt']],
      ['an absolute path', ['/etc/passwd']],
      ['the root', ['/']],
      ['a backslash', ['..\\..\\outside']],
      ['NUL', ['a\0']],
      ['NUL after a real name', ['a.txt\0.png']],
      ['a line break', ['a\nb']],
      ['DEL', ['a\u007f']],
      ['nothing', ['']],
      ['a space', [' ']],
      ['a space before', [' ..']],
      ['a space after', ['.. ']],
      ['a no-break space after', ['a.txt\u00a0']],
      ['a byte order mark before', ['\ufeff..']],
      ['65 segments', Array.from({ length: 65 }, () => 'a')],
      ['300 characters', ['x'.repeat(300)]],
    ])('with %s is refused everywhere', async (_title, path) => {
      world.put('a/a.txt', '');
      world.put('a.txt', '');
      const before = world.seen();
      const { ask, provide } = world.open({ confinement });
      for (const [verb, rest] of EVERY) {
        await expect(ask(verb, path, rest), verb).rejects.toThrow(ZodError);
        const input = Object.keys(rest).length === 0 ? undefined : rest;
        expect(codeOf(await provide(verb.replace('.', ':'), path, input)), verb).toBe('path_refused');
      }
      expect(world.seen()).toEqual(before);
    });

    it.each<[string, readonly string[]]>([
      ['256 bytes', ['x'.repeat(256)]],
      ['100 characters of 3 bytes', ['€'.repeat(100)]],
      ['a lone high surrogate', ['a\ud800']],
      ['a lone low surrogate', ['\udc00']],
      ['a name too long in the middle', ['a', 'x'.repeat(256), 'b']],
    ])('of %s, which the contract takes, is refused by the provider', async (_title, path) => {
      const before = world.seen();
      const { ask } = world.open({ confinement });
      for (const [verb, rest] of EVERY) expect(codeOf(await ask(verb, path, rest)), verb).toBe('path_refused');
      expect(world.seen()).toEqual(before);
    });

    it.each([
      '...',
      '..a',
      '%2e%2e',
      '%2e%2e%2foutside',
      '~',
      '~root',
      'C:',
      'CON',
      'nul.txt',
      'a:stream',
      '🙂',
      '*',
      '>',
      '?',
      '$HOME',
      '-rf',
      'x'.repeat(255),
      '\u2215',
      '\u200b',
    ])('that only looks like one (%j) is an ordinary name', async (name) => {
      const before = world.seen(world.outside);
      const { ask } = world.open({ confinement });
      expect(codeOf(await ask('create', [name, name], { content: name }))).toBe('succeeded');
      expect(outputOf(await ask('read', [name, name]))).toMatchObject({ content: name });
      expect(outputOf(await ask('list', []))).toMatchObject({ entries: [{ name, type: 'directory' }] });
      expect(readdirSync(world.folder())).toEqual([name]);
      expect(world.seen(world.outside)).toEqual(before);
    });

    it('of 64 segments is taken', async () => {
      const path = Array.from({ length: 64 }, (_, index) => `${index}`.padEnd(40, 'x'));
      const { ask } = world.open({ confinement });
      const created = await ask('create', path, { content: 'deep' });
      expect(codeOf(created)).toBe('succeeded');
      expect(outputOf(await ask('search', [], { query: 'deep' }))).toMatchObject({ matches: [{ path }] });
    });
  });

  describe('a link', () => {
    it.each<[string, (folder: string) => void, readonly string[]]>([
      ['first, to a folder outside', (folder) => symlinkSync(world.outside, join(folder, 'link')), ['link', 'inner', 'secret.txt']],
      ['first, relative', (folder) => symlinkSync('../../../../outside', join(folder, 'link')), ['link', 'secret.txt']],
      ['in the middle', (folder) => symlinkSync(world.outside, join(folder, 'real', 'link')), ['real', 'link', 'secret.txt']],
      [
        'last, to a file outside',
        (folder) => symlinkSync(join(world.outside, 'secret.txt'), join(folder, 'real', 'link')),
        ['real', 'link'],
      ],
      ['last, to a folder outside', (folder) => symlinkSync(world.outside, join(folder, 'real', 'link')), ['real', 'link']],
      [
        'last, to a file not there yet',
        (folder) => symlinkSync(join(world.outside, 'new.txt'), join(folder, 'real', 'link')),
        ['real', 'link'],
      ],
      ['last, to a file inside', (folder) => symlinkSync('a.txt', join(folder, 'real', 'link')), ['real', 'link']],
      ['first, to a folder inside', (folder) => symlinkSync('real', join(folder, 'link')), ['link', 'a.txt']],
      ['to itself', (folder) => symlinkSync('link', join(folder, 'link')), ['link', 'a.txt']],
    ])('%s is refused by every tool', async (_title, make, path) => {
      world.put('real/a.txt', SECRET);
      make(world.folder());
      const before = world.seen();
      const { ask } = world.open({ confinement });
      for (const [verb, rest] of EVERY) {
        const result = await ask(verb, path, rest);
        expect(codeOf(result), verb).toBe('path_not_confined');
        expect(JSON.stringify(result)).not.toContain(world.base);
      }
      expect(world.seen()).toEqual(before);
    });

    it.each([1, 2, 3])('in place of the folder of namespace, kind or owner (%i) is refused too', async (depth) => {
      const tokens = ownerFolder('north', maren);
      mkdirSync(join(world.root, ...tokens.slice(0, depth - 1)), { recursive: true });
      symlinkSync(world.outside, join(world.root, ...tokens.slice(0, depth)));
      const before = world.seen();
      const { ask } = world.open({ confinement });
      for (const [verb, rest] of EVERY) expect(codeOf(await ask(verb, ['secret.txt'], rest)), verb).toBe('path_not_confined');
      for (const verb of ['list', 'stat']) expect(codeOf(await ask(verb, [])), verb).toBe('path_not_confined');
      expect(world.seen()).toEqual(before);
    });
  });

  it('refuses a fifo, a socket and a device at once, in every tool and as a folder', async () => {
    execFileSync('mkfifo', [join(world.folder(), 'pipe')]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(world.folder(), 'socket'), resolve));
    try {
      const { ask } = world.open({ confinement });
      for (const name of ['pipe', 'socket']) {
        for (const verb of ['stat', 'read']) expect(codeOf(await ask(verb, [name])), verb).toBe('not_a_file');
        expect(codeOf(await ask('search', [name], { query: 'x' }))).toBe('not_a_file');
        expect(codeOf(await ask('append', [name], { content: 'x' }))).toBe('not_a_file');
        expect(codeOf(await ask('create', [name], { content: 'x' }))).toBe('file_exists');
        expect(codeOf(await ask('list', [name]))).toBe('not_a_directory');
        expect(codeOf(await ask('read', [name, 'a']))).toBe('not_a_directory');
      }
      expect(outputOf(await ask('search', [], { query: 'x' }))).toEqual({ matches: [], truncated: false });
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it('keeps every owner, kind and namespace apart, whatever they are called', async () => {
    const ids = [
      'a',
      'a.b',
      'a.b.c',
      '..',
      '../x',
      '.',
      '/',
      '*',
      '>',
      'a b',
      'A',
      '🙂',
      '~YQ',
      'x'.repeat(129),
      'x'.repeat(250),
      'x'.repeat(251),
      '\0',
      '€'.repeat(256),
    ];
    const places: Asking[] = ids.flatMap((id) => [
      { owner: { kind: 'human', userId: id } as const, namespaceId: 'north' },
      { owner: { kind: 'agent', agentId: id } as const, namespaceId: 'north' },
      { owner: maren, namespaceId: id },
    ]);
    const { ask } = world.open({ confinement });
    const before = world.seen(world.outside);
    for (const [index, place] of places.entries()) {
      expect(outputOf(await ask('list', [], {}, place))).toMatchObject({ entries: [] });
      expect(codeOf(await ask('create', ['mine.txt'], { content: `of ${index}` }, place))).toBe('succeeded');
    }
    for (const [index, place] of places.entries()) {
      expect(outputOf(await ask('read', ['mine.txt'], {}, place))).toMatchObject({ content: `of ${index}` });
      expect(outputOf(await ask('search', [], { query: 'of' }, place))['matches']).toHaveLength(1);
    }
    expect(readdirSync(world.base).sort()).toEqual(['outside', 'root']);
    expect(world.seen(world.outside)).toEqual(before);
  });

  it('refuses an owner or namespace whose id is half a pair, which would share a folder with others', async () => {
    const { provide } = world.open({ confinement });
    const list = (asking: Asking) => provide('list', [], undefined, asking);
    expect(codeOf(await list({ owner: { kind: 'human', userId: 'a\ud800' } }))).toBe('path_refused');
    expect(codeOf(await list({ namespaceId: '\udfff' }))).toBe('path_refused');
  });

  it.each<[string, string, Json | undefined, string]>([
    ['an action it does not know', 'move', { content: 'x' }, 'action_not_supported'],
    ['an action that every object has', 'toString', undefined, 'action_not_supported'],
    ['the action that covers every other', '*', undefined, 'action_not_supported'],
    ['input where there is none', 'read', { offset: 1 }, 'invalid_input'],
    ['no input where there is one', 'search', undefined, 'invalid_input'],
    ['an unknown member', 'append', { content: 'x', at: 0 }, 'invalid_input'],
    ['a search without a word', 'search', { query: ' ' }, 'invalid_input'],
  ])('refuses %s from a caller that is no tool', async (_title, action, input, code) => {
    world.put('a.txt', 'ab');
    const before = world.seen();
    expect(codeOf(await world.open({ confinement }).provide(action, ['a.txt'], input))).toBe(code);
    expect(world.seen()).toEqual(before);
  });

  it('keeps no file open', async () => {
    if (process.platform !== 'linux') return;
    world.put('a/b/c.txt', 'needle');
    symlinkSync(world.outside, join(world.folder(), 'link'));
    const { ask } = world.open({ confinement });
    const round = async (): Promise<void> => {
      for (const [verb, rest] of EVERY)
        for (const path of [['a', 'b', 'c.txt'], ['a'], ['none'], ['link'], ['link', 'x']]) await ask(verb, path, rest);
    };
    await round();
    const before = readdirSync('/proc/self/fd').length;
    for (let index = 0; index < 5; index += 1) await round();
    expect(readdirSync('/proc/self/fd').length).toBe(before);
  });
});
