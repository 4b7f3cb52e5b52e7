import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { open, readFile, readdir, rename, unlink } from 'node:fs/promises';
import { err, ok } from '@sharedos/contracts';
import type { Folder } from '../confinement/confinement.ts';
import { type ConfinedTree, syncFolder } from '../files/confined-tree.ts';
import { readBytes } from '../files/file-content.ts';
import { attempt } from '../files/file-refusal.ts';
import type { RepoResult } from './repo-refusal.ts';

export interface Head {
  /** Full name of the branch that is checked out, or `undefined` for a commit alone. */
  readonly ref: string | undefined;
  /** `undefined` before the first commit. */
  readonly commit: string | undefined;
}

const COMMIT = /^[0-9a-f]{40}$/;
// oxlint-disable-next-line no-control-regex -- a name of Git's holds none of these
const BRANCH = /^refs\/heads\/[^\u0000-\u0020~^:?*[\\\u007f]+$/;
const SMALL = 4 * 1024;
const LARGE = 64 * 1024 * 1024;
/** What stands in the folder while a merge, pick, revert or rebase is half done. */
const IN_BETWEEN = ['MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'rebase-merge', 'rebase-apply'];

/**
 * The `.git` of a repository, read and changed file by file from confined folders, links refused: what Git keeps there is simple, and
 * whatever else stands there (configuration, hooks, attributes) is never looked at. Changes follow Git's own locks, so other
 * programs may work in the same repository.
 */
export class GitFolder {
  readonly #tree: ConfinedTree;
  readonly #at: readonly string[];

  /** @param at The names that lead to the repository from the provider's root. */
  constructor(tree: ConfinedTree, at: readonly string[]) {
    this.#tree = tree;
    this.#at = [...at, '.git'];
  }

  /** Refuses what is no repository, or one that keeps its parts elsewhere: a `.git` file, a linked working tree, borrowed objects. */
  async check(): Promise<RepoResult<void>> {
    const found = await this.#tree.inFolder(this.#at.slice(0, -1), false, (parent) => this.#tree.confinement.stats(parent, '.git'));
    if (!found.ok) return err(found.error === 'file_not_found' ? 'repo_not_found' : found.error);
    if (!found.value.isDirectory()) return err('repo_not_supported');
    for (const elsewhere of [['commondir'], ['objects', 'info', 'alternates'], ['objects', 'info', 'http-alternates']]) {
      if ((await this.#stats(elsewhere)).ok) return err('repo_not_supported');
    }
    return ok(undefined);
  }

  async isInBetween(): Promise<boolean> {
    for (const name of IN_BETWEEN) if ((await this.#stats([name])).ok) return true;
    return false;
  }

  async head(): Promise<RepoResult<Head>> {
    const text = await this.read(['HEAD'], SMALL);
    if (!text.ok) return text.error === 'file_not_found' ? err('repo_not_supported') : text;
    const head = text.value.toString('utf8').trim();
    if (COMMIT.test(head)) return ok({ ref: undefined, commit: head });
    const ref = head.startsWith('ref: ') ? head.slice(5).trim() : '';
    if (!BRANCH.test(ref) || !ref.split('/').every(isRefName)) return err('repo_not_supported');
    const commit = await this.#commitOf(ref);
    return commit.ok ? ok({ ref, commit: commit.value }) : commit;
  }

  async #commitOf(ref: string): Promise<RepoResult<string | undefined>> {
    const loose = await this.read(ref.split('/'), SMALL);
    if (loose.ok) {
      const commit = loose.value.toString('utf8').trim();
      return COMMIT.test(commit) ? ok(commit) : err('repo_not_supported');
    }
    if (loose.error !== 'file_not_found' && loose.error !== 'not_a_directory') return loose;
    const packed = await this.read(['packed-refs'], LARGE);
    if (!packed.ok) return packed.error === 'file_not_found' ? ok(undefined) : packed;
    const line = packed.value
      .toString('utf8')
      .split('\n')
      .find((each) => each.slice(41) === ref);
    return ok(line !== undefined && COMMIT.test(line.slice(0, 40)) ? line.slice(0, 40) : undefined);
  }

  /** One file of the folder, or `file_not_found`. */
  async read(names: readonly string[], bytesMax = LARGE): Promise<RepoResult<Buffer>> {
    return this.#tree.inFolder([...this.#at, ...names.slice(0, -1)], false, (folder) =>
      this.#tree.withFile(folder, names.at(-1) ?? '', async (file, stats) =>
        stats.size > BigInt(bytesMax) ? err('file_too_large') : attempt(() => readBytes(file, Number(stats.size))),
      ),
    );
  }

  /** Hands over the folder of objects, open, as a path that another process of this host can use meanwhile. */
  withObjects<T>(use: (at: string) => Promise<RepoResult<T>>): Promise<RepoResult<T>> {
    return this.#within(['objects'], false, (folder) => use(folder.at.replace('/proc/self/', `/proc/${process.pid}/`)));
  }

  /** Adds loose objects that were made in a folder elsewhere. One that is there already is the same, by its name. */
  async addObjects(from: string): Promise<RepoResult<void>> {
    for (const fan of (await readdir(from)).filter((name) => /^[0-9a-f]{2}$/.test(name))) {
      const added = await this.#within(['objects', fan], true, async (folder) => {
        for (const name of await readdir(`${from}/${fan}`)) {
          const there = await this.#tree.confinement.stats(folder, name);
          if (there.ok) continue;
          const bytes = await readFile(`${from}/${fan}/${name}`);
          const written = await this.#replace(folder, name, `tmp_obj_${randomUUID()}`, bytes, 0o444);
          if (!written.ok) return written;
        }
        return syncFolder(folder);
      });
      if (!added.ok) return added;
    }
    return ok(undefined);
  }

  /** Replaces the index if it still is what it was read as. */
  replaceIndex(before: Buffer | undefined, after: Buffer): Promise<RepoResult<void>> {
    return this.#within([], false, (folder) =>
      this.#locked(folder, 'index', after, async () => {
        const now = await this.read(['index']);
        if (!now.ok) return now.error === 'file_not_found' ? ok(before === undefined) : now;
        return ok(before !== undefined && now.value.equals(before));
      }),
    );
  }

  /** Moves what is checked out from one commit to the next, if it still is there. */
  moveHead(head: Head, commit: string): Promise<RepoResult<void>> {
    const names = head.ref === undefined ? ['HEAD'] : head.ref.split('/');
    return this.#within(names.slice(0, -1), true, (folder) =>
      this.#locked(folder, names.at(-1) ?? '', Buffer.from(`${commit}\n`), async () => {
        const now = await this.head();
        return now.ok ? ok(now.value.ref === head.ref && now.value.commit === head.commit) : now;
      }),
    );
  }

  /** Git's own way: whoever can make `<name>.lock` may write, and what is in it then becomes the file. */
  async #locked(folder: Folder, name: string, bytes: Buffer, isUnchanged: () => Promise<RepoResult<boolean>>): Promise<RepoResult<void>> {
    const lock = `${folder.at}/${name}.lock`;
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0);
    const file = await attempt(() => open(lock, flags, 0o644));
    if (!file.ok) return err(file.error === 'file_exists' ? 'repo_busy' : file.error);
    try {
      const unchanged = await isUnchanged();
      if (!unchanged.ok || !unchanged.value) return unchanged.ok ? err('repo_busy') : unchanged;
      const written = await attempt(async () => {
        await file.value.writeFile(bytes);
        await file.value.sync();
        await rename(lock, `${folder.at}/${name}`);
      });
      return written.ok ? await syncFolder(folder) : written;
    } finally {
      await file.value.close();
      await attempt(() => unlink(lock));
    }
  }

  async #replace(folder: Folder, name: string, made: string, bytes: Buffer, mode: number): Promise<RepoResult<void>> {
    return attempt(async () => {
      const file = await open(`${folder.at}/${made}`, 'wx', mode);
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(`${folder.at}/${made}`, `${folder.at}/${name}`);
    });
  }

  /** The steps are those of files; what they refuse is refused here by the same codes. */
  #within<T>(names: readonly string[], make: boolean, use: (folder: Folder) => Promise<RepoResult<T>>): Promise<RepoResult<T>> {
    return this.#tree.inFolder([...this.#at, ...names], make, use as never);
  }

  #stats(names: readonly string[]): Promise<RepoResult<unknown>> {
    return this.#within(names.slice(0, -1), false, (folder) => this.#tree.confinement.stats(folder, names.at(-1) ?? ''));
  }
}

const isRefName = (name: string): boolean => name !== '' && !name.startsWith('.') && !name.endsWith('.lock') && !name.includes('..');
