import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { CapabilityGrant, CapabilityRequest } from '../grants.ts';
import { Address } from '../principals.ts';
import { Id, NameId, Purpose } from '../scalars.ts';
import { Ts } from '../time.ts';
import { Because } from './management.ts';

/**
 * A question that a turn ended on, waiting for a person. Its id is that of the authority it asks for, where it names some, so
 * that the same ask has one place however often it is repeated; otherwise that of its audit record.
 */
export const EscalationQuestion = z.strictObject({
  id: NameId,
  requester: Address,
  owner: Address,
  authority: Address,
  /** Who is asked; the owner, unless the host knows better. */
  reviewer: Address,
  purpose: Purpose,
  reason: bounded(z.string(), 1, 512),
  traceId: Id,
  executionId: Id.optional(),
  requestedAuthority: CapabilityRequest.optional(),
  requestedAt: Ts,
  expiresAt: Ts.optional(),
});
export type EscalationQuestion = z.infer<typeof EscalationQuestion>;

const answered = { escalationId: NameId, by: Address, answeredAt: Ts };

/** Opened, or asked again while it was open or after it was answered: the answers before stay as they were. */
export const EscalationOpened = z.strictObject({ type: z.literal('EscalationOpened'), question: EscalationQuestion });
/** The answer and its grant are one record: the grant is issued from it, and holds what was asked. */
export const EscalationApproved = z.strictObject({ type: z.literal('EscalationApproved'), ...answered, grant: CapabilityGrant });
/** The same for an answer that gives less than was asked. */
export const EscalationNarrowed = z.strictObject({ type: z.literal('EscalationNarrowed'), ...answered, grant: CapabilityGrant });
export const EscalationRefused = z.strictObject({ type: z.literal('EscalationRefused'), ...answered, reason: Because.optional() });
export const EscalationExpired = z.strictObject({ type: z.literal('EscalationExpired'), escalationId: NameId, expiredAt: Ts });
export const EscalationWithdrawn = z.strictObject({
  type: z.literal('EscalationWithdrawn'),
  escalationId: NameId,
  by: Address,
  withdrawnAt: Ts,
  reason: Because.optional(),
});

export const EscalationEvent = z.discriminatedUnion('type', [
  EscalationOpened,
  EscalationApproved,
  EscalationNarrowed,
  EscalationRefused,
  EscalationExpired,
  EscalationWithdrawn,
]);
export type EscalationEvent = z.infer<typeof EscalationEvent>;
