import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { Capability, CapabilityConstraints, CapabilityGrant, GrantMetadata } from '../grants.ts';
import { Address } from '../principals.ts';
import { NameId } from '../scalars.ts';
import { replyMessage, wireMessage } from './wire.ts';
import { Revision } from './revision.ts';

/** What an issuer states of a grant. Namespace, issuer, owner and time are the service's to write. */
export const GrantTerms = z.strictObject({
  id: NameId,
  subject: Address,
  capabilities: bounded(z.array(Capability), 1, 64),
  constraints: CapabilityConstraints.optional(),
  metadata: GrantMetadata.optional(),
  /** Allowed only as the caller itself; anybody else is `identity_mismatch`. */
  issuer: Address.optional(),
});
export type GrantTerms = z.infer<typeof GrantTerms>;

/** Issues a root grant over the caller's own resources. `commandId` makes a retry the same command. */
export const GrantIssue = wireMessage('grant.issue/1', z.strictObject({ commandId: NameId, grant: GrantTerms }));
export type GrantIssue = z.infer<typeof GrantIssue.schema>;

/** Passes on part of a grant that the caller holds. */
export const GrantDerive = wireMessage('grant.derive/1', z.strictObject({ commandId: NameId, parentGrantId: NameId, grant: GrantTerms }));
export type GrantDerive = z.infer<typeof GrantDerive.schema>;

export const GrantRevoke = wireMessage(
  'grant.revoke/1',
  z.strictObject({ commandId: NameId, grantId: NameId, reason: bounded(z.string(), 0, 512).optional() }),
);
export type GrantRevoke = z.infer<typeof GrantRevoke.schema>;

export const GrantGet = wireMessage('grant.get/1', z.strictObject({ grantId: NameId }));
export type GrantGet = z.infer<typeof GrantGet.schema>;

/**
 * Grants that the caller issued or holds, in order of id, after `after`; of these, those that a filter names. Live are grants that
 * are neither revoked nor expired themselves.
 */
export const GrantList = wireMessage(
  'grant.list/1',
  z.strictObject({
    role: z.enum(['issuer', 'subject']),
    limit: z.int().min(1).max(500).optional(),
    after: NameId.optional(),
    state: z.enum(['live', 'ended']).optional(),
    subject: Address.optional(),
    issuer: Address.optional(),
    /** The answer holds at least this much of the log; everything acknowledged before the request when absent. */
    revision: Revision.optional(),
  }),
);
export type GrantList = z.infer<typeof GrantList.schema>;

const GrantAt = z.strictObject({ grant: CapabilityGrant, revision: Revision });
export type GrantAt = z.infer<typeof GrantAt>;

export const GrantReply = replyMessage('grant.reply/1', GrantAt);
export const GrantListReply = replyMessage(
  'grant.list.reply/1',
  z.strictObject({ grants: bounded(z.array(CapabilityGrant), 0, 500), next: NameId.optional(), revision: Revision }),
);
