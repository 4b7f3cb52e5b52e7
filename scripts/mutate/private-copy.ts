import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '..', '..');
const run = promisify(execFile);

/** Folders of the tree that a run of specs reads. */
const COPIED = /^(?:libs|services|test|scripts|schemas|package\.json$|tsconfig|vitest\.config)/;

/**
 * A copy of the tree as it is now, edits and all, in a folder of its own.
 *
 * Dependencies are linked one by one and the workspace's own packages to the copy: with `node_modules` linked as a whole, every
 * import of `@sharedos/…` would lead back to the checkout, and the copy could be changed without anybody noticing.
 */
export const privateCopy = async (): Promise<{ readonly folder: string; remove(): Promise<void> }> => {
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-mutate-'));
  const { stdout } = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root, maxBuffer: 2 ** 26 });
  for (const file of stdout.split('\0').filter((name) => COPIED.test(name))) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    // A file that is listed and gone was deleted in the checkout, and so it is here.
    await cp(join(root, file), join(folder, file)).catch((problem: NodeJS.ErrnoException) => {
      if (problem.code !== 'ENOENT') throw problem;
    });
  }
  await linkDependencies(folder);
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
};

const linkDependencies = async (folder: string): Promise<void> => {
  const [from, to] = [join(root, 'node_modules'), join(folder, 'node_modules')];
  await mkdir(join(to, '@sharedos'), { recursive: true });
  for (const name of await readdir(from)) {
    if (name !== '@sharedos' && !name.startsWith('.')) await symlink(join(from, name), join(to, name));
  }
  for (const group of ['libs', 'services']) {
    for (const name of await readdir(join(folder, group))) await symlink(join(folder, group, name), join(to, '@sharedos', name));
  }
};
