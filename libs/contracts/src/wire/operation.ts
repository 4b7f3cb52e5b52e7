import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { Json } from '../json.ts';
import { Address, AgentAddress } from '../principals.ts';
import { Id, NameId } from '../scalars.ts';
import { Ts } from '../time.ts';
import { OperationOutcome } from './ledger.ts';
import { replyMessage, wireMessage } from './wire.ts';

/** A turn, or a message sent outside one: what the ledger keeps the records of. */
export const OPERATION_KINDS = ['execution', 'message'] as const;
export const OperationKind = z.enum(OPERATION_KINDS);
export type OperationKind = z.infer<typeof OperationKind>;

/**
 * - `running`: it has no end yet.
 * - `ended`: all of it is known.
 * - `unknown`: it has ended, and of a call nobody can tell whether its effect happened.
 * - `expired`: only what it was called is still known.
 */
export const OPERATION_STATES = ['running', 'ended', 'unknown', 'expired'] as const;
export const OperationState = z.enum(OPERATION_STATES);
export type OperationState = z.infer<typeof OperationState>;

/** Names one operation: who asked for it is part of its name. */
const named = { kind: OperationKind, requester: Address, operationId: NameId };

/** `status` and `code` are those of its answer. `unknownCalls`: a message has one call, under its own id. */
export const OperationSummary = z.strictObject({
  kind: OperationKind,
  /** Absent where nobody claimed the operation. */
  requester: Address.optional(),
  operationId: Id.optional(),
  state: OperationState,
  agent: AgentAddress.optional(),
  traceId: Id.optional(),
  at: Ts,
  endedAt: Ts.optional(),
  status: Id.optional(),
  code: Id.optional(),
  unknownCalls: bounded(z.array(Id), 0, 10_000),
});
export type OperationSummary = z.infer<typeof OperationSummary>;

/** One record of an operation as it may be shown: neither arguments nor outputs. */
export const TimelineEntry = z.strictObject({
  at: Ts,
  what: z.enum(['claimed', 'opened', 'admitted', 'settled', 'released', 'noted', 'ended', 'delivery', 'resolved', 'expired']),
  callId: Id.optional(),
  tool: Id.optional(),
  status: Id.optional(),
  code: Id.optional(),
  outcome: OperationOutcome.optional(),
  /** Who wrote it: a process, `recovery`, `cancel`; of a resolution, the principal. */
  by: z.union([Id, Address]).optional(),
});
export type TimelineEntry = z.infer<typeof TimelineEntry>;

/** Entries that a timeline has at most; of a longer one, the last. */
export const TIMELINE_MAX = 1_000;
export const Timeline = bounded(z.array(TimelineEntry), 0, TIMELINE_MAX);

/** `ledgerRevision` moves with every record: a resolution can be bound to what was shown. */
export const OperationAt = z.strictObject({ operation: OperationSummary, timeline: Timeline, ledgerRevision: z.int().min(0) });
export type OperationAt = z.infer<typeof OperationAt>;

export const OperationShow = wireMessage('operation.show/1', z.strictObject(named));
export type OperationShow = z.infer<typeof OperationShow.schema>;
export const OperationReply = replyMessage('operation.reply/1', OperationAt);

/** Operations by when something last became known of them, newest first; `since` leaves out those of which nothing did. */
export const OperationList = wireMessage(
  'operation.list/1',
  z.strictObject({
    state: OperationState.optional(),
    kind: OperationKind.optional(),
    requester: Address.optional(),
    since: Ts.optional(),
    limit: z.int().min(1).max(200).optional(),
  }),
);
export type OperationList = z.infer<typeof OperationList.schema>;

/** `more`: there are others, or others that were not looked at. */
export const OperationsFound = z.strictObject({ operations: bounded(z.array(OperationSummary), 0, 200), more: z.boolean() });
export type OperationsFound = z.infer<typeof OperationsFound>;
export const OperationListReply = replyMessage('operation.list.reply/1', OperationsFound);

/**
 * States what an operator found out about a call that was left unknown. The same again changes nothing; another finding is refused.
 * `output` is what the call would have answered, where it happened. `expectedLedgerRevision`: refuse it when anything was recorded since.
 */
export const OperationResolve = wireMessage(
  'operation.resolve/1',
  z.strictObject({
    ...named,
    callId: Id,
    outcome: OperationOutcome,
    output: Json.optional(),
    note: bounded(z.string(), 1, 512).optional(),
    expectedLedgerRevision: z.int().min(1).optional(),
  }),
);
export type OperationResolve = z.infer<typeof OperationResolve.schema>;
