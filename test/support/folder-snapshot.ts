import { lstat, readFile, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256 } from '@sharedos/contracts';

/**
 * Everything below a folder, by path from it: what it is, its size, when it was last changed, and what it holds. Two equal
 * snapshots mean that nothing was made, taken away, renamed, written or even opened for writing in between.
 */
export const folderSnapshot = async (folder: string): Promise<Readonly<Record<string, string>>> => {
  const found: Record<string, string> = {};
  for (const path of (await readdir(folder, { recursive: true })).sort()) {
    const at = join(folder, path);
    const { mtimeMs, size, mode } = await lstat(at);
    const kind = mode & 0o170000;
    const content = kind === 0o120000 ? await readlink(at) : kind === 0o100000 ? sha256((await readFile(at)).toString('base64')) : '';
    // A folder's size is the file system's own business.
    found[path] = [mode.toString(8), kind === 0o100000 ? size : '', mtimeMs, content].join(' ');
  }
  return found;
};

/** Paths that two snapshots do not agree on, sorted. */
export const changedPaths = (before: Readonly<Record<string, string>>, after: Readonly<Record<string, string>>): readonly string[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((path) => before[path] !== after[path]).sort();
