import { type Address, type CapabilityGrant, byCodeUnit, sameAddress } from '@sharedos/contracts';
import { ESCALATION_GRANT_PREFIX } from '@sharedos/kernel';
import { stringify } from 'yaml';
import { principalName } from '../principal-name.ts';
import { resourceName } from '../resource-name.ts';
import { labelOf, unlabelled } from './grants-file.ts';

/** Whether a grant answers a question: an approval issued it, no file does, and none revokes it. */
export const isAnswer = ({ id }: Pick<CapabilityGrant, 'id'>): boolean => id.startsWith(ESCALATION_GRANT_PREFIX);

/** Of some grants, those that a file of the issuer's says: neither revoked, nor the answer to a question. */
export const forFile = (grants: readonly CapabilityGrant[], issuer: Address): readonly CapabilityGrant[] =>
  grants.filter((grant) => grant.revokedAt === undefined && sameAddress(grant.issuer, issuer) && !isAnswer(grant));

/**
 * A file that says what a principal has issued and not revoked, which a plan reads as no change. It manages all of the issuer's
 * grants, so that an entry taken out of it is a grant revoked.
 */
export const exportGrants = (
  grants: readonly CapabilityGrant[],
  { name, namespaceId, issuer }: { readonly name: string; readonly namespaceId: string; readonly issuer: Address },
): string => {
  const live = forFile(grants, issuer).toSorted((a, b) => byCodeUnit(a.id, b.id));
  const names = namesOf(live);
  const entries = live.map((grant) => entryOf(grant, names, issuer));
  return stringify(
    { version: 1, name, namespace: namespaceId, issuer: principalName(issuer), manage: 'all', grants: entries },
    { lineWidth: 0 },
  );
};

/** The name of an entry is the one its file gave it, where only one live grant has it; otherwise the id. */
const namesOf = (live: readonly CapabilityGrant[]): ReadonlyMap<string, string> => {
  const wanted = live.map((grant) => labelOf(grant.metadata)?.entry ?? grant.id);
  return new Map(
    live.map((grant, index) => {
      const name = wanted[index] as string;
      const isAlone = wanted.filter((other) => other === name).length === 1 && !live.some(({ id }) => id === name && id !== grant.id);
      return [grant.id, isAlone ? name : grant.id];
    }),
  );
};

const entryOf = (grant: CapabilityGrant, names: ReadonlyMap<string, string>, issuer: Address): Record<string, unknown> => {
  const { id, subject, capabilities, constraints, parentGrantId, metadata } = grant;
  const { purposes, notBefore, expiresAt, maxUses, delegationDepth } = constraints;
  const stated = {
    id: names.get(id) ?? id,
    to: principalName(subject),
    allow: capabilities.map(({ resource, actions, scope }) => ({
      resource: resourceName(resource),
      actions,
      ...(scope === 'descendants' ? {} : { scope }),
      ...(resource.owner === undefined || (parentGrantId === undefined && sameAddress(resource.owner, issuer))
        ? {}
        : { owner: principalName(resource.owner) }),
    })),
    purposes,
    from: notBefore,
    expires: expiresAt,
    'max-uses': maxUses,
    depth: delegationDepth,
    parent: parentGrantId === undefined ? undefined : (names.get(parentGrantId) ?? parentGrantId),
    metadata: unlabelled(metadata),
  };
  return Object.fromEntries(Object.entries(stated).filter(([, value]) => value !== undefined));
};
