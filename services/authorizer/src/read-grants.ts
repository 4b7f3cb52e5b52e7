import { type Delivery, withinOneAnswer } from '@sharedos/bus';
import {
  type CapabilityGrant,
  type GrantGet,
  type GrantList,
  type Reply,
  type Revision,
  revisionOf,
  sameAddress,
  refused,
} from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';
import type { Ports } from './ports.ts';

const PAGE = 100;

/** Brings this replica up to what was acknowledged before the call, so that one reads one's own writes from any replica. */
const upToDate = async ({ store, fold, limits }: Ports): Promise<Revision | undefined> => {
  if (fold.trouble !== undefined) return undefined;
  const deadline = performance.now() + limits.deadlineMs;
  const barrier = await store.barrier(limits.deadlineMs);
  if (!barrier.ok || !(await fold.until(barrier.value, deadline - performance.now())).ok) return undefined;
  return revisionOf(store.storeId, fold.position);
};

const behind = () => refused('log_unavailable', 'this replica could not catch up with the log in time', true);

/** One grant that the caller issued or holds. A grant of others is not found, like one that is not there. */
export const getGrant =
  (ports: Ports) =>
  async ({ grantId }: GrantGet, { namespaceId, principal }: Delivery): Promise<Reply<{ grant: CapabilityGrant; revision: Revision }>> => {
    invariant(principal !== undefined, 'grants are read by principals');
    const revision = await upToDate(ports);
    if (revision === undefined) return behind();
    const grant = ports.fold.index.grantAt(namespaceId, grantId, Infinity, Infinity)?.grant;
    const concerns = grant !== undefined && [grant.issuer, grant.subject].some((address) => sameAddress(address, principal));
    return concerns
      ? { ok: true, value: { grant, revision } }
      : refused('grant_not_found', 'there is no such grant for you in this namespace');
  };

/** Grants the caller issued, or holds, by id; a page at a time. */
export const listGrants =
  (ports: Ports) =>
  async (
    { role, limit = PAGE, after }: GrantList,
    { namespaceId, principal }: Delivery,
  ): Promise<Reply<{ grants: CapabilityGrant[]; next?: string | undefined; revision: Revision }>> => {
    invariant(principal !== undefined, 'grants are read by principals');
    const revision = await upToDate(ports);
    if (revision === undefined) return behind();
    const page = ports.fold.index.list(namespaceId, role, principal, { limit, after });
    const grants = withinOneAnswer(page.grants);
    const next = grants.length < page.grants.length ? grants.at(-1)?.id : page.next;
    return { ok: true, value: { grants: [...grants], revision, ...(next === undefined ? {} : { next }) } };
  };
