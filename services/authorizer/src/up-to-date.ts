import { type Revision, revisionOf } from '@sharedos/contracts';
import type { Position } from '@sharedos/event-store';
import type { Ports } from './ports.ts';

export interface UpToDate {
  readonly position: Position;
  readonly revision: Revision;
}

/**
 * Brings this replica up to what was acknowledged before the call, so that everybody reads their own writes from any replica, and
 * nothing is decided on what was taken back.
 *
 * @returns `undefined` when it could not be brought there in time.
 */
export const upToDate = async ({ store, fold, limits }: Pick<Ports, 'store' | 'fold' | 'limits'>): Promise<UpToDate | undefined> => {
  if (fold.trouble !== undefined) return undefined;
  const deadline = performance.now() + limits.deadlineMs;
  const barrier = await store.barrier(limits.deadlineMs);
  if (!barrier.ok || !(await fold.until(barrier.value, deadline - performance.now())).ok) return undefined;
  const { position } = fold;
  return { position, revision: revisionOf(store.storeId, position) };
};
