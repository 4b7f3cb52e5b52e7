import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { CapabilityGrant } from '../grants.ts';
import { JsonObj } from '../json.ts';
import { Address } from '../principals.ts';
import { Hash, Id, NameId } from '../scalars.ts';
import { Ts } from '../time.ts';
import { wireMessage } from './wire.ts';

/** A fact in the log of authority. Recorded events never change; a new shape is a new `schemaVersion` with an upcast. */
export const LogEvent = z.strictObject({
  eventId: z.uuid(),
  type: Id,
  schemaVersion: z.int().min(1),
  at: Ts,
  principal: Address,
  correlationId: Id,
  causationId: Id.optional(),
  traceparent: bounded(z.string(), 0, 64).optional(),
  data: JsonObj,
});
export type LogEvent = z.infer<typeof LogEvent>;

/** What one append writes: its events, all or none, as one record. */
export const LogRecord = bounded(z.array(LogEvent), 1, 256);
export type LogRecord = z.infer<typeof LogRecord>;
export const LogRecordMessage = wireMessage('log.record/1', LogRecord);

export const GrantIssued = z.strictObject({ type: z.literal('GrantIssued'), grant: CapabilityGrant });
export type GrantIssued = z.infer<typeof GrantIssued>;

export const GrantRevoked = z.strictObject({
  type: z.literal('GrantRevoked'),
  grantId: NameId,
  revokedAt: Ts,
  reason: bounded(z.string(), 0, 512).optional(),
});
export type GrantRevoked = z.infer<typeof GrantRevoked>;

/** Written in one append with the issue: the grant allows one call alone, of a tool with arguments of this digest. */
export const GrantBound = z.strictObject({ type: z.literal('GrantBound'), grantId: NameId, callDigest: Hash });
export type GrantBound = z.infer<typeof GrantBound>;

export const GrantEvent = z.discriminatedUnion('type', [GrantIssued, GrantRevoked, GrantBound]);
export type GrantEvent = z.infer<typeof GrantEvent>;
