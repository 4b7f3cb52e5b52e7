import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { err, ok } from '@sharedos/contracts';
import type { GitFolder } from './git-folder.ts';
import { type GitPlaces, type GitRun, runGit } from './git-process.ts';
import type { RepoResult } from './repo-refusal.ts';
import { blobHash } from './work-tree.ts';

/** All configuration that git ever gets. */
const CONFIG = `[core]
\trepositoryformatversion = 0
\tbare = false
\tfileMode = true
\tfsmonitor = false
\tuntrackedCache = false
\thooksPath = /dev/null
\tfsync = none
[protocol]
\tallow = never
[gc]
\tauto = 0
[maintenance]
\tauto = false
`;
/** Stronger than any attribute file: nothing is a matter of filters, drivers or line ends. */
const ATTRIBUTES = '* -text -filter !diff -merge -ident -working-tree-encoding\n';

/** A folder for one operation, in which git works on a copy of the index. */
export class Workspace {
  readonly #at: string;
  readonly #places: GitPlaces;
  readonly #cancel: AbortSignal;
  /** The index as it was read, or `undefined` where there is none yet. */
  readonly index: Buffer | undefined;

  private constructor(at: string, places: GitPlaces, cancel: AbortSignal, index: Buffer | undefined) {
    this.#at = at;
    this.#places = places;
    this.#cancel = cancel;
    this.index = index;
  }

  /** Makes one for a repository, and removes it when `use` is done. */
  static async with<T>(git: GitFolder, cancel: AbortSignal, use: (workspace: Workspace) => Promise<RepoResult<T>>): Promise<RepoResult<T>> {
    const index = await git.read(['index']);
    if (!index.ok && index.error !== 'file_not_found') return index;
    const copied = new Map<string, Buffer>();
    for (const [from, to] of [
      ['shallow', 'git/shallow'],
      ['info/exclude', 'git/info/exclude'],
    ] as const) {
      const file = await git.read(from.split('/'), 1024 * 1024);
      if (file.ok) copied.set(to, file.value);
    }
    const at = await mkdtemp(join(tmpdir(), 'sharedos-git-'));
    try {
      for (const folder of ['git/refs', 'git/info', 'objects', 'work']) await mkdir(join(at, folder), { recursive: true });
      await writeFile(join(at, 'git/HEAD'), 'ref: refs/heads/none\n');
      await writeFile(join(at, 'git/config'), CONFIG);
      await writeFile(join(at, 'git/info/attributes'), ATTRIBUTES);
      for (const [name, bytes] of copied) await writeFile(join(at, name), bytes);
      if (index.ok) await writeFile(join(at, 'index'), index.value);
      return await git.withObjects((objects) => {
        const places = {
          gitFolder: join(at, 'git'),
          workTree: join(at, 'work'),
          index: join(at, 'index'),
          newObjects: join(at, 'objects'),
          objects,
        };
        return use(new Workspace(at, places, cancel, index.ok ? index.value : undefined));
      });
    } finally {
      await rm(at, { recursive: true, force: true });
    }
  }

  run(args: readonly string[], run?: GitRun): Promise<RepoResult<Buffer>> {
    return runGit(this.#places, args, this.#cancel, run);
  }

  async text(args: readonly string[], run?: GitRun): Promise<RepoResult<string>> {
    const output = await this.run(args, run);
    return output.ok ? ok(output.value.toString('utf8')) : output;
  }

  /** Puts a file into the working tree of ours, for git to read it there. */
  async place(path: string, text: string): Promise<void> {
    await mkdir(dirname(join(this.#at, 'work', path)), { recursive: true });
    await writeFile(join(this.#at, 'work', path), text);
  }

  /** Writes a blob as Git keeps it, byte for byte. */
  async addBlob(content: Buffer): Promise<string> {
    const hash = blobHash(content);
    const folder = join(this.#at, 'objects', hash.slice(0, 2));
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, hash.slice(2)), deflateSync(Buffer.concat([Buffer.from(`blob ${content.length}\0`), content])));
    return hash;
  }

  /** Changes the copy of the index: a mode and a blob for each path, or no mode for one that goes. */
  async updateIndex(
    entries: readonly { readonly path: string; readonly mode?: string; readonly hash?: string }[],
  ): Promise<RepoResult<unknown>> {
    const input = entries.map(({ path, mode = '0', hash = '0'.repeat(40) }) => `${mode} ${hash}\t${path}\0`).join('');
    return this.run(['update-index', '--replace', '-z', '--index-info'], { input });
  }

  async writeTree(): Promise<RepoResult<string>> {
    const tree = await this.text(['write-tree']);
    // Only an index that is in the middle of a merge makes no tree.
    if (!tree.ok) return err(tree.error === 'git_failed' ? 'repo_conflicted' : tree.error);
    return ok(tree.value.trim());
  }

  readIndex(): Promise<Buffer> {
    return readFile(this.#places.index);
  }

  get newObjects(): string {
    return this.#places.newObjects;
  }
}
