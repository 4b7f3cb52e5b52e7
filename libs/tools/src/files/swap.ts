import { lstat, open, readFile, rename, unlink } from 'node:fs/promises';
import { Seg, bounded, ok } from '@sharedos/contracts';
import { z } from 'zod';
import type { Folder } from '../confinement/confinement.ts';
import { type ConfinedTree, syncFolder } from './confined-tree.ts';
import { type Refusable, attempt } from './file-refusal.ts';

/** Says that a place is being swapped. There while, and only while, it may be missing. */
export const JOURNAL = 'journal';
/** Where the new form of a place is made, and where the old one goes. */
export const FRESH = 'tmp/fresh';
const OLD = 'tmp/old';

const Journal = z.strictObject({ above: bounded(z.array(z.string()), 1, 128), name: Seg });

const exists = async (path: string): Promise<boolean> => (await attempt(() => lstat(path))).ok;

/**
 * Puts what is in {@link FRESH} in the place of `name`, whatever is there: two renames, since a folder cannot be renamed over
 * another. The journal makes them one: whoever finds it ends what was begun, before reading or writing anything.
 */
export const swapIn = async (tree: ConfinedTree, store: Folder, above: readonly string[], name: string): Promise<Refusable<void>> => {
  const noted = await attempt(async () => {
    const file = await open(`${store.at}/tmp/${JOURNAL}`, 'wx', 0o600);
    try {
      await file.writeFile(JSON.stringify({ above, name }));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(`${store.at}/tmp/${JOURNAL}`, `${store.at}/${JOURNAL}`);
  });
  if (!noted.ok) return noted;
  const kept = await syncFolder(store);
  if (!kept.ok) return kept;
  const moved = await tree.inFolder(above, false, async (parent) => {
    const at = `${parent.at}/${name}`;
    return attempt(async () => {
      if (await exists(at)) await rename(at, `${store.at}/${OLD}`);
    });
  });
  return moved.ok ? finishSwap(tree, store) : moved;
};

/** Ends a swap that was begun, here or by a process that died: forward once the old form is away, and otherwise not at all. */
export const finishSwap = async (tree: ConfinedTree, store: Folder): Promise<Refusable<void>> => {
  const text = await attempt(() => readFile(`${store.at}/${JOURNAL}`, 'utf8'));
  if (!text.ok) return text.error === 'file_not_found' ? ok(undefined) : text;
  const { above, name } = Journal.parse(JSON.parse(text.value));
  const ended = await tree.inFolder(above, true, async (parent) => {
    const fresh = `${store.at}/${FRESH}`;
    const moved = await attempt(async () => {
      if ((await exists(fresh)) && !(await exists(`${parent.at}/${name}`))) await rename(fresh, `${parent.at}/${name}`);
    });
    return moved.ok ? syncFolder(parent) : moved;
  });
  if (!ended.ok) return ended;
  const removed = await attempt(() => unlink(`${store.at}/${JOURNAL}`));
  return removed.ok ? syncFolder(store) : removed;
};
