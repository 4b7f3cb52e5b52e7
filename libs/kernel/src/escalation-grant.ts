import {
  type CapabilityGrant,
  type EscalationQuestion,
  type EscalationResolution,
  type Instant,
  type Result,
  err,
  hashOf,
  ok,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';

const ANSWER_LASTS_MS = 3_600_000;

/** What makes two questions the same where no authority is named: who asks whom, on whose behalf, for what and why. */
export const escalationIdOf = (
  namespaceId: string,
  { requester, owner, authority, purpose, reason }: Pick<EscalationQuestion, 'requester' | 'owner' | 'authority' | 'purpose' | 'reason'>,
): string => `ask-${hashOf({ namespaceId, requester, owner, authority, purpose, reason }).slice(0, 48)}`;

/**
 * The id of the grant that an approval issues. It follows from the question as it was put, so that whoever finishes a half-done
 * approval finds the grant, and a question that is put again gets another one: an id is never used twice.
 */
export const escalationGrantId = (namespaceId: string, { id, requestedAt }: Pick<EscalationQuestion, 'id' | 'requestedAt'>): string =>
  `escalation-${hashOf({ namespaceId, id, requestedAt }).slice(0, 48)}`;

/**
 * Writes the grant of an approval. It is a root grant over the owner's own resources, so its issuer, whom the next turn runs under,
 * has to be that owner.
 *
 * @returns `nothing_to_grant` where neither the question nor the answer names any authority.
 */
export const composeEscalationGrant = (
  namespaceId: string,
  question: EscalationQuestion,
  { capabilities, expiresAt, usesMax = 1 }: Extract<EscalationResolution, { answer: 'approve' }>,
  at: Instant,
): Result<CapabilityGrant, { readonly code: 'issuer_not_owner' | 'nothing_to_grant' }> => {
  const { owner, authority, requester, purpose, requestedAuthority, id } = question;
  if (!sameAddress(owner, authority)) return err({ code: 'issuer_not_owner' });
  const given = capabilities ?? requestedAuthority?.capabilities;
  if (given === undefined) return err({ code: 'nothing_to_grant' });
  if (given.some(({ resource }) => resource.owner !== undefined && !sameAddress(resource.owner, owner)))
    return err({ code: 'issuer_not_owner' });
  return ok({
    id: escalationGrantId(namespaceId, question),
    namespaceId,
    subject: requester,
    issuer: authority,
    capabilities: given.map((capability) => ({ ...capability, resource: { ...capability.resource, owner } })),
    constraints: { purposes: [purpose], expiresAt: expiresAt ?? timestampOf(at + ANSWER_LASTS_MS), maxUses: usesMax, delegationDepth: 0 },
    issuedAt: timestampOf(at),
    metadata: { escalationId: id },
  });
};
