import type { AuthorizationDecision } from '@sharedos/contracts';

/**
 * What of a decision may leave the services: whether, the code, the grant that allowed, what would have satisfied it, and which
 * rule of delegation broke. Metadata otherwise tells causes apart that callers are promised not to see, and the grant named on a
 * denial is one that policy overrode.
 *
 * @see design.md §9.16
 */
export const publicDecision = ({
  allowed,
  reasonCode,
  matchedGrantId,
  requiredAuthority,
  metadata,
}: AuthorizationDecision): AuthorizationDecision => {
  const delegation = reasonCode.startsWith('delegation_chain_') ? delegationCode(metadata?.['delegation']) : undefined;
  return {
    allowed,
    reasonCode,
    ...(allowed && matchedGrantId !== undefined ? { matchedGrantId } : {}),
    ...(requiredAuthority === undefined ? {} : { requiredAuthority }),
    ...(delegation === undefined ? {} : { metadata: { delegation: { code: delegation } } }),
  };
};

const delegationCode = (delegation: unknown): string | undefined =>
  typeof delegation === 'object' && delegation !== null && 'code' in delegation && typeof delegation.code === 'string'
    ? delegation.code
    : undefined;
