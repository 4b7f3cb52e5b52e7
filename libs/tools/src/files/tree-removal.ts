import { type Dirent, lstatSync, openSync, readdirSync, closeSync, constants, rmdirSync, unlinkSync } from 'node:fs';
import { err, ok } from '@sharedos/contracts';
import type { TreeFolder, TreeSteps } from '../confinement/tree-steps.ts';
import { isGitFolder } from './file-name.ts';
import { type Refusable, attemptSync } from './file-refusal.ts';

/** What a tree holds. */
export interface TreeCount {
  readonly files: number;
  readonly folders: number;
}

const ENTRIES_MAX = 1_000_000;
const BYTES = 'buffer' as BufferEncoding;

/**
 * Counts a tree, and refuses one in which a repository lies. What is no file of a path's counts as a file.
 */
export const countBelow = (steps: TreeSteps, parent: TreeFolder, name: string): Refusable<TreeCount> => {
  const count = { files: 0, folders: 0 };
  const visit = (above: TreeFolder, at: string): Refusable<void> => {
    const folder = steps.folder(above, at);
    if (!folder.ok) return folder;
    try {
      count.folders += 1;
      const entries = attemptSync(() => readdirSync(folder.value.at, { withFileTypes: true }));
      if (!entries.ok) return entries;
      for (const entry of entries.value) {
        if (isGitFolder(entry.name)) return err('holds_repository');
        if (count.files + count.folders > ENTRIES_MAX) return err('file_too_large');
        if (!entry.isDirectory()) count.files += 1;
        else {
          const below = visit(folder.value, entry.name);
          // A name that is not UTF-8 cannot be followed here; it goes with its folder.
          if (!below.ok && below.error !== 'file_not_found') return below;
        }
      }
      return ok(undefined);
    } finally {
      folder.value.close();
    }
  };
  const done = visit(parent, name);
  return done.ok ? ok(count) : done;
};

/**
 * Removes all of a tree that was moved out of sight, links and special files as what they are. By descriptors where the system
 * has them: somebody who still holds a folder of it open could put a link in the place of one just looked at.
 */
export const removeBelow = (parent: TreeFolder, name: string | Uint8Array): void => {
  const at = Buffer.concat([Buffer.from(`${parent.at}/`), Buffer.from(name)]);
  if (!lstatSync(at).isDirectory()) return unlinkSync(at);
  const fd = openSync(at, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const folder = { at: process.platform === 'linux' ? `/proc/self/fd/${fd}` : at.toString(), close: () => {} };
    for (const entry of readdirSync(folder.at, { withFileTypes: true, encoding: BYTES }) as unknown as Dirent<Buffer>[])
      removeBelow(folder, entry.name);
  } finally {
    closeSync(fd);
  }
  rmdirSync(at);
};
