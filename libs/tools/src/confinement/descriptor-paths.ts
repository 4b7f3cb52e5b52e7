import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { err, ok } from '@sharedos/contracts';
import type { Confinement, Folder } from './confinement.ts';
import { type Refusable, attempt } from '../files/file-refusal.ts';

/** Linux's O_PATH on every architecture Node runs on: names an inode without opening it, so a device or fifo never notices. */
export const O_PATH = 0o10000000;
const { O_DIRECTORY, O_NOFOLLOW } = constants;

/** `/proc/self/fd/N` is the very inode behind the descriptor, wherever its name has gone since; one name below it is openat(2). */
const inode = (handle: FileHandle): string => `/proc/self/fd/${handle.fd}`;

const folderOf = (handle: FileHandle): Folder => ({ at: inode(handle), close: () => handle.close() });

const stats = async (parent: Folder, name: string): Promise<Refusable<BigIntStats>> => {
  const found = await attempt(() => lstat(`${parent.at}/${name}`, { bigint: true }));
  return found.ok ? plain(found.value) : found;
};

/**
 * Passes a file or a folder and refuses the rest. A file with a second name is a link too: the other name may lie anywhere on the
 * disk, and whoever reads or changes one reads or changes the other.
 */
export const plain = (found: BigIntStats): Refusable<BigIntStats> => {
  if (found.isSymbolicLink() || (found.isFile() && found.nlink > 1n)) return err('path_not_confined');
  return found.isFile() || found.isDirectory() ? ok(found) : err('not_a_file');
};

/** Confinement by folder descriptors: race-free, because no step is ever taken from a path that someone could change. */
export const descriptorPaths: Confinement = {
  stats,

  root: async (path) => {
    const opened = await attempt(() => open(path, O_PATH | O_DIRECTORY));
    return opened.ok ? ok(folderOf(opened.value)) : err('files_unavailable');
  },

  folder: async (parent, name) => {
    const opened = await attempt(() => open(`${parent.at}/${name}`, O_PATH | O_DIRECTORY | O_NOFOLLOW));
    if (opened.ok) return ok(folderOf(opened.value));
    if (opened.error !== 'not_a_directory') return opened;
    // The kernel says "not a directory" of a link too; the second look only chooses the code of a refusal already made.
    const found = await stats(parent, name);
    return err(found.ok || found.error === 'not_a_file' ? 'not_a_directory' : found.error);
  },

  file: async (parent, name, flags) => {
    const named = await attempt(() => open(`${parent.at}/${name}`, O_PATH | O_NOFOLLOW));
    if (!named.ok) return named;
    try {
      const found = await attempt(() => named.value.stat({ bigint: true }));
      const allowed = found.ok ? plain(found.value) : found;
      if (!allowed.ok) return allowed;
      if (!allowed.value.isFile()) return err('not_a_file');
      return await attempt(() => open(inode(named.value), flags));
    } finally {
      await named.value.close();
    }
  },

  confirm: async () => ok(undefined),
};
