import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { AccessContext, UniqueIds } from '../access.ts';
import { ProtocolError } from '../errors.ts';
import { ExecutionEvent, ExecutionOptions, ExecutionResult } from '../execution.ts';
import { JsonObj } from '../json.ts';
import { MessageEnvelope } from '../messages.ts';
import { Address, AgentAddress } from '../principals.ts';
import { Id, NameId, ToolName, Version } from '../scalars.ts';
import { Ts } from '../time.ts';
import { Timeline } from './operation.ts';
import { Revision } from './revision.ts';
import { replyMessage, wireMessage } from './wire.ts';

/**
 * Asks for one turn. The caller, known from the subject, is the authority whose grants the agent exercises; `owner` may name
 * another principal over whose resources it holds grants. `requestedAt` bounds how long the same request may be sent again.
 */
export const TurnRequest = wireMessage(
  'turn.request/1',
  z.strictObject({
    version: Version,
    executionId: NameId,
    agent: AgentAddress,
    message: MessageEnvelope,
    requestedAt: Ts,
    owner: Address.optional(),
    /** Of a trusted host alone: under whose authority, as whom, over whose resources and for what, instead of its own. */
    context: AccessContext.pick({ actor: true, authority: true, owner: true, purpose: true, traceId: true }).optional(),
    /** Names of the tools the turn asks to have; all that it may discover when absent. */
    tools: bounded(z.array(ToolName), 0, 512).optional(),
    /** Tool namespaces to use; they narrow what the operator switched on and add nothing. */
    toolNamespaces: UniqueIds(256).optional(),
    state: JsonObj.optional(),
    options: ExecutionOptions.optional(),
    metadata: JsonObj.optional(),
  }),
);
export type TurnRequest = z.infer<typeof TurnRequest.schema>;

/** The stored answer of a turn, the same however often it is asked for. */
export const TurnResult = wireMessage('turn.result/1', z.strictObject({ result: ExecutionResult, revision: Revision.optional() }));
export type TurnResult = z.infer<typeof TurnResult.schema>;

export const TurnEvent = wireMessage('turn.event/1', ExecutionEvent);

/** A request that never became a turn: it did not parse, or named somebody else. `sequence` is the place it had in the queue. */
export const TurnRefused = wireMessage(
  'turn.refused/1',
  z.strictObject({ sequence: z.int().min(1), executionId: Id.optional(), error: ProtocolError }),
);
export type TurnRefused = z.infer<typeof TurnRefused.schema>;

export const TURN_STATES = ['queued', 'running', 'succeeded', 'denied', 'failed', 'cancelled', 'escalated'] as const;
export const TurnState = z.enum(TURN_STATES);
export type TurnState = z.infer<typeof TurnState>;

export const TurnSummary = z.strictObject({
  executionId: Id,
  /** Who asked for it, in answers to an administrator. */
  requester: Address.optional(),
  state: TurnState,
  code: Id.optional(),
  agent: AgentAddress.optional(),
  traceId: Id.optional(),
  at: Ts.optional(),
});
export type TurnSummary = z.infer<typeof TurnSummary>;

export const TurnGet = wireMessage('turn.get/1', z.strictObject({ executionId: NameId }));
export type TurnGet = z.infer<typeof TurnGet.schema>;
export const TurnGetReply = replyMessage(
  'turn.get.reply/1',
  z.strictObject({
    summary: TurnSummary,
    result: ExecutionResult.optional(),
    /** What the ledger has of it; absent while it waits. */
    timeline: Timeline.optional(),
  }),
);

/**
 * The caller's turns, newest first. Whoever administers turns may name another `requester`, or `everyone`. `since` leaves out those of
 * which nothing was heard since then.
 */
export const TurnList = wireMessage(
  'turn.list/1',
  z.strictObject({
    limit: z.int().min(1).max(500).optional(),
    state: TurnState.optional(),
    requester: z.union([Address, z.literal('everyone')]).optional(),
    agent: AgentAddress.optional(),
    since: Ts.optional(),
  }),
);
export type TurnList = z.infer<typeof TurnList.schema>;
export const TurnListReply = replyMessage('turn.list.reply/1', z.strictObject({ turns: bounded(z.array(TurnSummary), 0, 500) }));

/** Cancels one of the caller's turns; for whoever administers turns, one of the `requester` named. */
export const TurnCancel = wireMessage('turn.cancel/1', z.strictObject({ executionId: NameId, requester: Address.optional() }));
export type TurnCancel = z.infer<typeof TurnCancel.schema>;
/** `cancelling`: its owner was told. `cancelled`: it had not been taken and now never will be. `ended`: too late. */
export const TurnCancelReply = replyMessage(
  'turn.cancel.reply/1',
  z.strictObject({ outcome: z.enum(['cancelling', 'cancelled', 'ended']) }),
);

/** Between executors: is this turn still yours, or: stop it. Addressed to the one process that claimed it. */
export const ExecutionControl = wireMessage('execution.control/1', z.strictObject({ turnId: Id, ask: z.enum(['alive', 'cancel']) }));
export type ExecutionControl = z.infer<typeof ExecutionControl.schema>;
export const ExecutionControlReply = replyMessage('execution.control.reply/1', z.strictObject({ running: z.boolean() }));
