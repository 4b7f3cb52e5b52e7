import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { ProtocolError } from '../errors.ts';
import { RuntimeExecutionRequest } from '../execution.ts';
import { Json, JsonObj } from '../json.ts';
import { Hash, Id } from '../scalars.ts';
import { Ts } from '../time.ts';
import { PublishedTool, ToolResult } from '../tools.ts';
import { replyMessage, wireMessage } from './wire.ts';

/** Locates one turn of one agent; it permits nothing and dies with the turn. */
export const StepToken = bounded(z.string(), 1, 8_192);

/** A turn as an agent elsewhere sees it: the tools as they are published, without what they require. */
export const RemoteTurn = RuntimeExecutionRequest.omit({ tools: true }).extend({
  catalogHash: Hash,
  tools: bounded(z.array(PublishedTool), 0, 512),
});
export type RemoteTurn = z.infer<typeof RemoteTurn>;

/** The start of a turn, or the result of the call that was decided upon last. */
export const RemoteInput = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('start') }),
  z.strictObject({ type: z.literal('tool_result'), result: ToolResult }),
]);
export type RemoteInput = z.infer<typeof RemoteInput>;

/**
 * What an agent answers a step with; extra keys make it invalid. When a call was asked for, and under which trace, is stated by
 * whoever asks, so a call has neither.
 */
export const RemoteDecision = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('complete'), output: Json, metadata: JsonObj.optional() }),
  z.strictObject({
    type: z.literal('tool_call'),
    call: z.strictObject({ id: Id, tool: Id, arguments: JsonObj }),
    step: z.int().min(0).optional(),
  }),
  z.strictObject({ type: z.literal('escalate'), reason: bounded(z.string().trim(), 1, 512), metadata: JsonObj.optional() }),
  z.strictObject({ type: z.literal('fail'), error: ProtocolError, metadata: JsonObj.optional() }),
]);
export type RemoteDecision = z.infer<typeof RemoteDecision>;

/**
 * Asks an agent in another process for its next decision. `deadline` is when nobody waits for it any more. `memory` is what the agent
 * answered with its last decision, so that any of its processes can take the next.
 */
export const RuntimeStep = wireMessage(
  'runtime.step/1',
  z.strictObject({
    token: StepToken,
    step: z.int().min(0),
    deadline: Ts,
    turn: RemoteTurn,
    input: RemoteInput,
    memory: JsonObj.optional(),
  }),
);
export type RuntimeStep = z.infer<typeof RuntimeStep.schema>;

/** Largest answer of an agent, in bytes, its memory included. */
export const STEP_ANSWER_BYTES_MAX = 1024 * 1024;

/**
 * The answer repeats `token` and `step` of what it answers. `decision` is a `RemoteDecision`; anything else that is JSON ends the turn
 * as an invalid decision and not as a silent agent.
 */
export const StepAnswer = z.strictObject({ token: StepToken, step: z.int().min(0), decision: Json, memory: JsonObj.optional() });
export type StepAnswer = z.infer<typeof StepAnswer>;
export const RuntimeStepReply = replyMessage('runtime.step.reply/1', StepAnswer);
