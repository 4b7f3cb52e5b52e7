import { lstat, readFile, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256 } from '@sharedos/contracts';

/** Each path of a folder, from it, with what is there. */
export type FolderSnapshot = Readonly<Record<string, string>>;

/**
 * Everything below a folder: what it is, when it was last changed, and what it holds. Two equal snapshots mean that nothing was
 * made, taken away, renamed or written in between. Links are looked at and never followed: Node's own recursive listing follows
 * them, and would read the host. What the store of files keeps for itself, its locks among it, is no part of it.
 */
export const folderSnapshot = async (folder: string): Promise<FolderSnapshot> => {
  const found: Record<string, string> = {};
  const waiting = [''];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    for (const entry of await readdir(join(folder, at), { withFileTypes: true })) {
      if (at === '' && entry.name === '.sharedos') continue;
      const path = join(at, entry.name);
      const { mtimeMs, mode } = await lstat(join(folder, path));
      if (entry.isDirectory()) waiting.push(path);
      found[path] = [mode.toString(8), mtimeMs, await contentOf(join(folder, path), entry)].join(' ');
    }
  }
  return found;
};

const contentOf = async (path: string, entry: { isFile(): boolean; isSymbolicLink(): boolean }): Promise<string> => {
  if (entry.isSymbolicLink()) return readlink(path);
  return entry.isFile() ? sha256((await readFile(path)).toString('base64')) : '';
};

/** Paths that two snapshots do not agree on, sorted. */
export const changedPaths = (before: FolderSnapshot, after: FolderSnapshot): readonly string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((path) => before[path] !== after[path]).sort();
