import { z } from 'zod';
import { bounded } from './bounded.ts';
import { AccessContext, ReachResult } from './access.ts';
import { ProtocolError } from './errors.ts';
import { CapabilityRequest } from './grants.ts';
import { Json, JsonObj } from './json.ts';
import { MessageEnvelope } from './messages.ts';
import { Address, AgentAddress } from './principals.ts';
import { Id, Version } from './scalars.ts';
import { Ts } from './time.ts';
import { ToolDefinition } from './tools.ts';

/** Limits a request may state; out of range is refused, never clamped. */
export const ExecutionOptions = z.strictObject({
  maxSteps: z.int().min(1).max(1_000).optional(),
  maxToolCalls: z.int().min(1).max(10_000).optional(),
  timeoutMs: z.int().min(1).max(600_000).optional(),
});
export type ExecutionOptions = z.infer<typeof ExecutionOptions>;

/** One bounded run of an agent. `tools` are those the turn asks for; only their names are used. @see spec/turns.md §2 */
export const ExecutionRequest = z.strictObject({
  version: Version,
  executionId: Id,
  agent: AgentAddress,
  context: AccessContext,
  message: MessageEnvelope,
  tools: bounded(z.array(ToolDefinition), 0, 512),
  state: JsonObj.optional(),
  options: ExecutionOptions.optional(),
  metadata: JsonObj.optional(),
});
export type ExecutionRequest = z.infer<typeof ExecutionRequest>;

/** The same on the wire: who asks, and with which tools, is for the server to say. */
export const RemoteExecutionRequest = ExecutionRequest.omit({ context: true, tools: true });
export type RemoteExecutionRequest = z.infer<typeof RemoteExecutionRequest>;

/** What a runtime sees of the context: never authority, grants or namespace settings. */
export const RuntimeVisibleContext = AccessContext.omit({ authority: true, enabledToolNamespaces: true }).extend({ reach: ReachResult });
export type RuntimeVisibleContext = z.infer<typeof RuntimeVisibleContext>;

export const RuntimeExecutionRequest = ExecutionRequest.omit({ context: true }).extend({ context: RuntimeVisibleContext });
export type RuntimeExecutionRequest = z.infer<typeof RuntimeExecutionRequest>;

export const ExecutionEvent = z.strictObject({
  version: Version,
  eventId: Id,
  executionId: Id,
  traceId: Id,
  sequence: z.int().min(0),
  type: bounded(z.string().trim(), 1, 128),
  data: Json,
  occurredAt: Ts,
});
export type ExecutionEvent = z.infer<typeof ExecutionEvent>;

export const Escalation = z.strictObject({
  reason: bounded(z.string().trim(), 1, 512),
  reviewer: Address,
  requestedAt: Ts,
  requestedAuthority: CapabilityRequest.optional(),
  status: z.literal('pending'),
});
export type Escalation = z.infer<typeof Escalation>;

const ended = {
  version: Version,
  executionId: Id,
  traceId: Id,
  events: z.array(ExecutionEvent),
  startedAt: Ts,
  completedAt: Ts,
  metadata: JsonObj.optional(),
};

/** The one terminal result of a turn. */
export const ExecutionResult = z.discriminatedUnion('status', [
  z.strictObject({ status: z.literal('succeeded'), ...ended, output: Json }),
  z.strictObject({ status: z.literal('denied'), ...ended, error: ProtocolError }),
  z.strictObject({ status: z.literal('failed'), ...ended, error: ProtocolError }),
  z.strictObject({ status: z.literal('cancelled'), ...ended, error: ProtocolError.optional() }),
  z.strictObject({ status: z.literal('escalated'), ...ended, escalation: Escalation }),
]);
export type ExecutionResult = z.infer<typeof ExecutionResult>;

export const RuntimeManifest = z.strictObject({ id: Id, version: Id, protocolVersion: Version, metadata: JsonObj.optional() });
export type RuntimeManifest = z.infer<typeof RuntimeManifest>;

export const RuntimeEvent = z.strictObject({ type: Id, data: Json });
export type RuntimeEvent = z.infer<typeof RuntimeEvent>;

export const RuntimeTurnOutcome = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('complete'), output: Json, metadata: JsonObj.optional() }),
  z.strictObject({ type: z.literal('fail'), error: ProtocolError, metadata: JsonObj.optional() }),
  z.strictObject({ type: z.literal('escalate'), reason: bounded(z.string().trim(), 1, 512), metadata: JsonObj.optional() }),
]);
export type RuntimeTurnOutcome = z.infer<typeof RuntimeTurnOutcome>;
