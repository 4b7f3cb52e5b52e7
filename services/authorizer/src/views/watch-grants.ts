import { type Delivery, withinOneAnswer } from '@sharedos/bus';
import {
  type Address,
  type GrantChangesPage,
  type GrantWatch,
  type Reply,
  WATCH_MS_MAX,
  addressKey,
  encodeName,
  positionOf,
  refused,
  revisionOf,
} from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';
import type { Ports } from '../ports.ts';
import { atLeast } from '../turns/up-to-date.ts';

const PAGE = 100;
/** Requests that wait at a time: each keeps a place among those that this replica handles at once. One more is answered at once. */
const WATCHING_MAX = 128;
const WATCHING_EACH_MAX = 4;

/**
 * Tells the caller of changes of grants that it issued or holds, waiting for the first of them. A replica that has no room to wait,
 * or stops, answers that there is nothing yet.
 */
export const watchGrants = (ports: Ports) => {
  const { fold, store } = ports;
  const watching = new Map<string, number>();
  let all = 0;

  const changesOf = (namespaceId: string, principal: Address, after: number, limit: number): GrantChangesPage => {
    const { grants, upTo } = fold.index.changedAfter(namespaceId, principal, after, { limit, head: fold.position });
    const fitting = withinOneAnswer(grants).length;
    // What does not fit is told with the next answer.
    if (fitting < grants.length) return changesOf(namespaceId, principal, after, fitting);
    return { grants: [...grants], revision: revisionOf(store.storeId, upTo) };
  };

  return async (
    { after, waitMs = WATCH_MS_MAX, limit = PAGE }: GrantWatch,
    { namespaceId, principal, signal }: Delivery,
  ): Promise<Reply<GrantChangesPage>> => {
    invariant(principal !== undefined, 'grants are read by principals');
    const from = positionOf(after, store.storeId);
    if (from === undefined) return refused('invalid_request', 'the revision is of another log');
    const here = await atLeast(ports, after);
    if (!here.ok) return here;
    const waiter = encodeName(namespaceId, addressKey(principal));
    const deadline = performance.now() + waitMs;
    for (let position = from; ;) {
      const answer = changesOf(namespaceId, principal, position, limit);
      position = positionOf(answer.revision, store.storeId) ?? position;
      const left = deadline - performance.now();
      const mine = watching.get(waiter) ?? 0;
      const hasRoom = all < WATCHING_MAX && mine < WATCHING_EACH_MAX;
      if (answer.grants.length > 0 || left <= 0 || signal.aborted || !hasRoom) return { ok: true, value: answer };
      if (position < fold.position) continue;
      all += 1;
      watching.set(waiter, mine + 1);
      await fold.watchers.next(namespaceId, principal, left, signal);
      all -= 1;
      if (watching.get(waiter) === 1) watching.delete(waiter);
      else watching.set(waiter, (watching.get(waiter) ?? 1) - 1);
    }
  };
};
