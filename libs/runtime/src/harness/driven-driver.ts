import {
  type Json,
  JsonObj,
  type ProtocolError,
  type RuntimeExecutionRequest,
  type ToolResult,
  parseJsonText,
  randomId,
} from '@sharedos/contracts';
import { publishToolCatalog } from '@sharedos/kernel';
import type { Driver, DriverDecision, DriverInput } from '../driver.ts';
import { ESCALATE_TOOL } from '../escalate-tool.ts';
import { escalationReason } from '../escalation-reason.ts';
import { toolNames } from '../mcp/published.ts';
import type { FrameChannel } from './frame-channel.ts';

/** What one frame of a driven harness means. */
export type DrivenFrame =
  | { readonly type: 'tool_call'; readonly id: string; readonly name: string; readonly arguments: Json | undefined }
  | { readonly type: 'complete'; readonly output: Json }
  | { readonly type: 'failed'; readonly code?: string }
  /** It would not do what it was told. */
  | { readonly type: 'command_rejected' };

/** One vendor's frames. It converts, and nothing more: what a call may do is decided where every call is. */
export interface DrivenProtocol {
  start(request: RuntimeExecutionRequest): Json;
  /** @param id The call's, as the harness named it. */
  answer(id: string, result: ToolResult): Json;
  /** Nothing for a frame that does not matter. */
  read(frame: Json): DrivenFrame | undefined;
}

export interface DrivenDriverOptions {
  readonly protocol: DrivenProtocol;
  readonly open: (request: RuntimeExecutionRequest, signal: AbortSignal) => Promise<FrameChannel>;
  /** Ids of calls; random when absent. A harness's own are no evidence of freshness. */
  readonly ids?: () => string;
}

/** Frames that may come before a decision is one of them. */
export const FRAMES_PER_DECISION_MAX = 10_000;

/**
 * Drives a harness over its own frames: the standard loop asks, the harness's next call or ending is the answer. For tests and
 * evaluation, with the transcripts of real ones.
 *
 * @see spec/runtimes.md §2 and §5
 */
export const drivenDriver = ({ protocol, open, ids = randomId }: DrivenDriverOptions): Driver => ({
  open: async (request, signal) => {
    const channel = await open(request, signal);
    const nameOf = toolNames(publishToolCatalog(request.tools));
    const offersEscalation = request.tools.some(({ name }) => name === ESCALATE_TOOL);
    let asked: string | undefined;

    const decisionOf = (frame: DrivenFrame): DriverDecision => {
      switch (frame.type) {
        case 'complete':
          return { type: 'complete', output: frame.output };
        case 'failed':
          return frame.code === undefined ? failed('harness_failed', true) : failed(frame.code);
        case 'command_rejected':
          return failed('harness_command_rejected', true);
        case 'tool_call': {
          const tool = nameOf(frame.name);
          const given = argumentsOf(frame.arguments);
          if (tool === ESCALATE_TOOL && offersEscalation) return { type: 'escalate', reason: escalationReason(given) };
          if (given === undefined) return failed('harness_arguments_unparseable');
          asked = frame.id;
          const { traceId, now } = request.context;
          return { type: 'tool_call', call: { id: ids(), tool, arguments: given, traceId, requestedAt: now } };
        }
      }
    };

    return {
      next: async (input: DriverInput) => {
        channel.send(input.type === 'start' ? protocol.start(request) : protocol.answer(asked ?? input.result.callId, input.result));
        for (let count = 0; count < FRAMES_PER_DECISION_MAX; count += 1) {
          const said = await channel.next();
          if (said === undefined) return failed('harness_ended_without_outcome');
          if ('tooLong' in said) return failed('harness_frame_limit_exceeded');
          const frame = protocol.read(said.frame);
          if (frame !== undefined) return decisionOf(frame);
        }
        return failed('harness_frame_limit_exceeded');
      },
      close: () => channel.close(),
    };
  },
});

/** Arguments come as an object or as the text of one. Anything else is never replaced by an empty one. */
const argumentsOf = (given: Json | undefined): JsonObj | undefined => {
  const read = typeof given === 'string' ? parseJsonText(given) : { ok: true as const, value: given };
  const object = JsonObj.safeParse(read.ok ? read.value : undefined);
  return object.success ? object.data : undefined;
};

const MESSAGES: Readonly<Record<string, string>> = {
  harness_ended_without_outcome: 'The harness ended without saying how.',
  harness_frame_limit_exceeded: 'The harness said more than it may before it decides.',
  harness_arguments_unparseable: 'The harness called a tool with arguments that are not an object.',
  harness_command_rejected: 'The harness would not do what it was told.',
};

const failed = (code: string, retryable?: true): DriverDecision => {
  const error: ProtocolError = {
    code,
    message: MESSAGES[code] ?? 'The harness failed.',
    ...(retryable === undefined ? {} : { retryable }),
  };
  return { type: 'fail', error };
};
