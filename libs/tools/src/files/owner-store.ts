import { lstat, mkdir, readdir } from 'node:fs/promises';
import { err, ok } from '@sharedos/contracts';
import type { Folder } from '../confinement/confinement.ts';
import type { ConfinedTree } from './confined-tree.ts';
import { FileLocks } from './file-locks.ts';
import { type Refusable, attempt } from './file-refusal.ts';
import type { Place } from './place.ts';
import { JOURNAL, finishSwap } from './swap.ts';
import { lockStore } from './store-lock.ts';
import type { TreeJobs } from './tree-jobs.ts';

const LOCK = 'lock';

/**
 * One writer at a time for all files of one owner, over every process that has the folder. One lock and not one for each file,
 * because a snapshot, a restore and the removal of a folder are about many files at once; what is done under it is short, and
 * different owners never meet.
 */
export class OwnerStores {
  readonly #tree: ConfinedTree;
  readonly #root: string;
  readonly #jobs: TreeJobs;
  readonly #waiting = new FileLocks();

  constructor(tree: ConfinedTree, root: string, jobs: TreeJobs) {
    this.#tree = tree;
    this.#root = root;
    this.#jobs = jobs;
  }

  /** Runs `write` as the only writer, after putting right what a writer that died here left behind. */
  async locked<T>(place: Place, cancel: AbortSignal, write: (store: Folder) => Promise<Refusable<T>>): Promise<Refusable<T>> {
    const key = place.store.join('/');
    // Those of this process wait in order, and only the first of them asks the system.
    const turn = await this.#waiting.acquire(key, cancel);
    if (turn !== 'held') return err(turn === 'busy' ? 'file_busy' : 'operation_cancelled');
    try {
      return await this.#tree.inFolder(place.store, true, async (store) => {
        const lock = await attemptLock(`${store.at}/${LOCK}`, cancel);
        if (!lock.ok) return lock;
        try {
          const ready = await this.#recover(place, store);
          return ready.ok ? await write(store) : ready;
        } finally {
          lock.value();
        }
      });
    } finally {
      this.#waiting.release(key);
    }
  }

  /**
   * To be asked before files are read: while a folder is being swapped for its restored form it is missing for a moment, and for
   * longer when the process died at that moment. Whoever reads then waits for, or makes, the end of it.
   */
  async settled(place: Place, cancel: AbortSignal): Promise<Refusable<void>> {
    const journal = await attempt(() => lstat(`${this.#root}/${place.store.join('/')}/${JOURNAL}`));
    return journal.ok ? this.locked(place, cancel, async () => ok(undefined)) : ok(undefined);
  }

  async #recover(place: Place, store: Folder): Promise<Refusable<void>> {
    const finished = await finishSwap(this.#tree, store);
    if (!finished.ok) return finished;
    const left = await attempt(() => readdir(`${store.at}/tmp`));
    if (left.ok && left.value.length === 0) return ok(undefined);
    if (left.ok) return this.#jobs.sweep(place);
    const made = await attempt(() => mkdir(`${store.at}/tmp`, 0o700));
    return made.ok ? ok(undefined) : made;
  }
}

/** SQLite's own errors say nothing that a caller could use: no lock, no write. */
const attemptLock = async (file: string, cancel: AbortSignal): Promise<Refusable<() => void>> => {
  try {
    const lock = await lockStore(file, cancel);
    if (typeof lock === 'function') return ok(lock);
    return err(lock === 'busy' ? 'file_busy' : 'operation_cancelled');
  } catch {
    return err('files_unavailable');
  }
};
