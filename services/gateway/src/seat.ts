import { randomUUID } from 'node:crypto';
import { type AgentStep, type ClientError, type RunningAgent, type SharedOS, newTurn } from '@sharedos/client';
import {
  type AgentAddress,
  type Address,
  type ExecutionEvent,
  type ExecutionResult,
  type JsonObj,
  type PublishedTool,
  type ReachResult,
  type RemoteDecision,
  type Result,
  type ToolResult,
  err,
  ok,
  timestampOf,
} from '@sharedos/contracts';
import { ESCALATE_TOOL, escalationReason, toolNames } from '@sharedos/runtime';

export interface SeatOptions {
  /** The connection of the principal, who asks for the turns. */
  readonly principal: SharedOS;
  /** The connection of the agent, whose steps they are. */
  readonly agent: SharedOS;
  readonly address: AgentAddress;
  readonly purpose: string;
  readonly owner?: Address | undefined;
  /** How long one operation may take, its place in the queue included. */
  readonly timeoutMs: number;
  readonly onDefect: (error: unknown) => void;
}

/** What a turn says of the tools that its agent has. */
export interface Catalogue {
  readonly tools: readonly PublishedTool[];
  readonly catalogHash: string;
  readonly reach: ReachResult;
}

export interface Called {
  readonly result: ToolResult;
  /** Absent where the turn was refused before it had any. */
  readonly catalogue: Catalogue | undefined;
  readonly escalated: boolean;
}

export interface CallOptions {
  readonly id?: string;
  readonly traceId?: string;
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: ExecutionEvent) => void;
}

/**
 * The tools of an agent in the hands of somebody outside. Each operation is a turn of its own that this process decides the steps of,
 * so it is admitted, decided, limited and recorded as every turn is, and sees the grants that stand when it is made.
 */
export interface Seat {
  /** What may be called now; nothing where the agent may not run for the principal. */
  catalogue(options?: CallOptions): Promise<Result<Catalogue, ClientError>>;
  /** One call. A refusal is a result of it; an error says that nobody could find out. */
  call(tool: string, args: JsonObj, options?: CallOptions): Promise<Result<Called, ClientError>>;
  close(): Promise<void>;
}

/** Operations at once; the agent decides as many steps. One more is turned away. */
export const OPERATIONS_MAX = 16;

interface Operation {
  readonly tool?: string;
  readonly args?: JsonObj;
  readonly callId: string;
  catalogue?: Catalogue;
  result?: ToolResult;
}

const EMPTY: Catalogue = { tools: [], catalogHash: '', reach: { status: 'computed', reach: [] } };

/** @returns The seat once the broker lets the steps of the agent through. */
export const openSeat = async (options: SeatOptions): Promise<Result<Seat, ClientError>> => {
  const { principal, agent, address, purpose, owner, timeoutMs, onDefect } = options;
  const running = new Map<string, Operation>();

  const decide = (step: AgentStep): RemoteDecision => {
    const operation = running.get(step.turn.executionId);
    if (operation === undefined) throw new Error('a turn of this agent that nobody asked for here');
    if (step.input.type === 'tool_result') {
      operation.result = step.input.result;
      return step.complete(null);
    }
    const { tools, catalogHash, context } = step.turn;
    operation.catalogue = { tools, catalogHash, reach: context.reach };
    if (operation.tool === undefined) return step.complete(null);
    const tool = toolNames(tools)(operation.tool);
    const mayAsk = tool === ESCALATE_TOOL && tools.some(({ name }) => name === tool);
    return mayAsk ? step.escalate(escalationReason(operation.args)) : step.call(tool, operation.args ?? {}, operation.callId);
  };

  const perform = async (
    operation: Operation,
    { traceId, signal, onEvent }: CallOptions,
  ): Promise<Result<ExecutionResult, ClientError>> => {
    if (running.size >= OPERATIONS_MAX) return busy;
    const executionId = randomUUID();
    running.set(executionId, operation);
    try {
      const turn = newTurn({
        from: principal.principal,
        agent: address,
        purpose,
        payload: null,
        executionId,
        ...(traceId === undefined ? {} : { traceId }),
        ...(owner === undefined ? {} : { owner }),
        options: { maxSteps: 2, maxToolCalls: 1, timeoutMs },
      });
      const submitted = await principal.turns.submit(turn, { resultTimeoutMs: timeoutMs, ...(onEvent === undefined ? {} : { onEvent }) });
      if (!submitted.ok) return submitted;
      const cancel = (): void => void principal.turns.cancel(executionId).catch(onDefect);
      signal?.addEventListener('abort', cancel, { once: true });
      if (signal?.aborted === true) cancel();
      const answer = await submitted.value.result;
      signal?.removeEventListener('abort', cancel);
      return answer.ok ? ok(answer.value.result) : answer;
    } finally {
      running.delete(executionId);
    }
  };

  const seated: Result<RunningAgent, ClientError> = await agent.agent(decide, { stepsAtOnce: OPERATIONS_MAX, onError: onDefect });
  if (!seated.ok) return seated;
  return ok({
    catalogue: async (given = {}) => {
      const operation: Operation = { callId: '' };
      const ended = await perform(operation, given);
      if (!ended.ok) return ended;
      if (operation.catalogue !== undefined) return ok(operation.catalogue);
      return ended.value.status === 'denied' ? ok(EMPTY) : err({ kind: 'unavailable', reason: reasonOf(ended.value) });
    },
    call: async (tool, args, given = {}) => {
      const operation: Operation = { tool, args, callId: given.id ?? randomUUID() };
      const ended = await perform(operation, given);
      if (!ended.ok) return ended;
      const escalated = ended.value.status === 'escalated';
      const result = operation.result ?? resultOfTurn(ended.value, operation.callId, tool);
      return ok({ result, catalogue: operation.catalogue, escalated });
    },
    close: () => seated.value.stop(),
  });
};

const busy: Result<never, ClientError> = err({
  kind: 'refused',
  error: { code: 'rate_limited', message: `at most ${OPERATIONS_MAX} operations run at once: wait for one to end`, retryable: true },
});

const reasonOf = (result: ExecutionResult): string =>
  'error' in result && result.error !== undefined ? `its turn ended with ${result.error.code}` : `its turn ${result.status}`;

/** A turn that ended before its call was answered, as the answer of the call. */
const resultOfTurn = (turn: ExecutionResult, callId: string, tool: string): ToolResult => {
  const answered = { callId, tool, completedAt: turn.completedAt };
  switch (turn.status) {
    case 'escalated':
      return { status: 'succeeded', ...answered, output: { escalated: true, reason: turn.escalation.reason } };
    case 'succeeded':
      return { status: 'failed', ...answered, error: { code: 'internal_error', message: 'The turn ended without its call.' } };
    case 'denied':
      return { status: 'denied', ...answered, error: turn.error };
    case 'failed':
    case 'cancelled':
      return { status: 'failed', ...answered, error: turn.error ?? { code: 'turn_cancelled', message: 'The turn was cancelled.' } };
  }
};

/** A call that came after a human was asked for. */
export const pendingResult = (tool: string): ToolResult => ({
  status: 'denied',
  callId: randomUUID(),
  tool,
  completedAt: timestampOf(Date.now()),
  error: { code: 'escalation_pending', message: 'A human was asked for. Nothing more runs in this session.', retryable: false },
});
