import { randomUUID } from 'node:crypto';
import { type Instant, err, ok, timestampOf } from '@sharedos/contracts';
import type { ConfinedTree } from './confined-tree.ts';
import { versionOf } from './file-content.ts';
import type { Refusable } from './file-refusal.ts';
import type {
  FilesSnapshotCreateInput,
  FilesSnapshotListInput,
  FilesSnapshotListOutput,
  FilesSnapshotOutput,
  FilesSnapshotRestoreInput,
  FilesSnapshotRestoreOutput,
} from './files-schemas.ts';
import type { OwnerStores } from './owner-store.ts';
import type { Place } from './place.ts';
import type { SnapshotBounds } from './snapshot-make.ts';
import type { Restored } from './snapshot-restore.ts';
import { swapIn } from './swap.ts';
import type { TreeJobs } from './tree-jobs.ts';

const LIST_MAX = 100;

/**
 * Snapshots of places, kept in the store of their owner and never removed by a tool. One is made while nobody writes, so it shows
 * one moment. Links, special files, names that no path can spell and repositories are no part of it.
 */
export class Snapshots {
  readonly #tree: ConfinedTree;
  readonly #stores: OwnerStores;
  readonly #jobs: TreeJobs;
  readonly #bounds: SnapshotBounds;
  readonly #now: () => Instant;

  constructor(tree: ConfinedTree, stores: OwnerStores, jobs: TreeJobs, bounds: SnapshotBounds, now: () => Instant) {
    this.#tree = tree;
    this.#stores = stores;
    this.#jobs = jobs;
    this.#bounds = bounds;
    this.#now = now;
  }

  async create(place: Place, { label }: FilesSnapshotCreateInput, cancel: AbortSignal): Promise<Refusable<FilesSnapshotOutput>> {
    const of = { id: randomUUID(), path: place.path, ...(label === undefined ? {} : { label }), createdAt: timestampOf(this.#now()) };
    return this.#stores.locked(place, cancel, async () => {
      // An owner's root that nothing was written to is an empty folder.
      const there = place.isRoot ? await this.#tree.inFolder([...place.above, place.name], true, async () => ok(undefined)) : ok(undefined);
      return there.ok ? this.#jobs.run<FilesSnapshotOutput>(place, { kind: 'snapshot', of, bounds: this.#bounds }) : there;
    });
  }

  async list(place: Place, { limit = LIST_MAX }: FilesSnapshotListInput): Promise<Refusable<FilesSnapshotListOutput>> {
    const found = await this.#jobs.run<FilesSnapshotListOutput>(place, { kind: 'snapshots', limit });
    // No store: nothing was ever written here.
    return !found.ok && found.error === 'file_not_found' ? ok({ snapshots: [], truncated: false }) : found;
  }

  /** The path need not be there any more; the folders above it are made. */
  async restore(place: Place, input: FilesSnapshotRestoreInput, cancel: AbortSignal): Promise<Refusable<FilesSnapshotRestoreOutput>> {
    if (place.isRoot) return err('path_refused');
    return this.#stores.locked(place, cancel, async (store) => {
      const replaceable = await this.#replaceable(place, input);
      if (!replaceable.ok) return replaceable;
      const built = await this.#jobs.run<Restored>(place, { kind: 'restore', snapshotId: input.snapshotId });
      if (!built.ok) return this.#swept(place, built);
      if (cancel.aborted) return this.#swept(place, err('operation_cancelled'));
      const above = await this.#tree.inFolder(place.above, true, async () => ok(undefined));
      if (!above.ok) return this.#swept(place, above);
      const swapped = await swapIn(this.#tree, store, place.above, place.name);
      if (!swapped.ok) return swapped;
      const now = await this.#tree.inFolder(place.above, false, (parent) => this.#tree.confinement.stats(parent, place.name));
      return this.#swept(place, now.ok ? ok({ ...built.value, version: versionOf(now.value) }) : now);
    });
  }

  /** What is there now may go: it has the version expected, and no repository goes with it. */
  async #replaceable(place: Place, { expectedVersion }: FilesSnapshotRestoreInput): Promise<Refusable<void>> {
    const found = await this.#tree.inFolder(place.above, false, (parent) => this.#tree.confinement.stats(parent, place.name));
    if (!found.ok && found.error !== 'file_not_found') return found;
    if (expectedVersion !== undefined && !(found.ok && versionOf(found.value) === expectedVersion)) return err('version_mismatch');
    if (!found.ok || !found.value.isDirectory()) return ok(undefined);
    const counted = await this.#jobs.count(place);
    return counted.ok ? ok(undefined) : counted;
  }

  async #swept<T>(place: Place, outcome: Refusable<T>): Promise<Refusable<T>> {
    const swept = await this.#jobs.sweep(place);
    return swept.ok ? outcome : swept;
  }
}
