import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import {
  type AccessContext,
  type Address,
  type Json,
  type JsonObj,
  type ResourceResult,
  type ToolResult,
  instantOf,
} from '@sharedos/contracts';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ZodError } from 'zod';
import type { ConfinementKind } from './confinement.ts';
import { isFileName } from './file-name.ts';
import { FILE_REFUSALS } from './file-refusal.ts';
import { type FilesProviderOptions, filesProvider } from './files-provider.ts';
import { FILES_PLANE, filesTools } from './files-tools.ts';
import { ownerFolder } from './owner-folder.ts';
import { ContractError } from '@sharedos/kernel';

const AT = '2026-01-01T12:00:00.000Z';
const SECRET = 'the secret outside';
const maren: Address = { kind: 'human', userId: 'maren' };

let base: string;
let root: string;
let outside: string;

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'files-provider-')));
  root = join(base, 'root');
  outside = join(base, 'outside');
  mkdirSync(root);
  mkdirSync(join(outside, 'inner'), { recursive: true });
  writeFileSync(join(outside, 'secret.txt'), SECRET);
  writeFileSync(join(outside, 'inner', 'secret.txt'), SECRET);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

interface Asking {
  readonly owner?: Address;
  readonly namespaceId?: string;
  readonly cancel?: AbortSignal;
}
const contextOf = ({ owner = maren, namespaceId = 'north' }: Asking): AccessContext => ({
  namespaceId,
  actor: { kind: 'agent', agentId: 'scout' },
  authority: owner,
  owner,
  purpose: 'draft-brief',
  traceId: 'trace-1',
  enabledToolNamespaces: ['files'],
  now: AT,
});

const ajv = new Ajv2020({ formats: { 'date-time': (text: string) => instantOf(text) !== undefined } });

/** The provider asked as the kernel asks it, through the tools; every success must fit the output schema that was published. */
const openFiles = (options: Partial<FilesProviderOptions> = {}) => {
  const provider = filesProvider({ root, now: () => Date.parse(AT), ...options });
  const tools = new Map(filesTools(provider).map((tool) => [tool.definition.name, tool]));
  const ask = async (verb: string, path: readonly string[], rest: JsonObj = {}, asking: Asking = {}): Promise<ToolResult> => {
    const tool = tools.get(`files.${verb}`);
    if (tool === undefined) throw new Error(`no tool files.${verb}`);
    const call = {
      id: 'call-1',
      tool: tool.definition.name,
      arguments: tool.parseArguments({ path, ...rest }) as JsonObj,
      traceId: 't',
      requestedAt: AT,
    };
    const result = await tool.invoke(contextOf(asking), call, asking.cancel ?? new AbortController().signal);
    if (result.status === 'succeeded') {
      const fits = ajv.compile(tool.definition.outputSchema as object);
      expect(fits(result.output), JSON.stringify(fits.errors)).toBe(true);
    } else {
      expect(result.error.message).toBe(FILE_REFUSALS[result.error.code as keyof typeof FILE_REFUSALS]);
    }
    return result;
  };
  /** Straight to the provider, past the parser of the tools. */
  const provide = (action: string, path: readonly string[], input?: Json, asking: Asking = {}): Promise<ResourceResult> => {
    const context = contextOf(asking);
    const resource = { namespace: 'files', path: [...path], owner: context.owner };
    const operation = { operationId: 'op-1', context, resource, action, ...(input === undefined ? {} : { input }) };
    return provider.invoke(operation, asking.cancel ?? new AbortController().signal);
  };
  return { ask, provide };
};

const codeOf = (result: ToolResult | ResourceResult): string => (result.status === 'succeeded' ? 'succeeded' : result.error.code);
const outputOf = <T = Record<string, Json>>(result: ToolResult): T => {
  if (result.status !== 'succeeded') throw new Error(`refused: ${result.error.code}`);
  return result.output as T;
};
/** The folder on disk of an owner, made if it is not there. */
const folderOf = (owner: Address = maren, namespaceId = 'north'): string => {
  const folder = join(root, ...ownerFolder(namespaceId, owner));
  mkdirSync(folder, { recursive: true });
  return folder;
};
const put = (path: string, content: string | Uint8Array): void => {
  mkdirSync(dirname(join(folderOf(), path)), { recursive: true });
  writeFileSync(join(folderOf(), path), content);
};

/** All there is to see of a tree: names, kinds, inodes, times, link targets and contents. */
const snapshot = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .sort()
    .map((name) => {
      const at = join(folder, name);
      const stats = lstatSync(at, { bigint: true });
      const content = stats.isFile()
        ? createHash('sha256').update(readFileSync(at)).digest('hex')
        : stats.isSymbolicLink()
          ? readlinkSync(at)
          : '';
      return [name, stats.mode, stats.ino, stats.nlink, stats.mtimeNs, stats.ctimeNs, content].join(' ');
    });

const KINDS: readonly ConfinementKind[] = process.platform === 'linux' ? ['descriptors', 'checked-paths'] : ['checked-paths'];
/** Every tool, as asked about one path. */
const EVERY: readonly (readonly [string, JsonObj])[] = [
  ['list', {}],
  ['stat', {}],
  ['read', {}],
  ['search', { query: 'secret' }],
  ['create', { content: 'x' }],
  ['append', { content: 'x' }],
];

describe.each(KINDS)('files confined by %s', (confinement) => {
  describe('reading', () => {
    it('lists files and folders by name in code-unit order, links and special files left out', async () => {
      put('b.txt', 'hello');
      put('B.txt', '');
      put('a/inner.txt', 'x');
      put('é.txt', 'x');
      symlinkSync(outside, join(folderOf(), 'link'));
      execFileSync('mkfifo', [join(folderOf(), 'pipe')]);
      expect(outputOf(await openFiles({ confinement }).ask('list', []))).toEqual({
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
      for (const name of ['c', 'a', 'd', 'b']) put(name, '');
      const { ask } = openFiles({ confinement, maxListEntries: 3 });
      expect(outputOf(await ask('list', []))).toMatchObject({ entries: [{ name: 'a' }, { name: 'b' }, { name: 'c' }], truncated: true });
      rmSync(join(folderOf(), 'd'));
      expect(outputOf(await ask('list', []))).toMatchObject({ truncated: false });
    });

    it('leaves out names that no path can spell', async () => {
      put('plain', '');
      writeFileSync(join(folderOf(), 'back\\slash'), '');
      writeFileSync(join(folderOf(), ' padded'), '');
      writeFileSync(Buffer.concat([Buffer.from(`${folderOf()}/`), Buffer.from([0xff, 0xfe])]), '');
      expect(outputOf(await openFiles({ confinement }).ask('list', []))).toMatchObject({ entries: [{ name: 'plain' }] });
    });

    it('gives text as it is and other bytes as base64', async () => {
      const { ask } = openFiles({ confinement });
      put('bom.txt', '\ufeffgrüße 🙂\r\n');
      put('binary', Uint8Array.from([0xff, 0x00, 0x80]));
      put('nul', 'a\0b');
      put('empty', '');
      expect(outputOf(await ask('read', ['bom.txt']))).toMatchObject({ content: '\ufeffgrüße 🙂\r\n', encoding: 'utf8', size: 17 });
      expect(outputOf(await ask('read', ['binary']))).toMatchObject({ content: '/wCA', encoding: 'base64', size: 3 });
      expect(outputOf(await ask('read', ['nul']))).toMatchObject({ encoding: 'base64', size: 3 });
      expect(outputOf(await ask('read', ['empty']))).toMatchObject({ content: '', encoding: 'utf8', size: 0 });
    });

    it('gives one version for a file that did not change, the same in stat and read', async () => {
      const { ask } = openFiles({ confinement });
      put('a.txt', 'one');
      const before = outputOf(await ask('stat', ['a.txt']));
      expect(before).toMatchObject({ type: 'file', size: 3 });
      expect(outputOf(await ask('read', ['a.txt']))).toMatchObject({ version: before['version'] });
      appendFileSync(join(folderOf(), 'a.txt'), '!');
      expect(outputOf(await ask('read', ['a.txt']))['version']).not.toBe(before['version']);
    });

    it('takes an owner nothing was written for as an empty root, and makes nothing', async () => {
      const { ask } = openFiles({ confinement });
      expect(outputOf(await ask('list', []))).toEqual({ entries: [], truncated: false });
      expect(outputOf(await ask('search', [], { query: 'x' }))).toEqual({ matches: [], truncated: false });
      expect(outputOf(await ask('stat', []))).toMatchObject({ type: 'directory', size: 0 });
      expect(codeOf(await ask('list', ['a']))).toBe('file_not_found');
      expect(readdirSync(root)).toEqual([]);
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
      put('folder/x', '');
      put('a.txt', '');
      put('e\u0301', '');
      put('large', 'x'.repeat(101));
      put('limit', 'x'.repeat(100));
      const { ask } = openFiles({ confinement, maxReadBytes: 100 });
      expect(codeOf(await ask(verb, path))).toBe(code);
      expect(codeOf(await ask('read', ['limit']))).toBe('succeeded');
    });

    it('says that the files cannot be reached, not that they are empty, when the root is gone', async () => {
      rmSync(root, { recursive: true });
      const { ask } = openFiles({ confinement });
      for (const [verb, rest] of EVERY)
        expect(await ask(verb, ['a'], rest)).toMatchObject({ error: { code: 'files_unavailable', retryable: true } });
      expect(existsSync(root)).toBe(false);
    });
  });

  describe('searching', () => {
    it('finds lines of text files below the path, letter case ignored, and tells their whole path', async () => {
      put('notes/a.txt', 'nothing\r\nThe NEEDLE here\n');
      put('notes/deep/b.md', 'needle. (regex*) Needle');
      put('notes/binary', 'needle\0');
      put('other/c.txt', 'needle');
      const { ask } = openFiles({ confinement });
      expect(outputOf(await ask('search', ['notes'], { query: 'needle' }))).toEqual({
        matches: [
          { path: ['notes', 'a.txt'], line: 2, text: 'The NEEDLE here' },
          { path: ['notes', 'deep', 'b.md'], line: 1, text: 'needle. (regex*) Needle' },
        ],
        truncated: false,
      });
      expect(outputOf(await ask('search', ['notes', 'a.txt'], { query: 'needle' }))['matches']).toHaveLength(1);
      expect(outputOf(await ask('search', [], { query: '(REGEX*)' }))['matches']).toHaveLength(1);
      expect(outputOf(await ask('search', [], { query: 'n.edle' }))['matches']).toEqual([]);
    });

    it('tells nothing of what is outside the subtree, `truncated` included', async () => {
      put('mine/a.txt', 'needle');
      for (let index = 0; index < 20; index += 1) put(`theirs/${index}.txt`, 'needle');
      const alone = await openFiles({ confinement, search: { filesMax: 2, entriesMax: 4 } }).ask('search', ['mine'], { query: 'needle' });
      expect(outputOf(alone)).toMatchObject({ matches: [{ path: ['mine', 'a.txt'] }], truncated: false });
    });

    it('never follows a link', async () => {
      put('notes/a.txt', 'nothing');
      symlinkSync(outside, join(folderOf(), 'notes', 'folder'));
      symlinkSync(join(outside, 'secret.txt'), join(folderOf(), 'notes', 'file'));
      symlinkSync('.', join(folderOf(), 'notes', 'loop'));
      expect(outputOf(await openFiles({ confinement }).ask('search', [], { query: 'secret' }))).toEqual({ matches: [], truncated: false });
    });

    it.each<[string, Partial<FilesProviderOptions>, number]>([
      ['files', { search: { filesMax: 3 } }, 3],
      ['entries', { search: { entriesMax: 4 } }, 3],
      ['bytes', { search: { bytesMax: 18 } }, 3],
      ['the size of one file', { maxReadBytes: 5 }, 0],
    ])('stops at its bound of %s and says so', async (_title, options, count) => {
      for (const name of ['a', 'b', 'c', 'd', 'e']) put(name, 'needle');
      const found = outputOf(await openFiles({ confinement, ...options }).ask('search', [], { query: 'needle' }));
      expect(found).toMatchObject({ truncated: true });
      expect(found['matches']).toHaveLength(count);
    });

    it('stops at its bound of time', async () => {
      for (const name of ['a', 'b', 'c', 'd', 'e']) put(name, 'needle');
      let time = Date.parse(AT);
      // A clock on which every look takes a second.
      const { ask } = openFiles({ confinement, now: () => (time += 1_000), search: { timeMs: 2_500 } });
      const found = outputOf(await ask('search', [], { query: 'needle' }));
      expect(found).toMatchObject({ truncated: true });
      expect(found['matches']).toHaveLength(2);
    });

    it('stops at the limit asked for, also inside one file', async () => {
      put('a.txt', 'needle\n'.repeat(5));
      const { ask } = openFiles({ confinement });
      expect(outputOf(await ask('search', [], { query: 'needle', limit: 2 }))).toMatchObject({
        matches: [{ line: 1 }, { line: 2 }],
        truncated: true,
      });
      expect(outputOf(await ask('search', [], { query: 'needle', limit: 5 }))).toMatchObject({ truncated: false });
    });

    it('shows a long line around its hit, and halves no pair', async () => {
      put('long', `${'🙂'.repeat(1_001)}needle${'🙂'.repeat(1_000)}`);
      const [match] = outputOf<{ matches: { text: string }[] }>(
        await openFiles({ confinement }).ask('search', [], { query: 'needle' }),
      ).matches;
      expect(match?.text).toContain('needle');
      expect(match?.text.length).toBeLessThanOrEqual(512);
      expect(match?.text.isWellFormed()).toBe(true);
    });

    it('refuses a start that is not there', async () => {
      put('a', '');
      expect(codeOf(await openFiles({ confinement }).ask('search', ['none'], { query: 'x' }))).toBe('file_not_found');
    });
  });

  describe('writing', () => {
    it('creates a file with the folders above it, text as text and other content as JSON', async () => {
      const { ask } = openFiles({ confinement });
      const created = outputOf(await ask('create', ['new', 'deep', 'a.txt'], { content: 'grüße' }));
      expect(created).toMatchObject({ size: 7 });
      expect(outputOf(await ask('read', ['new', 'deep', 'a.txt']))).toMatchObject({ content: 'grüße', version: created['version'] });
      await ask('create', ['b.json'], { content: { b: [1, null], a: '\ud800' } });
      await ask('create', ['null.json'], { content: null });
      expect(readFileSync(join(folderOf(), 'b.json'), 'utf8')).toBe('{"b":[1,null],"a":"\\ud800"}');
      expect(readFileSync(join(folderOf(), 'null.json'), 'utf8')).toBe('null');
    });

    it('appends to a file that is there, and only if it has the version expected', async () => {
      const { ask } = openFiles({ confinement });
      const { version } = outputOf(await ask('create', ['log'], { content: 'a' }));
      expect(outputOf(await ask('append', ['log'], { content: 'b', expectedVersion: version as string }))).toMatchObject({ size: 2 });
      expect(codeOf(await ask('append', ['log'], { content: 'c', expectedVersion: version as string }))).toBe('version_mismatch');
      expect(outputOf(await ask('append', ['log'], { content: 'd' }))).toMatchObject({ size: 3 });
      expect(readFileSync(join(folderOf(), 'log'), 'utf8')).toBe('abd');
    });

    it('lets exactly one of many that expect the same version append', async () => {
      const { ask } = openFiles({ confinement });
      const { version } = outputOf(await ask('create', ['log'], { content: '' }));
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          ask('append', ['log'], { content: `line ${index}\n`, expectedVersion: version as string }),
        ),
      );
      expect(outcomes.filter((outcome) => outcome.status === 'succeeded')).toHaveLength(1);
      expect(readFileSync(join(folderOf(), 'log'), 'utf8')).toMatch(/^line \d+\n$/);
    });

    it('loses and mixes nothing of many that append at once', async () => {
      const { ask } = openFiles({ confinement });
      await ask('create', ['log'], { content: '' });
      const lines = Array.from({ length: 40 }, (_, index) => `${String(index).repeat(500)}\n`);
      const outcomes = await Promise.all(lines.map((content) => ask('append', ['log'], { content })));
      expect(outcomes.map(codeOf)).toEqual(lines.map(() => 'succeeded'));
      expect(readFileSync(join(folderOf(), 'log'), 'utf8').split('\n').sort()).toEqual([...lines.map((line) => line.trim()), ''].sort());
    });

    it('refuses those beyond the bound of the line for one file, and forgets the line after', async () => {
      const { ask } = openFiles({ confinement });
      await ask('create', ['log'], { content: '' });
      const codes = (await Promise.all(Array.from({ length: 70 }, () => ask('append', ['log'], { content: 'x' })))).map(codeOf);
      expect(codes.filter((code) => code === 'succeeded')).toHaveLength(65);
      expect(codes.filter((code) => code === 'file_busy')).toHaveLength(5);
      expect(codeOf(await ask('append', ['log'], { content: 'x' }))).toBe('succeeded');
    });

    it('lets exactly one of many create the same file, whose content then is whole', async () => {
      const { ask } = openFiles({ confinement });
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
      ['to create with metadata it would lose', 'create', ['new', 'b'], { content: 'x', metadata: {} }, 'metadata_not_supported'],
      ['to append to what is not there', 'append', ['none'], { content: 'x' }, 'file_not_found'],
      ['to append below what is not there', 'append', ['new', 'none'], { content: 'x' }, 'file_not_found'],
      ['to append to a folder', 'append', ['folder'], { content: 'x' }, 'not_a_file'],
      ['to append beyond what a file may hold', 'append', ['a.txt'], { content: 'x'.repeat(99) }, 'file_too_large'],
      ['to append text with half a pair', 'append', ['a.txt'], { content: '\ud800' }, 'content_refused'],
      ['to append with metadata it would lose', 'append', ['a.txt'], { content: 'x', metadata: { by: 'me' } }, 'metadata_not_supported'],
      ['to append to a made-up version', 'append', ['a.txt'], { content: 'x', expectedVersion: 'v1' }, 'version_mismatch'],
    ])('refuses %s and leaves everything as it was', async (_title, verb, path, rest, code) => {
      put('a.txt', 'ab');
      put('folder/x', '');
      const before = snapshot(root);
      expect(codeOf(await openFiles({ confinement, maxFileBytes: 100 }).ask(verb, path, rest))).toBe(code);
      expect(snapshot(root)).toEqual(before);
    });

    it('makes nothing once cancelled, at the start or while waiting in line', async () => {
      put('a.txt', 'ab');
      const { ask } = openFiles({ confinement });
      const before = snapshot(root);
      for (const [verb, rest] of EVERY)
        expect(codeOf(await ask(verb, ['a.txt'], rest, { cancel: AbortSignal.abort() }))).toBe('operation_cancelled');
      expect(snapshot(root)).toEqual(before);
      const controller = new AbortController();
      const first = ask('append', ['a.txt'], { content: 'c' });
      const second = ask('append', ['a.txt'], { content: 'd' }, { cancel: controller.signal });
      controller.abort();
      expect([codeOf(await first), codeOf(await second)]).toEqual(['succeeded', 'operation_cancelled']);
      expect(readFileSync(join(folderOf(), 'a.txt'), 'utf8')).toBe('abc');
    });

    it('honours a cancellation that comes during the walk, before it makes or changes the file', async () => {
      put('a.txt', 'ab');
      const { ask } = openFiles({ confinement });
      const controller = new AbortController();
      const writes = [
        ask('append', ['a.txt'], { content: 'c' }, { cancel: controller.signal }),
        ask('create', ['b.txt'], { content: 'c' }, { cancel: controller.signal }),
      ];
      controller.abort();
      expect((await Promise.all(writes)).map(codeOf)).toEqual(['operation_cancelled', 'operation_cancelled']);
      expect(readdirSync(folderOf())).toEqual(['a.txt']);
      expect(readFileSync(join(folderOf(), 'a.txt'), 'utf8')).toBe('ab');
    });
  });

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
      put('a/a.txt', '');
      put('a.txt', '');
      const before = snapshot(base);
      const { ask, provide } = openFiles({ confinement });
      for (const [verb, rest] of EVERY) {
        await expect(ask(verb, path, rest), verb).rejects.toThrow(ZodError);
        const input = Object.keys(rest).length === 0 ? undefined : rest;
        expect(codeOf(await provide(verb, path, input)), verb).toBe('path_refused');
      }
      expect(snapshot(base)).toEqual(before);
    });

    it.each<[string, readonly string[]]>([
      ['256 bytes', ['x'.repeat(256)]],
      ['100 characters of 3 bytes', ['€'.repeat(100)]],
      ['a lone high surrogate', ['a\ud800']],
      ['a lone low surrogate', ['\udc00']],
      ['a name too long in the middle', ['a', 'x'.repeat(256), 'b']],
    ])('of %s, which the contract takes, is refused by the provider', async (_title, path) => {
      const before = snapshot(base);
      const { ask } = openFiles({ confinement });
      for (const [verb, rest] of EVERY) expect(codeOf(await ask(verb, path, rest)), verb).toBe('path_refused');
      expect(snapshot(base)).toEqual(before);
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
      const before = snapshot(outside);
      const { ask } = openFiles({ confinement });
      expect(codeOf(await ask('create', [name, name], { content: name }))).toBe('succeeded');
      expect(outputOf(await ask('read', [name, name]))).toMatchObject({ content: name });
      expect(outputOf(await ask('list', []))).toMatchObject({ entries: [{ name, type: 'directory' }] });
      expect(readdirSync(folderOf())).toEqual([name]);
      expect(snapshot(outside)).toEqual(before);
    });

    it('of 64 segments is taken', async () => {
      const path = Array.from({ length: 64 }, (_, index) => `${index}`.padEnd(40, 'x'));
      const { ask } = openFiles({ confinement });
      const created = await ask('create', path, { content: 'deep' });
      expect(codeOf(created)).toBe('succeeded');
      expect(outputOf(await ask('search', [], { query: 'deep' }))).toMatchObject({ matches: [{ path }] });
    });
  });

  describe('a link', () => {
    it.each<[string, (folder: string) => void, readonly string[]]>([
      ['first, to a folder outside', (folder) => symlinkSync(outside, join(folder, 'link')), ['link', 'inner', 'secret.txt']],
      ['first, relative', (folder) => symlinkSync('../../../../outside', join(folder, 'link')), ['link', 'secret.txt']],
      ['in the middle', (folder) => symlinkSync(outside, join(folder, 'real', 'link')), ['real', 'link', 'secret.txt']],
      ['last, to a file outside', (folder) => symlinkSync(join(outside, 'secret.txt'), join(folder, 'real', 'link')), ['real', 'link']],
      ['last, to a folder outside', (folder) => symlinkSync(outside, join(folder, 'real', 'link')), ['real', 'link']],
      ['last, to a file not there yet', (folder) => symlinkSync(join(outside, 'new.txt'), join(folder, 'real', 'link')), ['real', 'link']],
      ['last, to a file inside', (folder) => symlinkSync('a.txt', join(folder, 'real', 'link')), ['real', 'link']],
      ['first, to a folder inside', (folder) => symlinkSync('real', join(folder, 'link')), ['link', 'a.txt']],
      ['to itself', (folder) => symlinkSync('link', join(folder, 'link')), ['link', 'a.txt']],
    ])('%s is refused by every tool', async (_title, make, path) => {
      put('real/a.txt', SECRET);
      make(folderOf());
      const before = snapshot(base);
      const { ask } = openFiles({ confinement });
      for (const [verb, rest] of EVERY) {
        const result = await ask(verb, path, rest);
        expect(codeOf(result), verb).toBe('path_not_confined');
        expect(JSON.stringify(result)).not.toContain(base);
      }
      expect(snapshot(base)).toEqual(before);
    });

    it.each([1, 2, 3])('in place of the folder of namespace, kind or owner (%i) is refused too', async (depth) => {
      const tokens = ownerFolder('north', maren);
      mkdirSync(join(root, ...tokens.slice(0, depth - 1)), { recursive: true });
      symlinkSync(outside, join(root, ...tokens.slice(0, depth)));
      const before = snapshot(base);
      const { ask } = openFiles({ confinement });
      for (const [verb, rest] of EVERY) expect(codeOf(await ask(verb, ['secret.txt'], rest)), verb).toBe('path_not_confined');
      for (const verb of ['list', 'stat']) expect(codeOf(await ask(verb, [])), verb).toBe('path_not_confined');
      expect(snapshot(base)).toEqual(before);
    });
  });

  it('refuses a fifo, a socket and a device at once, in every tool and as a folder', async () => {
    execFileSync('mkfifo', [join(folderOf(), 'pipe')]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(folderOf(), 'socket'), resolve));
    try {
      const { ask } = openFiles({ confinement });
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
    const { ask } = openFiles({ confinement });
    const before = snapshot(outside);
    for (const [index, place] of places.entries()) {
      expect(outputOf(await ask('list', [], {}, place))).toMatchObject({ entries: [] });
      expect(codeOf(await ask('create', ['mine.txt'], { content: `of ${index}` }, place))).toBe('succeeded');
    }
    for (const [index, place] of places.entries()) {
      expect(outputOf(await ask('read', ['mine.txt'], {}, place))).toMatchObject({ content: `of ${index}` });
      expect(outputOf(await ask('search', [], { query: 'of' }, place))['matches']).toHaveLength(1);
    }
    expect(readdirSync(base).sort()).toEqual(['outside', 'root']);
    expect(snapshot(outside)).toEqual(before);
  });

  it('refuses an owner or namespace whose id is half a pair, which would share a folder with others', async () => {
    const { provide } = openFiles({ confinement });
    const list = (asking: Asking) => provide('list', [], undefined, asking);
    expect(codeOf(await list({ owner: { kind: 'human', userId: 'a\ud800' } }))).toBe('path_refused');
    expect(codeOf(await list({ namespaceId: '\udfff' }))).toBe('path_refused');
  });

  it.each<[string, string, Json | undefined, string]>([
    ['an action it does not know', 'replace', { content: 'x' }, 'action_not_supported'],
    ['the action that covers every other', '*', undefined, 'action_not_supported'],
    ['input where there is none', 'read', { offset: 1 }, 'invalid_input'],
    ['no input where there is one', 'search', undefined, 'invalid_input'],
    ['an unknown member', 'append', { content: 'x', at: 0 }, 'invalid_input'],
    ['a search without a word', 'search', { query: ' ' }, 'invalid_input'],
  ])('refuses %s from a caller that is no tool', async (_title, action, input, code) => {
    put('a.txt', 'ab');
    const before = snapshot(root);
    expect(codeOf(await openFiles({ confinement }).provide(action, ['a.txt'], input))).toBe(code);
    expect(snapshot(root)).toEqual(before);
  });

  it('keeps no file open', async () => {
    if (process.platform !== 'linux') return;
    put('a/b/c.txt', 'needle');
    symlinkSync(outside, join(folderOf(), 'link'));
    const { ask } = openFiles({ confinement });
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

/** Puts a link to outside in the place of `target` and back, as fast as it can, until told to stop. */
const swapper = (prepare: string, swap: string): string => `
  const { workerData, parentPort } = require('node:worker_threads');
  const fs = require('node:fs');
  const stop = new Int32Array(workerData.stop);
  const { target, parked, outside } = workerData;
  const insist = (step) => {
    for (;;) {
      try {
        return step();
      } catch {
        try { fs.rmSync(target, { recursive: true, force: true }); } catch {}
      }
    }
  };
  ${prepare}
  parentPort.postMessage('swapping');
  while (Atomics.load(stop, 0) === 0) {
    ${swap}
  }
`;

/** A folder cannot be replaced in one step, so it is away for a moment; one that a `create` makes meanwhile is thrown away. */
const FOLDER_SWAPPER = swapper(
  '',
  `fs.renameSync(target, parked);
   insist(() => fs.symlinkSync(outside, target));
   fs.unlinkSync(target);
   insist(() => fs.renameSync(parked, target));`,
);

/** A file is replaced in one step, so at every moment there is the file or the link. */
const FILE_SWAPPER = swapper(
  'fs.linkSync(target, parked);',
  `fs.symlinkSync(outside, target + '~');
   fs.renameSync(target + '~', target);
   fs.linkSync(parked, target + '~');
   fs.renameSync(target + '~', target);`,
);

describe.runIf(process.platform === 'linux')('something swapped for a link while it is used', () => {
  /** Runs rounds of calls against the swapping, until both sides of the race were met: one that was never run proves nothing. */
  const racing = async (
    swapping: string,
    rounds: number,
    target: string,
    elsewhere: string,
    call: (round: number) => Promise<readonly ToolResult[]>,
  ): Promise<void> => {
    const before = snapshot(outside);
    const stop = new SharedArrayBuffer(4);
    const parked = `${folderOf()}.parked`;
    const worker = new Worker(swapping, { eval: true, workerData: { stop, target, parked, outside: elsewhere } });
    const ended = new Promise((resolve) => worker.once('exit', resolve));
    try {
      await new Promise((resolve) => worker.once('message', resolve));
      const seen = new Set<string>();
      const deadline = Date.now() + 15_000;
      for (let round = 0; round < rounds || !(seen.has('path_not_confined') && seen.has('succeeded')); round += 1) {
        expect(Date.now(), `met only ${[...seen].join()}`).toBeLessThan(deadline);
        const results = await call(round);
        expect(JSON.stringify(results)).not.toContain(SECRET);
        for (const result of results) seen.add(codeOf(result));
      }
    } finally {
      Atomics.store(new Int32Array(stop), 0, 1);
      await ended;
    }
    expect(snapshot(outside)).toEqual(before);
  };

  /** What a read gave; a refusal counts as the harmless content. */
  const contentOf = (read: ToolResult): string => (read.status === 'succeeded' ? outputOf<{ content: string }>(read).content : 'inside');

  it('never lets a call through a folder out', async () => {
    put('swapped/inner/secret.txt', 'inside');
    const { ask } = openFiles();
    await racing(FOLDER_SWAPPER, 200, join(folderOf(), 'swapped'), outside, async (round) => {
      const results = await Promise.all([
        ask('read', ['swapped', 'inner', 'secret.txt']),
        ask('list', ['swapped']),
        ask('search', ['swapped'], { query: 'i' }),
        ask('append', ['swapped', 'inner', 'secret.txt'], { content: '!' }),
        ask('create', ['swapped', 'inner', `made-${round}`], { content: '' }),
      ]);
      const [read, listed] = results;
      expect(contentOf(read)).toMatch(/^inside!*$/);
      const names = listed.status === 'succeeded' ? outputOf<{ entries: { name: string }[] }>(listed).entries.map(({ name }) => name) : [];
      expect(['', 'inner']).toContain(names.join());
      return results;
    });
  });

  it('never lets a call on a file out', async () => {
    put('swapped.txt', 'inside');
    const { ask } = openFiles();
    await racing(FILE_SWAPPER, 100, join(folderOf(), 'swapped.txt'), join(outside, 'secret.txt'), async () => {
      const asked = Array.from({ length: 8 }, () => ask('read', ['swapped.txt']));
      const reads = await Promise.all(asked);
      expect(reads.map(contentOf).filter((content) => !/^inside!*$/.test(content))).toEqual([]);
      return [...reads, await ask('append', ['swapped.txt'], { content: '!' }), await ask('search', [], { query: 'secret' })];
    });
  });
});

describe('opening a files provider', () => {
  it.each<[string, Partial<FilesProviderOptions>]>([
    ['a relative root', { root: 'files' }],
    ['a read limit of nothing', { maxReadBytes: 0 }],
    ['a read limit whose answer would not fit a result', { maxReadBytes: 4 * 1024 * 1024 }],
    ['a limit that is not a number', { maxFileBytes: Number.NaN }],
    ['a listing longer than its schema', { maxListEntries: 1_001 }],
    ['a search without files', { search: { filesMax: 0 } }],
  ])('is refused with %s', (_title, options) => {
    expect(() => filesProvider({ root, ...options })).toThrow(ContractError);
  });

  it('knows as many actions as the plane has tools', async () => {
    const { provide } = openFiles();
    for (const { action } of Object.values(FILES_PLANE.rows)) expect(codeOf(await provide(action, []))).not.toBe('action_not_supported');
  });
});

describe('a name on Windows', () => {
  it.each(['C:', 'a:stream', 'CON', 'nul.txt', 'com1', 'a.', 'PROGRA~1', '*', '>', '"', '|'])(
    '%j is refused, because it would be another',
    (name) => expect(isFileName(name, 'win32')).toBe(false),
  );
  it.each(['a.txt', 'console', 'é', '🙂', '..a'])('%j is itself', (name) => expect(isFileName(name, 'win32')).toBe(true));
});
