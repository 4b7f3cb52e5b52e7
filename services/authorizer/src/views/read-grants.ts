import { type Delivery, pause, withinOneAnswer } from '@sharedos/bus';
import {
  type Address,
  type CapabilityGrant,
  type GrantGet,
  type GrantList,
  type Reply,
  type Revision,
  refused,
  sameAddress,
} from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';
import type { Ports } from '../ports.ts';
import { atLeast } from '../turns/up-to-date.ts';

const PAGE = 100;
/** Grants put in order of id at a time: some milliseconds, in which nothing else is answered. */
const ORDERED_AT_ONCE = 1_000;

export const concerns = (grant: CapabilityGrant | undefined, principal: Address): grant is CapabilityGrant =>
  grant !== undefined && [grant.issuer, grant.subject].some((address) => sameAddress(address, principal));

export const grantNotFound = () => refused('grant_not_found', 'there is no such grant for you in this namespace');

/** One grant that the caller issued or holds. A grant of others is not found, like one that is not there. */
export const getGrant =
  (ports: Ports) =>
  async ({ grantId }: GrantGet, { namespaceId, principal }: Delivery): Promise<Reply<{ grant: CapabilityGrant; revision: Revision }>> => {
    invariant(principal !== undefined, 'grants are read by principals');
    const here = await atLeast(ports, undefined);
    if (!here.ok) return here;
    const grant = ports.fold.index.grantAt(namespaceId, grantId, Infinity, Infinity)?.grant;
    return concerns(grant, principal) ? { ok: true, value: { grant, revision: here.value.revision } } : grantNotFound();
  };

/** Grants the caller issued, or holds, by id; a page at a time. */
export const listGrants =
  (ports: Ports) =>
  async (
    { role, limit = PAGE, after, revision: named, ...filter }: GrantList,
    { namespaceId, principal }: Delivery,
  ): Promise<Reply<{ grants: CapabilityGrant[]; next?: string | undefined; revision: Revision }>> => {
    invariant(principal !== undefined, 'grants are read by principals');
    const deadline = performance.now() + ports.limits.deadlineMs;
    const here = await atLeast(ports, named);
    if (!here.ok) return here;
    const { index } = ports.fold;
    while (!index.order(namespaceId, role, principal, ORDERED_AT_ONCE)) {
      // What was ordered stays so: asked again, it goes on from there.
      if (performance.now() > deadline) return refused('log_unavailable', 'your grants are being put in order; ask again', true);
      await pause(0);
    }
    const page = index.list(namespaceId, role, principal, { limit, after }, filter, ports.clock());
    const grants = withinOneAnswer(page.grants);
    const next = grants.length < page.grants.length ? grants.at(-1)?.id : page.next;
    return { ok: true, value: { grants: [...grants], revision: here.value.revision, ...(next === undefined ? {} : { next }) } };
  };
