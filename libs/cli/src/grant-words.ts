import { type CapabilityGrant, instantOf } from '@sharedos/contracts';
import { principalName } from './principal-name.ts';
import { resourceName } from './resource-name.ts';
import { printable } from './table.ts';

/** What a grant lets one do: `read,list files:notes/**`. */
export const capabilitiesOf = ({ capabilities }: Pick<CapabilityGrant, 'capabilities'>): string =>
  capabilities
    .map(({ resource, actions, scope }) => `${actions.join(',')} ${resourceName(resource)}${scope === 'descendants' ? '/**' : ''}`)
    .join('; ');

export const boundsOf = ({ constraints }: Pick<CapabilityGrant, 'constraints'>): string =>
  [
    ...(constraints.purposes === undefined ? [] : [`for ${constraints.purposes.map((purpose) => JSON.stringify(purpose)).join(' or ')}`]),
    ...(constraints.notBefore === undefined ? [] : [`from ${constraints.notBefore}`]),
    ...(constraints.expiresAt === undefined ? [] : [`until ${constraints.expiresAt}`]),
    ...(constraints.maxUses === undefined ? [] : [`${constraints.maxUses} uses`]),
    ...(constraints.delegationDepth === undefined ? [] : [`passed on ≤ ${constraints.delegationDepth}`]),
  ].join(', ') || 'none';

/** One grant in one line. */
export const described = (grant: CapabilityGrant): string =>
  printable(
    `${grant.id}: ${principalName(grant.issuer)} lets ${principalName(grant.subject)} ${capabilitiesOf(grant)} (bounds: ${boundsOf(grant)})`,
  );

/** As far as the grant itself tells: one that was derived also ends with those it came from. */
export const stateOf = (
  { revokedAt, constraints: { expiresAt, notBefore } }: Pick<CapabilityGrant, 'revokedAt' | 'constraints'>,
  now: number,
): 'revoked' | 'expired' | 'not yet' | 'live' => {
  if (revokedAt !== undefined) return 'revoked';
  if (expiresAt !== undefined && (instantOf(expiresAt) ?? 0) <= now) return 'expired';
  return notBefore !== undefined && (instantOf(notBefore) ?? 0) > now ? 'not yet' : 'live';
};
