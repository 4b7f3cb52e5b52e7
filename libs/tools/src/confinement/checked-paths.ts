import { constants } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { err, ok } from '@sharedos/contracts';
import type { Confinement, Folder } from './confinement.ts';
import { plain } from './tree-steps.ts';
import { type Refusable, attempt } from '../files/file-refusal.ts';

// Both are zero where the system lacks them.
const { O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants as Partial<typeof constants>;

const folderAt = (at: string): Folder => ({ at, close: async () => {} });

/** The real path must be the path itself: that refuses links, and the aliases of case-insensitive and 8.3 names as well. */
const confirm = async (folder: Folder): Promise<Refusable<void>> => {
  const real = await attempt(() => realpath(folder.at));
  if (!real.ok) return real;
  return real.value === folder.at ? ok(undefined) : err('path_not_confined');
};

const stats: Confinement['stats'] = async (parent, name) => {
  const at = join(parent.at, name);
  const found = await attempt(() => lstat(at, { bigint: true }));
  const allowed = found.ok ? plain(found.value) : found;
  if (!allowed.ok) return allowed;
  const real = await confirm(folderAt(at));
  return real.ok ? allowed : real;
};

/**
 * Confinement where folders cannot be walked by descriptor: every component is looked at without following it and its real path
 * compared, and an opened file must be the one that was looked at. Between look and use a folder can still be swapped.
 */
export const checkedPaths: Confinement = {
  stats,
  confirm,

  root: async (path) => {
    const real = await attempt(() => realpath(path));
    return real.ok ? ok(folderAt(real.value)) : err('files_unavailable');
  },

  folder: async (parent, name) => {
    const found = await stats(parent, name);
    if (!found.ok) return found.error === 'not_a_file' ? err('not_a_directory') : found;
    return found.value.isDirectory() ? ok(folderAt(join(parent.at, name))) : err('not_a_directory');
  },

  file: async (parent, name, flags) => {
    const found = await stats(parent, name);
    if (!found.ok) return found;
    if (!found.value.isFile()) return err('not_a_file');
    const opened = await attempt(() => open(join(parent.at, name), flags | O_NOFOLLOW | O_NONBLOCK));
    if (!opened.ok) return opened;
    const now = await attempt(() => opened.value.stat({ bigint: true }));
    const same = now.ok && now.value.ino === found.value.ino && now.value.dev === found.value.dev;
    if (same && (await stats(parent, name)).ok) return opened;
    await opened.value.close();
    return err('path_not_confined');
  },
};
