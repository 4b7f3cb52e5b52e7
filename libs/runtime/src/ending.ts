import {
  type Escalation,
  type ExecutionEvent,
  type ExecutionRequest,
  type ExecutionResult,
  INFRASTRUCTURE_CODES,
  type Json,
  type JsonObj,
  PROTOCOL_VERSION,
  type ProtocolError,
  type RuntimeManifest,
} from '@sharedos/contracts';
import { sealed } from './contract-value.ts';

/** How a turn came to its end, before it is written down. @see spec/turns.md §10 */
export type Ending =
  | { readonly status: 'succeeded'; readonly output: Json; readonly metadata?: JsonObj }
  | { readonly status: 'denied'; readonly code: string }
  | { readonly status: 'failed'; readonly source: 'envelope' | 'runtime'; readonly error: ProtocolError; readonly metadata?: JsonObj }
  /** `unheard`: the caller had given up before the turn began, and no event tells of it. */
  | { readonly status: 'cancelled'; readonly retryable: boolean; readonly unheard?: true }
  | { readonly status: 'escalated'; readonly escalation: Escalation; readonly metadata?: JsonObj };

/** Fixed sentences: a code says everything, and a text that was thrown never leaves the host. */
const MESSAGES: Readonly<Record<string, string>> = {
  turn_cancelled: 'The turn was cancelled.',
  runtime_failed: 'The runtime of the turn failed.',
  audit_unavailable: 'A record that had to precede an effect could not be written.',
  invalid_runtime_outcome: 'The runtime gave an outcome that is not one.',
  tool_unavailable: 'The tool is not available.',
};

export const errorOf = (code: string, retryable?: boolean): ProtocolError => ({
  code,
  message: MESSAGES[code] ?? `The turn was refused: ${code}.`,
  ...(retryable === undefined ? {} : { retryable }),
});

export const terminalEvent = (ending: Ending): { readonly type: string; readonly data: Json } => {
  switch (ending.status) {
    case 'succeeded':
      return { type: 'turn.completed', data: {} };
    case 'denied':
      return { type: 'turn.denied', data: { code: ending.code } };
    case 'failed':
      return { type: 'turn.failed', data: { code: ending.error.code, source: ending.source } };
    case 'cancelled':
      return { type: 'turn.cancelled', data: {} };
    case 'escalated':
      return { type: 'turn.escalated', data: { reason: ending.escalation.reason, reviewer: ending.escalation.reviewer } };
  }
};

/** What the terminal record says beside the result. A runtime cannot claim an outage: only our own codes are fail-closed. */
export const endFacts = (ending: Ending): { readonly endedBy?: 'envelope' | 'runtime'; readonly failClosed: boolean } => {
  switch (ending.status) {
    case 'failed':
      return { endedBy: ending.source, failClosed: ending.source === 'envelope' && INFRASTRUCTURE_CODES.has(ending.error.code) };
    case 'denied':
      return { failClosed: INFRASTRUCTURE_CODES.has(ending.code) };
    case 'cancelled':
      return { endedBy: 'envelope', failClosed: false };
    default:
      return { failClosed: false };
  }
};

export const resultOf = (
  ending: Ending,
  turn: {
    readonly request: ExecutionRequest;
    readonly manifest: RuntimeManifest;
    readonly annotations: JsonObj;
    readonly events: readonly ExecutionEvent[];
    readonly startedAt: string;
    readonly completedAt: string;
  },
): ExecutionResult => {
  const stated = 'metadata' in ending ? ending.metadata : undefined;
  const common = {
    version: PROTOCOL_VERSION as typeof PROTOCOL_VERSION,
    executionId: turn.request.executionId,
    traceId: turn.request.context.traceId,
    events: [...turn.events] as ExecutionResult['events'],
    startedAt: turn.startedAt,
    completedAt: turn.completedAt,
    // The manifest last: nothing a runtime says can name another runtime.
    metadata: { ...stated, ...turn.annotations, runtime: turn.manifest as unknown as JsonObj },
  };
  switch (ending.status) {
    case 'succeeded':
      return sealed({ ...common, status: 'succeeded', output: ending.output });
    case 'denied':
      return sealed({ ...common, status: 'denied', error: errorOf(ending.code) });
    case 'failed':
      return sealed({ ...common, status: 'failed', error: ending.error });
    case 'cancelled':
      return sealed({ ...common, status: 'cancelled', error: errorOf('turn_cancelled', ending.retryable) });
    case 'escalated':
      return sealed({ ...common, status: 'escalated', escalation: ending.escalation });
  }
};
