import { type BigIntStats, closeSync, constants, fstatSync, lstatSync, openSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { err, ok } from '@sharedos/contracts';
import { type FileRefusal, type Refusable, attemptSync } from '../files/file-refusal.ts';
import type { ConfinementKind } from './confinement.ts';

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** Linux's O_PATH on every architecture Node runs on: names an inode without opening it, so a device or fifo never notices. */
export const O_PATH = 0o10000000;

/** An open folder; `at` as of `Folder`. */
export interface TreeFolder {
  readonly at: string;
  readonly close: () => void;
}

/** An open file, to be closed by whoever asked for it. */
export interface TreeFile {
  readonly fd: number;
  readonly stats: BigIntStats;
}

/**
 * Passes a file or a folder and refuses the rest. A file with a second name is a link too: the other name may lie anywhere on the
 * disk, and whoever reads or changes one reads or changes the other.
 */
export const plain = (found: BigIntStats): Refusable<BigIntStats> => {
  if (found.isSymbolicLink() || (found.isFile() && found.nlink > 1n)) return err('path_not_confined');
  return found.isFile() || found.isDirectory() ? ok(found) : err('not_a_file');
};

/**
 * The same steps as `Confinement`, without waiting: for the thread that walks whole trees, where a promise for each step would cost
 * more than the step.
 */
export interface TreeSteps {
  root(path: string): Refusable<TreeFolder>;
  folder(parent: Pick<TreeFolder, 'at'>, name: string): Refusable<TreeFolder>;
  stats(parent: Pick<TreeFolder, 'at'>, name: string): Refusable<BigIntStats>;
  /** Opens a regular file for reading. */
  file(parent: TreeFolder, name: string): Refusable<TreeFile>;
}

export const treeSteps = (kind: ConfinementKind): TreeSteps => (kind === 'descriptors' ? byDescriptor : byCheckedPath);

/** The kernel says "not a directory" of a link too; a second look only chooses the code of a refusal already made. */
const whyNoFolder = (found: Refusable<BigIntStats>, error: FileRefusal): FileRefusal => {
  if (error !== 'not_a_directory') return error;
  return found.ok || found.error === 'not_a_file' ? 'not_a_directory' : found.error;
};

const opened = (fd: number): TreeFolder => ({ at: `/proc/self/fd/${fd}`, close: () => closeSync(fd) });

const statsAt = (parent: Pick<TreeFolder, 'at'>, name: string): Refusable<BigIntStats> => {
  const found = attemptSync(() => lstatSync(`${parent.at}/${name}`, { bigint: true }));
  return found.ok ? plain(found.value) : found;
};

/** `/proc/self/fd/N` is the very inode behind the descriptor, wherever its name has gone since; one name below it is openat(2). */
export const byDescriptor: TreeSteps = {
  root: (path) => {
    const fd = attemptSync(() => openSync(path, O_PATH | O_DIRECTORY));
    return fd.ok ? ok(opened(fd.value)) : err('files_unavailable');
  },
  stats: statsAt,
  folder: (parent, name) => {
    const fd = attemptSync(() => openSync(`${parent.at}/${name}`, O_PATH | O_DIRECTORY | O_NOFOLLOW));
    return fd.ok ? ok(opened(fd.value)) : err(whyNoFolder(statsAt(parent, name), fd.error));
  },
  file: (parent, name) => {
    const named = attemptSync(() => openSync(`${parent.at}/${name}`, O_PATH | O_NOFOLLOW));
    if (!named.ok) return named;
    try {
      const stats = plain(fstatSync(named.value, { bigint: true }));
      if (!stats.ok) return stats;
      if (!stats.value.isFile()) return err('not_a_file');
      const fd = attemptSync(() => openSync(`/proc/self/fd/${named.value}`, O_RDONLY));
      return fd.ok ? ok({ fd: fd.value, stats: stats.value }) : fd;
    } finally {
      closeSync(named.value);
    }
  },
};

const inPlace = (at: string): TreeFolder => ({ at, close: () => {} });

/** Also confirms that the real path is the path itself. */
const checkedStats: TreeSteps['stats'] = (parent, name) => {
  const found = statsAt(parent, name);
  if (!found.ok) return found;
  const at = join(parent.at, name);
  const real = attemptSync(() => realpathSync(at));
  if (!real.ok) return real;
  return real.value === at ? found : err('path_not_confined');
};

const byCheckedPath: TreeSteps = {
  root: (path) => {
    const real = attemptSync(() => realpathSync(path));
    return real.ok ? ok(inPlace(real.value)) : err('files_unavailable');
  },
  stats: checkedStats,
  folder: (parent, name) => {
    const found = checkedStats(parent, name);
    if (!found.ok) return err(found.error === 'not_a_file' ? 'not_a_directory' : found.error);
    return found.value.isDirectory() ? ok(inPlace(join(parent.at, name))) : err('not_a_directory');
  },
  file: (parent, name) => {
    const before = checkedStats(parent, name);
    if (!before.ok) return before;
    if (!before.value.isFile()) return err('not_a_file');
    const fd = attemptSync(() => openSync(join(parent.at, name), O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0)));
    if (!fd.ok) return fd;
    const stats = fstatSync(fd.value, { bigint: true });
    if (stats.ino === before.value.ino && stats.dev === before.value.dev && checkedStats(parent, name).ok)
      return ok({ fd: fd.value, stats });
    closeSync(fd.value);
    return err('path_not_confined');
  },
};

/** Walks down by one name after the other and hands over the last folder, open. */
export const walkTo = (steps: TreeSteps, root: string, names: readonly string[]): Refusable<TreeFolder> => {
  let folder = steps.root(root);
  for (const name of names) {
    if (!folder.ok) return folder;
    const next = steps.folder(folder.value, name);
    folder.value.close();
    folder = next;
  }
  return folder;
};
