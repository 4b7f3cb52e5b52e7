import { Path, type ResourceOperation, err, ok } from '@sharedos/contracts';
import { ownerFolder } from '../confinement/owner-folder.ts';
import { isFileName } from './file-name.ts';
import type { Refusable } from './file-refusal.ts';

/** Where an operation points: `name` inside the folder that `above` leads to from the provider's root. */
export interface Place {
  readonly path: readonly string[];
  readonly above: readonly string[];
  readonly name: string;
  /** The owner's root itself. */
  readonly isRoot: boolean;
  /** The folder of the store's own records of this owner, from the provider's root. */
  readonly store: readonly string[];
}

/**
 * What the store keeps beside the files: locks, snapshots, metadata, what is being written. No folder of a namespace is called
 * so, because an encoded token starts with no dot; and it is on the same file system, so that a rename is one step.
 */
const STORE = '.sharedos';

/** Checks all of a path before any of it is touched. Operations also arrive from other callers than the tools. */
export const placeOf = (namespace: string, { context, resource }: ResourceOperation): Refusable<Place> => {
  const path = Path.safeParse(resource.path);
  if (resource.namespace !== namespace || !path.success) return err('path_refused');
  const owner = resource.owner ?? context.owner;
  // An id with a lone surrogate has no name of its own, and would share one with others.
  if (!Object.values(owner).every((text) => text.isWellFormed()) || !context.namespaceId.isWellFormed()) return err('path_refused');
  if (!path.data.every((segment) => isFileName(segment))) return err('path_refused');
  const owned = ownerFolder(context.namespaceId, owner);
  const above = [...owned, ...path.data];
  const name = above.pop() as string;
  return ok({ path: path.data, above, name, isRoot: path.data.length === 0, store: [STORE, ...owned] });
};
