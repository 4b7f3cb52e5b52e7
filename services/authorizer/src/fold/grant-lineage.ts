import type { Delivery } from '@sharedos/bus';
import { type AuthorityLineage, type CapabilityGrant, type Lineage, type Reply, refused, revisionOf } from '@sharedos/contracts';
import type { Recorded } from '@sharedos/event-store';
import { ANCESTORS_MAX } from '@sharedos/kernel';
import { grantStream, readGrantEvent } from '../changes/grant-command.ts';
import type { Ports } from '../ports.ts';

/** Who wrote a grant into the log, and those it was derived from, read from their own streams. */
export const grantLineage =
  ({ store }: Pick<Ports, 'store'>) =>
  async ({ grantId }: AuthorityLineage, { namespaceId }: Delivery): Promise<Reply<Lineage>> => {
    const links: Lineage['links'] = [];
    for (let next: string | undefined = grantId; next !== undefined && links.length <= ANCESTORS_MAX;) {
      const read = await store.read(grantStream(namespaceId, next));
      if (!read.ok) return refused('log_unavailable', 'the log could not be read', true);
      const link = linkOf(read.value.events, store.storeId);
      if (link === undefined) break;
      links.push(link);
      next = link.grant.parentGrantId;
    }
    return { ok: true, value: { links } };
  };

const linkOf = (events: readonly Recorded[], storeId: string): Lineage['links'][number] | undefined => {
  let grant: CapabilityGrant | undefined;
  let issued: Lineage['links'][number]['issued'] | undefined;
  let revoked: Lineage['links'][number]['revoked'];
  for (const { event, position } of events) {
    const { principal, at, eventId, correlationId } = event;
    const act = { principal, at, eventId, correlationId, revision: revisionOf(storeId, position) };
    const said = readGrantEvent(event);
    if (said?.type === 'GrantIssued') {
      ({ grant } = said);
      issued = act;
    } else if (said?.type === 'GrantRevoked' && grant !== undefined) {
      grant = { ...grant, revokedAt: said.revokedAt };
      revoked = act;
    }
  }
  return grant === undefined || issued === undefined ? undefined : { grant, issued, ...(revoked === undefined ? {} : { revoked }) };
};
