import { type ProtocolError, type Result, type Revision, err, ok, positionOf, refused, revisionOf } from '@sharedos/contracts';
import type { Position } from '@sharedos/event-store';
import type { Ports } from '../ports.ts';

export interface UpToDate {
  readonly position: Position;
  readonly revision: Revision;
}

type Log = Pick<Ports, 'store' | 'fold' | 'limits'>;

/**
 * Brings this replica up to what was acknowledged before the call, so that everybody reads their own writes from any replica, and
 * nothing is decided on what was taken back.
 *
 * @returns `undefined` when it could not be brought there in time.
 */
export const upToDate = async ({ store, fold, limits }: Log): Promise<UpToDate | undefined> => {
  if (fold.trouble !== undefined) return undefined;
  const deadline = performance.now() + limits.deadlineMs;
  const barrier = await store.barrier(limits.deadlineMs);
  if (!barrier.ok || !(await fold.until(barrier.value, deadline - performance.now())).ok) return undefined;
  return here({ store, fold });
};

const here = ({ store, fold }: Pick<Log, 'store' | 'fold'>): UpToDate => {
  const { position } = fold;
  return { position, revision: revisionOf(store.storeId, position) };
};

/**
 * Brings this replica at least to a revision that the caller names, which costs no question to the log; or up to date when none is
 * named.
 */
export const atLeast = async (log: Log, revision: Revision | undefined): Promise<Result<UpToDate, ProtocolError>> => {
  if (revision === undefined) {
    const now = await upToDate(log);
    return now === undefined ? behind() : ok(now);
  }
  const reached = await reach(log, revision);
  return reached.ok ? ok(here(log)) : reached;
};

/** Authority as it stood at a revision that the caller names, if it is remembered; or up to date when none is named. */
export const standingAt = async (log: Log, revision: Revision | undefined): Promise<Result<UpToDate, ProtocolError>> => {
  if (revision === undefined) return atLeast(log, revision);
  const position = await reach(log, revision);
  if (!position.ok) return position;
  if (position.value < log.fold.oldest) return refused('authority_unavailable', 'the revision is older than what is remembered of the log');
  return ok({ position: position.value, revision });
};

const reach = async ({ store, fold, limits }: Log, revision: Revision): Promise<Result<Position, ProtocolError>> => {
  const position = positionOf(revision, store.storeId);
  if (position === undefined) return refused('invalid_request', 'the revision is of another log');
  if (fold.trouble !== undefined || !(await fold.until(position, limits.deadlineMs)).ok) return behind();
  return ok(position);
};

const behind = () => err(refused('log_unavailable', 'this replica could not catch up with the log in time', true).error);
