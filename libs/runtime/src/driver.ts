import { JsonObj, Json, ProtocolError, type RuntimeExecutionRequest, ToolCall, type ToolResult, bounded } from '@sharedos/contracts';
import { z } from 'zod';

/** What a driver answers each question with; extra keys make it invalid. @see spec/turns.md §7 */
export const DriverDecision = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('complete'), output: Json, metadata: JsonObj.optional() }),
  z.strictObject({ type: z.literal('tool_call'), call: ToolCall, step: z.int().min(0).optional() }),
  z.strictObject({ type: z.literal('escalate'), reason: bounded(z.string().trim(), 1, 512), metadata: JsonObj.optional() }),
  z.strictObject({ type: z.literal('fail'), error: ProtocolError, metadata: JsonObj.optional() }),
]);
export type DriverDecision = z.infer<typeof DriverDecision>;

export type DriverInput = { readonly type: 'start' } | { readonly type: 'tool_result'; readonly result: ToolResult };

export type SessionStatus = 'succeeded' | 'failed' | 'escalated' | 'cancelled';

/** One conversation, for one turn. */
export interface DriverSession {
  /** Hash of what the model was told before anything was sent; goes on the result's metadata. */
  readonly promptHash?: string;
  next(input: DriverInput, signal: AbortSignal): Promise<DriverDecision>;
  /** Told once how the loop ended; `signal` fires when its time is over. Cannot change the result. */
  close?(status: SessionStatus, signal: AbortSignal): Promise<void>;
}

/** The model-facing seat inside the standard loop. One instance serves many turns at once. */
export interface Driver {
  open(request: RuntimeExecutionRequest, signal: AbortSignal): Promise<DriverSession>;
}
