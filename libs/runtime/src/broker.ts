import { type AccessContext, Json, type JsonObj, RuntimeEvent, ToolCall, ToolResult } from '@sharedos/contracts';
import { ATTRIBUTE, SPAN, recordOutcome, withSpan } from '@sharedos/telemetry';
import { z } from 'zod';
import { contractValue, jsonBytes } from './contract-value.ts';
import { BrokerClosed, BrokerLimit, ContractError } from './errors.ts';
import { ANNOTATIONS_BYTES_MAX, RUNTIME_EVENTS_BYTES_MAX, RUNTIME_EVENTS_MAX, RUNTIME_EVENT_BYTES_MAX, type TurnLimits } from './limits.ts';
import type { Repeatability } from './repeatability.ts';
import type { RuntimeHost } from './runtime.ts';
import type { TurnEvents } from './turn-events.ts';
import type { TurnKernel } from './turn-kernel.ts';
import type { TurnStop } from './turn-stop.ts';

const InvokeOptions = z.strictObject({ step: z.int().min(0).optional() }).optional();

/** Refusals of the envelope itself; each costs that call and never the turn. */
const REFUSALS = {
  turn_draining: 'The turn is ending and takes nothing new.',
  step_limit_exceeded: 'The step lies outside the steps of this turn.',
  tool_call_limit_exceeded: 'The turn has made all the calls it may make.',
  tool_unavailable: 'The tool is not available.',
} as const;
type RefusalCode = keyof typeof REFUSALS;

export interface Broker {
  readonly host: RuntimeHost;
  readonly annotations: JsonObj;
  /** Settles when no call is with the kernel any more. */
  idle(): Promise<void>;
  close(): void;
}

/** Mediates the calls of one turn, in the order of spec/turns.md §8. */
export const createBroker = (turn: {
  readonly executionId: string;
  readonly runtimeId: string;
  readonly limits: TurnLimits;
  /** Names of the effective catalogue. */
  readonly offered: ReadonlySet<string>;
  readonly kernel: TurnKernel;
  readonly stop: TurnStop;
  readonly events: TurnEvents;
  readonly repeatability: Repeatability;
  /** The context of an operation that starts now. */
  readonly contextNow: () => AccessContext;
}): Broker => {
  const { limits, offered, kernel, stop, events, repeatability, contextNow } = turn;
  const annotations = new Map<string, Json>();
  const inFlight = new Set<Promise<unknown>>();
  let calls = 0;
  let emitted = 0;
  let emittedBytes = 0;
  let closed = false;

  const assertOpen = (): void => {
    if (closed) throw new BrokerClosed();
    stop.signal.throwIfAborted();
  };

  const refusalOf = (call: ToolCall, step: number | undefined): RefusalCode | undefined => {
    if (stop.draining.aborted) return 'turn_draining';
    // Steps are whole numbers from 0, so no more than `maxSteps` different ones are below it: this is also the count of them.
    if (step !== undefined && step >= limits.maxSteps) return 'step_limit_exceeded';
    if (calls >= limits.maxToolCalls) return 'tool_call_limit_exceeded';
    // Counted before the name is looked at: guessing names must cost what calling costs.
    calls += 1;
    return offered.has(call.tool) ? undefined : 'tool_unavailable';
  };

  const refuse = async (call: ToolCall, code: RefusalCode): Promise<ToolResult> => {
    const context = contextNow();
    const cause = code === 'tool_unavailable' ? { cause: 'not_offered' } : {};
    try {
      await stop.ask(() => kernel.recordRefusal(context, call, { code, ...cause }));
    } catch {
      // Nothing ran, so a refusal that could not be recorded is still a refusal; a stop shows in the next line.
      assertOpen();
    }
    return { status: 'denied', callId: call.id, tool: call.tool, completedAt: context.now, error: { code, message: REFUSALS[code] } };
  };

  const invoke = async (call: ToolCall): Promise<ToolResult> => {
    repeatability.entered(call.tool);
    const answer: unknown = await stop.ask(() => kernel.invokeTool(contextNow(), call, stop.signal));
    assertOpen();
    const result = contractValue(ToolResult, answer);
    if (!result.ok) throw new ContractError('tool result', result.error);
    if (result.value.status === 'denied') repeatability.refused(call.tool);
    return result.value;
  };

  const mediate = (call: ToolCall, step: number | undefined): Promise<ToolResult> =>
    withSpan(SPAN.toolMediate, { attributes: callAttributes(turn.executionId, call) }, async (span) => {
      const named = { callId: call.id, tool: call.tool, ...(step === undefined ? {} : { step }) };
      if (!events.reserve(2, jsonBytes(named) + CODE_BYTES)) throw new BrokerLimit('the turn has told as many events as it may');
      events.record('tool.requested', named);
      const refusal = refusalOf(call, step);
      const result = refusal === undefined ? await invoke(call) : await refuse(call, refusal);
      assertOpen();
      const code = result.status === 'succeeded' ? undefined : result.error.code;
      events.record('tool.completed', { ...named, status: result.status, ...(code === undefined ? {} : { code }) });
      recordOutcome(span, result.status, code);
      return result;
    });

  const invokeTool = async (given: unknown, options: unknown): Promise<ToolResult> => {
    assertOpen();
    const call = contractValue(ToolCall, given);
    if (!call.ok) throw new ContractError('tool call', call.error);
    const declared = contractValue(InvokeOptions, options);
    if (!declared.ok) throw new ContractError('step of a tool call', declared.error);
    const mediated = mediate(call.value, declared.value?.step);
    inFlight.add(mediated);
    try {
      return await mediated;
    } finally {
      inFlight.delete(mediated);
    }
  };

  const host: RuntimeHost = Object.freeze({
    limits,
    // Signals of its own: a plugin that dispatches a false `abort` on them reaches neither the envelope nor a handler.
    draining: AbortSignal.any([stop.draining]),
    invokeTool: (call: ToolCall, options?: { readonly step?: number }) => {
      const answer = invokeTool(call, options);
      // A plugin that calls and never looks must not bring the process down with an unhandled rejection.
      answer.catch(() => undefined);
      return answer;
    },
    emit: (event: RuntimeEvent) => {
      assertOpen();
      const parsed = contractValue(RuntimeEvent, event);
      if (!parsed.ok) throw new ContractError('runtime event', parsed.error);
      const data = { runtime: turn.runtimeId, type: parsed.value.type, data: parsed.value.data };
      const bytes = jsonBytes(data);
      if (bytes > RUNTIME_EVENT_BYTES_MAX) throw new BrokerLimit(`an event is larger than ${RUNTIME_EVENT_BYTES_MAX} bytes`);
      if (emitted >= RUNTIME_EVENTS_MAX || emittedBytes + bytes > RUNTIME_EVENTS_BYTES_MAX || !events.reserve(1, bytes)) {
        throw new BrokerLimit('the turn has told as many events as it may');
      }
      emitted += 1;
      emittedBytes += bytes;
      events.record('runtime.event', data);
    },
    annotate: (key: string, value: Json) => {
      if (closed) return;
      if (typeof key !== 'string' || key === '' || key === 'runtime' || key === '__proto__')
        throw new ContractError('annotation', 'its key is empty or reserved');
      const parsed = contractValue(Json, value);
      if (!parsed.ok) throw new ContractError('annotation', parsed.error);
      const stated = { ...Object.fromEntries(annotations), [key]: parsed.value };
      if (jsonBytes(stated) > ANNOTATIONS_BYTES_MAX)
        throw new BrokerLimit(`the annotations are larger than ${ANNOTATIONS_BYTES_MAX} bytes`);
      annotations.set(key, parsed.value);
    },
  });

  return {
    host,
    get annotations() {
      return Object.fromEntries(annotations);
    },
    idle: async () => {
      while (inFlight.size > 0) await Promise.allSettled(inFlight);
    },
    close: () => {
      closed = true;
    },
  };
};

/** Room that the answering event needs beyond the asking one: a status and a code, half of it counted with each. */
const CODE_BYTES = 32;

const callAttributes = (executionId: string, call: ToolCall) => ({
  [ATTRIBUTE.executionId]: executionId,
  [ATTRIBUTE.callId]: call.id,
  [ATTRIBUTE.tool]: call.tool,
  [ATTRIBUTE.genAiOperationName]: 'execute_tool',
  [ATTRIBUTE.genAiToolName]: call.tool,
  [ATTRIBUTE.genAiToolCallId]: call.id,
});
