import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Address, type Json, type JsonObj, type ResourceResult, type ToolResult, instantOf } from '@sharedos/contracts';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'vitest';
import type { ConfinementKind } from '../confinement/confinement.ts';
import { ownerFolder } from '../confinement/owner-folder.ts';
import { AT, type Asking, contextOf, maren } from './files-context.fixture.ts';
import { FILE_REFUSALS } from './file-refusal.ts';
import { type FilesProviderOptions, filesProvider } from './files-provider.ts';
import { filesTools } from './files-tools.ts';

export { AT, type Asking, contextOf, maren } from './files-context.fixture.ts';
export const SECRET = 'the secret outside';

const ajv = new Ajv2020({ formats: { 'date-time': (text: string) => instantOf(text) !== undefined } });

/** A folder of its own for one test: the provider's root, and beside it what nobody was granted. */
export class FilesWorld {
  readonly base = realpathSync(mkdtempSync(join(tmpdir(), 'files-')));
  readonly root = join(this.base, 'root');
  readonly outside = join(this.base, 'outside');

  constructor() {
    mkdirSync(this.root);
    mkdirSync(join(this.outside, 'inner'), { recursive: true });
    writeFileSync(join(this.outside, 'secret.txt'), SECRET);
    writeFileSync(join(this.outside, 'inner', 'secret.txt'), SECRET);
  }

  remove(): void {
    rmSync(this.base, { recursive: true, force: true });
  }

  /** The provider asked as the kernel asks it, through the tools; every success must fit the output schema that was published. */
  open(options: Partial<FilesProviderOptions> = {}) {
    const provider = filesProvider({ root: this.root, now: () => Date.parse(AT), ...options });
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
  }

  /** The folder on disk of an owner, made if it is not there. */
  folder(owner: Address = maren, namespaceId = 'north'): string {
    const folder = join(this.root, ...ownerFolder(namespaceId, owner));
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  put(path: string, content: string | Uint8Array): void {
    mkdirSync(dirname(join(this.folder(), path)), { recursive: true });
    writeFileSync(join(this.folder(), path), content);
  }

  /** All there is to see of what is not the store's own: names, kinds, inodes, times, link targets and contents. */
  seen(folder: string = this.base): readonly string[] {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => !name.split('/').includes('.sharedos'))
      .sort()
      .map((name) => {
        const at = join(folder, name);
        const stats = lstatSync(at, { bigint: true });
        const content = stats.isFile()
          ? createHash('sha256').update(readFileSync(at)).digest('hex')
          : stats.isSymbolicLink()
            ? readlinkSync(at)
            : '';
        // The store's own folder is made beside the others, so the time of the root may change.
        const times = at === this.root ? [] : [stats.nlink, stats.mtimeNs, stats.ctimeNs];
        return [name, stats.mode, stats.ino, ...times, content].join(' ');
      });
  }
}

export const codeOf = (result: ToolResult | ResourceResult): string => (result.status === 'succeeded' ? 'succeeded' : result.error.code);
export const outputOf = <T = Record<string, Json>>(result: ToolResult): T => {
  if (result.status !== 'succeeded') throw new Error(`refused: ${result.error.code}`);
  return result.output as T;
};

export const KINDS: readonly ConfinementKind[] = process.platform === 'linux' ? ['descriptors', 'checked-paths'] : ['checked-paths'];

/** An id that no snapshot has. */
export const NO_SNAPSHOT = '00000000-0000-4000-8000-000000000000';

/** Every tool, as asked about one path. */
export const EVERY: readonly (readonly [string, JsonObj])[] = [
  ['list', {}],
  ['stat', {}],
  ['read', {}],
  ['search', { query: 'secret' }],
  ['grep', { pattern: 'secret' }],
  ['create', { content: 'x' }],
  ['replace', { content: 'x' }],
  ['append', { content: 'x' }],
  ['delete', { recursive: true }],
  ['snapshot.create', {}],
];
