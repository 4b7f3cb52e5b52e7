import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { AuditEvent } from '../audit.ts';
import { ExecutionResult } from '../execution.ts';
import { Json } from '../json.ts';
import { DeliveryResult } from '../messages.ts';
import { Address, AgentAddress } from '../principals.ts';
import { Hash, Id, Purpose } from '../scalars.ts';
import { Ts } from '../time.ts';
import { ToolResult } from '../tools.ts';
import { UseTaken, UsesAbove } from './authority.ts';
import { DeliveryEvent } from './delivery.ts';
import { Revision } from './revision.ts';
import { wireMessage } from './wire.ts';

/** A turn's end may have to speak for every call that was still open. */
const Audits = bounded(z.array(AuditEvent), 0, 10_008);

/** What an operator found out about a call that nobody could tell of. */
export const OperationOutcome = z.enum(['happened', 'did_not_happen']);
export type OperationOutcome = z.infer<typeof OperationOutcome>;

/**
 * The records of one operation, each on the operation's own subject and each expecting the one before it. That chain is the
 * fence: an owner declared dead cannot write the next record, so it can admit nothing more.
 *
 * Audit events ride inside the record that makes them true, so no effect can precede its record and none is lost with a crash:
 * the ledger is the outbox.
 *
 * - `claimed`: this owner, and no other, runs it. `requestSequence` tells a redelivery from a second request.
 * - `opened`: authority is held and the turn admitted.
 * - `released`: this call will never be admitted, so the uses that were reserved for it are given back.
 * - `admitted`: the effect of this call may start now. Without `settled`, it is unknown whether it happened.
 * - `settled`: the answer of the call. A refused call has this record only. `late`: of a handler that outlived its turn, after the end.
 * - `noted`: something to record that is neither a call nor the end.
 * - `ended`: the one terminal answer.
 * - `resolved`: after the end, what an operator found out about a call that was left unknown. The turn stays as it ended.
 * - `expired`: the answer was forgotten, and what the operation was called was not. Nothing follows it.
 */
export const LedgerRecord = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('claimed'),
    at: Ts,
    ownerId: Id,
    turnId: Id,
    fingerprint: Hash,
    requester: Address,
    operationId: Id,
    traceId: Id,
    agent: AgentAddress.optional(),
    requestSequence: z.int().min(0),
    /** Of a message: what a reply to it is measured by. `byTurn`: a turn waits for the reply, and nobody else does. */
    message: z.strictObject({ receiver: Address, purpose: Purpose, byTurn: z.boolean() }).optional(),
  }),
  z.strictObject({
    type: z.literal('opened'),
    at: Ts,
    revision: Revision,
    use: UseTaken.optional(),
    above: UsesAbove.optional(),
    audit: Audits,
  }),
  z.strictObject({
    type: z.literal('admitted'),
    at: Ts,
    callId: Id,
    tool: Id.optional(),
    use: UseTaken.optional(),
    above: UsesAbove.optional(),
    audit: Audits,
  }),
  z.strictObject({ type: z.literal('released'), at: Ts, callId: Id, uses: bounded(z.array(UseTaken), 1, 17), audit: Audits }),
  z.strictObject({ type: z.literal('settled'), at: Ts, callId: Id, result: ToolResult, late: z.literal(true).optional(), audit: Audits }),
  z.strictObject({ type: z.literal('noted'), at: Ts, audit: Audits }),
  z.strictObject({
    type: z.literal('ended'),
    at: Ts,
    by: z.enum(['owner', 'recovery', 'cancel']),
    revision: Revision.optional(),
    result: z.union([ExecutionResult, DeliveryResult]),
    /** Spent by the admission of a turn that ended before it was opened. */
    use: UseTaken.optional(),
    above: UsesAbove.optional(),
    /** Where an accepted message went; absent in records of before, and where it says no more than the result does. */
    delivery: DeliveryEvent.optional(),
    audit: Audits,
  }),
  z.strictObject({
    type: z.literal('delivery'),
    at: Ts,
    event: DeliveryEvent,
    /** Spent where a parked message was decided anew by another grant than before. */
    use: UseTaken.optional(),
    above: UsesAbove.optional(),
    audit: Audits,
  }),
  z.strictObject({
    type: z.literal('resolved'),
    at: Ts,
    callId: Id,
    outcome: OperationOutcome,
    output: Json.optional(),
    note: bounded(z.string(), 1, 512).optional(),
    by: Address,
    audit: Audits,
  }),
  z.strictObject({
    type: z.literal('expired'),
    at: Ts,
    endedAt: Ts,
    /** Absent where nobody had claimed the operation. */
    claim: z
      .strictObject({ fingerprint: Hash, requester: Address, operationId: Id, traceId: Id, agent: AgentAddress.optional() })
      .optional(),
  }),
]);
export type LedgerRecord = z.infer<typeof LedgerRecord>;
export type ClaimedRecord = Extract<LedgerRecord, { type: 'claimed' }>;
export type EndedRecord = Extract<LedgerRecord, { type: 'ended' }>;
export type ResolvedRecord = Extract<LedgerRecord, { type: 'resolved' }>;
export type ExpiredRecord = Extract<LedgerRecord, { type: 'expired' }>;
export const LedgerRecordMessage = wireMessage('ledger.record/1', LedgerRecord);

/**
 * One use of one bounded grant, spent. The first claim of an ordinal is the only one, until it is released. `turn` is the stem that
 * all operations of one turn are named from: whoever ends the turn of a dead owner finds its reservations by it.
 */
export const UseClaim = z.strictObject({ at: Ts, grantId: Id, ordinal: z.int().min(1), operation: Id, turn: Id.optional() });
export type UseClaim = z.infer<typeof UseClaim>;
export const UseClaimMessage = wireMessage('ledger.use/1', UseClaim);

/** A use given back before anything ran on it. `operation` can never claim this ordinal again; anybody else may. */
export const UseReleased = z.strictObject({ at: Ts, grantId: Id, ordinal: z.int().min(1), operation: Id });
export type UseReleased = z.infer<typeof UseReleased>;
export const UseReleasedMessage = wireMessage('ledger.use.released/1', UseReleased);
