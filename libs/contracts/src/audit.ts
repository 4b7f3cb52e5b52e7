import { z } from 'zod';
import { ResourceRef, CapabilityRequest } from './grants.ts';
import { JsonObj } from './json.ts';
import { Address } from './principals.ts';
import { Action, Hash, Id, Purpose, Version } from './scalars.ts';
import { Ts } from './time.ts';

export const AuditOutcome = z.enum(['allowed', 'denied', 'succeeded', 'failed', 'escalated']);
export type AuditOutcome = z.infer<typeof AuditOutcome>;

/** Kinds of audit record: those of the contracts, a use given back, and the two of the management plane (design §4, rule 9). */
export const AUDIT_TYPES = [
  'authority.resolved',
  'authorization.checked',
  'escalation.requested',
  'escalation.auto_decided',
  'resource.invoked',
  'tool.invoked',
  'message.sent',
  'tool.catalog.listed',
  'tool.namespace.catalog.listed',
  'tool.namespace.selection.updated',
  'turn.ended',
  'grant.usage.released',
  'admin.changed',
  'admin.refused',
] as const;
export const AuditType = z.enum(AUDIT_TYPES);
export type AuditType = z.infer<typeof AuditType>;

/**
 * One recorded fact. `id` is minted per record and is the only de-duplication key. Never arguments, outputs, payloads or texts
 * that were thrown. @see spec/contracts.md §9
 */
export const AuditEvent = z.strictObject({
  version: Version,
  id: Id,
  type: AuditType,
  outcome: AuditOutcome,
  at: Ts,
  traceId: Id,
  namespaceId: Id,
  actor: Address,
  authority: Address,
  owner: Address,
  purpose: Purpose,
  resource: ResourceRef.optional(),
  action: Action.optional(),
  grantId: Id.optional(),
  authorityHash: Hash.optional(),
  operationId: Id.optional(),
  tool: Id.optional(),
  messageId: Id.optional(),
  receiver: Address.optional(),
  reason: Id.optional(),
  requestedAuthority: CapabilityRequest.optional(),
  metadata: JsonObj.optional(),
});
export type AuditEvent = z.infer<typeof AuditEvent>;
