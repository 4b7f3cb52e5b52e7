import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { AuditEvent, AuditOutcome, AuditType } from '../audit.ts';
import { Address } from '../principals.ts';
import { Id } from '../scalars.ts';
import { replyMessage, wireMessage } from './wire.ts';

/**
 * Audit records of the caller's namespace, in the order they were recorded. Needs a grant over `sharedos` / `["audit"]` /
 * `read` from a root principal of the namespace: `authority`, or the first one configured.
 */
export const RecordsQuery = wireMessage(
  'records.query/1',
  z.strictObject({
    traceId: Id.optional(),
    /** An execution id, a call id or a message id. */
    operationId: Id.optional(),
    turnId: Id.optional(),
    type: AuditType.optional(),
    outcome: AuditOutcome.optional(),
    authority: Address.optional(),
    limit: z.int().min(1).max(500).optional(),
    after: z.int().min(0).optional(),
  }),
);
export type RecordsQuery = z.infer<typeof RecordsQuery.schema>;

export const AuditRecord = z.strictObject({ sequence: z.int().min(1), event: AuditEvent });
export type AuditRecord = z.infer<typeof AuditRecord>;

export const RecordsQueryReply = replyMessage(
  'records.query.reply/1',
  z.strictObject({ records: bounded(z.array(AuditRecord), 0, 500), next: z.int().min(1).optional(), upTo: z.int().min(0) }),
);
export const AuditRecordMessage = wireMessage('audit.record/1', AuditEvent);
