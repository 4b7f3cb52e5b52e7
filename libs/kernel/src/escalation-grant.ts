import {
  Address,
  type CapabilityGrant,
  type EscalationQuestion,
  type EscalationResolution,
  Id,
  type Instant,
  type Result,
  err,
  hashOf,
  instantOf,
  ok,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';

const ANSWER_LASTS_MS = 3_600_000;

/** How the ids of grants begin that answer questions. Nobody else issues one: whoever took such an id first could keep an answer away. */
export const ESCALATION_GRANT_PREFIX = 'escalation-';

/** What makes two questions about calls the same: the authority that was missing, and the call. */
export const callQuestionId = (requestId: string, callDigest: string): string => `call-${hashOf({ requestId, callDigest }).slice(0, 48)}`;

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
  `${ESCALATION_GRANT_PREFIX}${hashOf({ namespaceId, id, requestedAt }).slice(0, 48)}`;

/** The command that approved, as its grant notes it: by whom, and under which command id. */
export interface Approval {
  readonly by: Address;
  readonly commandId: string;
  readonly at: Instant;
}

/** Reads from the grant of an approval who gave it, so that anybody can finish what was begun, as the very same command. */
export const approvalOf = ({ metadata, issuedAt }: Pick<CapabilityGrant, 'metadata' | 'issuedAt'>): Approval | undefined => {
  const by = Address.safeParse(metadata?.['approvedBy']);
  const commandId = Id.safeParse(metadata?.['commandId']);
  const at = instantOf(issuedAt);
  return by.success && commandId.success && at !== undefined ? { by: by.data, commandId: commandId.data, at } : undefined;
};

/**
 * Writes the grant of an approval. It is a root grant over the owner's own resources, so its issuer, whom the next turn runs under,
 * has to be that owner.
 *
 * @returns `nothing_to_grant` where neither the question nor the answer names any authority; `bound_to_one_call` where an answer about
 *   one call would allow more than one use.
 */
export const composeEscalationGrant = (
  namespaceId: string,
  question: EscalationQuestion,
  { capabilities, expiresAt, usesMax = 1 }: Extract<EscalationResolution, { answer: 'approve' }>,
  { by, commandId, at }: Approval,
): Result<CapabilityGrant, { readonly code: 'issuer_not_owner' | 'nothing_to_grant' | 'bound_to_one_call' }> => {
  const { owner, authority, requester, purpose, requestedAuthority, call, id } = question;
  if (call !== undefined && usesMax !== 1) return err({ code: 'bound_to_one_call' });
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
    metadata: { escalationId: id, approvedBy: by, commandId, ...(call === undefined ? {} : { callDigest: call.digest }) },
  });
};
