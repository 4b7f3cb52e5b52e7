import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { err, ok } from '@sharedos/contracts';
import { type Refusable, attempt, attemptSync } from '../files/file-refusal.ts';
import type { Confinement, Folder } from './confinement.ts';
import { O_PATH, type TreeFolder, byDescriptor, plain } from './tree-steps.ts';

const { O_NOFOLLOW } = constants;

const waitable = (folder: Refusable<TreeFolder>): Refusable<Folder> =>
  folder.ok ? ok({ at: folder.value.at, close: async () => folder.value.close() }) : folder;

/**
 * Confinement by folder descriptors: race-free, because no step is ever taken from a path that someone could change.
 *
 * To name an inode is a look-up and takes a few microseconds, where the thread pool takes a hundred to be asked: so steps are taken
 * at once, and what reads a disk is waited for.
 */
export const descriptorPaths: Confinement = {
  root: async (path) => waitable(byDescriptor.root(path)),
  folder: async (parent, name) => waitable(byDescriptor.folder(parent, name)),

  stats: async (parent, name) => {
    const found = await attempt(() => lstat(`${parent.at}/${name}`, { bigint: true }));
    return found.ok ? plain(found.value) : found;
  },

  file: async (parent, name, flags) => {
    const named = attemptSync(() => openSync(`${parent.at}/${name}`, O_PATH | O_NOFOLLOW));
    if (!named.ok) return named;
    try {
      const allowed = plain(fstatSync(named.value, { bigint: true }));
      if (!allowed.ok) return allowed;
      if (!allowed.value.isFile()) return err('not_a_file');
      return await attempt(() => open(`/proc/self/fd/${named.value}`, flags));
    } finally {
      closeSync(named.value);
    }
  },

  confirm: async () => ok(undefined),
};
