import {
  type AccessContext,
  ExecutionRequest,
  type ExecutionEvent,
  type ExecutionResult,
  type Instant,
  type RuntimeManifest,
  RuntimeTurnOutcome,
  timestampOf,
} from '@sharedos/contracts';
import { ATTRIBUTE, SPAN, recordOutcome, withSpan } from '@sharedos/telemetry';
import type { z } from 'zod';
import { bindingMismatch } from './binding.ts';
import { type Broker, createBroker } from './broker.ts';
import { contractValue, frozenCopy, jsonBytes } from './contract-value.ts';
import { type Ending, endFacts, errorOf, resultOf, terminalEvent } from './ending.ts';
import { ContractError } from './errors.ts';
import { ESCALATE_TOOL } from './escalate-tool.ts';
import { type Lease, createLease } from './lease.ts';
import { EnvelopeDefaults, limitsInForce, outcomeBytesMax } from './limits.ts';
import { type Repeatability, createRepeatability } from './repeatability.ts';
import { type Runtime, registerRuntime } from './runtime.ts';
import { runtimeRequest } from './runtime-request.ts';
import { type Timers, systemTimers } from './timers.ts';
import { type TurnEvents, createTurnEvents } from './turn-events.ts';
import { type TurnKernel, TurnLost } from './turn-kernel.ts';
import { type TurnStop, createTurnStop } from './turn-stop.ts';

/** Told of what was thrown, on the host alone: it may hold secrets. Never for a cancellation; its own throw is ignored. */
export type TurnErrorHook = (error: unknown, turn: { readonly executionId: string; readonly traceId: string }) => void;

export interface EnvelopeOptions {
  /** Chosen by trusted configuration, never by a message. */
  readonly runtime: Runtime;
  /** Now, in milliseconds since the epoch. */
  readonly clock: () => Instant;
  /** Fresh identifiers, for events. */
  readonly ids: () => string;
  readonly defaults: EnvelopeDefaults;
  readonly timers?: Timers;
  readonly onTurnError?: TurnErrorHook;
}

/** What belongs to one turn. */
export interface TurnPorts {
  readonly kernel: TurnKernel;
  /**
   * The runtime of this turn's agent; the envelope's own when absent. Asked for once, when the turn is admitted. What it throws ends the
   * turn `runtime_failed`: which runtime an agent has is configuration, and a mistake in it is the host's.
   */
  readonly chooseRuntime?: () => Runtime;
  /** The caller's cancel. */
  readonly signal?: AbortSignal;
  /**
   * Watches the turn live; events are frozen and its failure changes nothing. The terminal event comes after the terminal
   * record, so nobody hears of an ending that another owner may have written differently.
   */
  readonly onEvent?: (event: ExecutionEvent) => void;
}

export interface Envelope {
  readonly manifest: RuntimeManifest;
  /**
   * Runs one bounded turn to its one result.
   *
   * Rejects with {@link ContractError} for a request that breaks its contract: then there was no turn, no event and no record.
   * Rejects with `TurnLost` when this process no longer owns the turn: then it published and recorded nothing more.
   * Everything else, the plugin's failures included, is a result.
   *
   * A terminal record that could not be written changes no result: the hook is told. A kernel whose callers must not hear of an
   * unrecorded ending rejects `end` with `TurnLost`.
   *
   * @see spec/turns.md §4, §8, §10–§12
   */
  run(request: ExecutionRequest, ports: TurnPorts): Promise<ExecutionResult>;
}

/** @throws ContractError on a default out of its range, a runtime without a run function, or a manifest that is not one. */
export const createEnvelope = (options: EnvelopeOptions): Envelope => {
  const defaults = contractValue(EnvelopeDefaults, options.defaults);
  if (!defaults.ok) throw new ContractError('set of turn limits', defaults.error);
  const runtime = registerRuntime(options.runtime);
  const fixed: Fixed = { ...options, runtime, defaults: defaults.value, timers: options.timers ?? systemTimers };
  return {
    manifest: runtime.manifest,
    run: async (given, ports) => {
      const parsed = contractValue(ExecutionRequest, given);
      if (!parsed.ok) throw new ContractError('execution request', parsed.error);
      const request = parsed.value;
      return withSpan(SPAN.turn, { attributes: turnAttributes(request) }, async (span) => {
        const result = await runValidTurn(request, fixed, ports);
        span.setAttribute(ATTRIBUTE.status, result.status);
        recordOutcome(span, result.status, 'error' in result ? result.error?.code : undefined);
        return result;
      });
    },
  };
};

/** {@link createEnvelope} and its one run, for a host that has one turn. */
export const runTurn = async (request: ExecutionRequest, options: EnvelopeOptions & TurnPorts): Promise<ExecutionResult> =>
  createEnvelope(options).run(request, options);

type Fixed = EnvelopeOptions & { readonly defaults: z.output<typeof EnvelopeDefaults>; readonly timers: Timers };

/** One turn on its way; `broker` and `repeatability` come into being with the catalogue. */
interface Turn {
  readonly request: ExecutionRequest;
  readonly fixed: Fixed;
  readonly kernel: TurnKernel;
  readonly events: TurnEvents;
  readonly startedAt: string;
  readonly report: (error: unknown) => void;
  readonly choose: () => Runtime;
  /** The envelope's own until the turn is admitted. */
  runtime: Runtime;
  broker?: Broker;
  repeatability?: Repeatability;
}

const runValidTurn = async (request: ExecutionRequest, fixed: Fixed, ports: TurnPorts): Promise<ExecutionResult> => {
  const { clock, ids, onTurnError } = fixed;
  const named = { executionId: request.executionId, traceId: request.context.traceId };
  const turn: Turn = {
    request,
    fixed,
    kernel: ports.kernel,
    choose: () => (ports.chooseRuntime === undefined ? fixed.runtime : registerRuntime(ports.chooseRuntime())),
    runtime: fixed.runtime,
    startedAt: timestampOf(clock()),
    events: createTurnEvents({ ...named, clock, ids, onEvent: ports.onEvent }),
    report: (error) => {
      void (async () => onTurnError?.(error, named))().catch(() => undefined);
    },
  };

  const mismatch = bindingMismatch(request);
  if (mismatch !== undefined) return end(turn, { status: 'denied', code: mismatch });

  const { timeoutMs } = limitsInForce(request.options, fixed.defaults);
  const stop = createTurnStop({ timeoutMs, drainGraceMs: fixed.defaults.drainGraceMs, timers: fixed.timers, caller: ports.signal });
  const lease = createLease(ports.kernel, stop);
  let ending: Ending;
  try {
    ending = stop.signal.aborted ? { status: 'cancelled', retryable: true, unheard: true } : await endingOf(turn, stop, lease);
  } finally {
    // On every path, and before the terminal record: what a plugin kept is useless, and no authority outlives the turn.
    turn.broker?.close();
    try {
      lease.release();
    } catch (error) {
      turn.report(error);
    }
    stop.release();
  }
  return end(turn, ending);
};

/** Does the work of the turn, and judges what came of it: audit outage before cancellation before failure (spec/turns.md §12). */
const endingOf = async (turn: Turn, stop: TurnStop, lease: Lease): Promise<Ending> => {
  let ended: Ending | undefined;
  let thrown: unknown;
  try {
    ended = await work(turn, stop, lease);
  } catch (error) {
    thrown = error;
  }
  const running = turn.broker !== undefined;
  if (running && stop.draining.aborted && (ended === undefined || stop.outage)) {
    // What is already with the kernel may still answer, until the hard signal.
    await stop.until(turn.broker?.idle() ?? Promise.resolve()).catch(() => undefined);
  }
  if (stop.lost !== undefined) throw stop.lost;
  const harmless = turn.repeatability?.harmless ?? true;
  if (stop.outage) return { status: 'failed', source: 'envelope', error: errorOf('audit_unavailable', harmless) };
  if (stop.signal.aborted) return { status: 'cancelled', retryable: harmless };
  if (ended !== undefined) return truthfulRetry(ended, harmless);
  if (running && stop.draining.aborted) return { status: 'cancelled', retryable: harmless };
  turn.report(thrown);
  return { status: 'failed', source: 'envelope', error: errorOf('runtime_failed', harmless) };
};

/** A runtime may say that trying again is safe only where the calls of the turn agree. */
const truthfulRetry = (ending: Ending, harmless: boolean): Ending =>
  ending.status === 'failed' && ending.error.retryable === true && !harmless
    ? { ...ending, error: { ...ending.error, retryable: false } }
    : ending;

const work = async (turn: Turn, stop: TurnStop, lease: Lease): Promise<Ending> => {
  const { request, fixed, kernel, events } = turn;
  // The caller's `now` is never used: the envelope's clock says when the turn is admitted.
  const context = contextAt(request, fixed.clock());
  await lease.open(context);
  const admission = await stop.ask(() => kernel.admit(request.agent, stop.signal));
  if (!admission.allowed) return { status: 'denied', code: admission.reasonCode };
  turn.runtime = turn.choose();
  const { manifest } = turn.runtime;

  const listed = await stop.ask(() => kernel.list(stop.signal));
  const asked = new Set(request.tools.map((tool) => tool.name));
  const tools = frozenCopy(listed.tools.filter((tool) => asked.has(tool.name)));
  kernel.offered(tools);
  const offered = new Set(tools.map((tool) => tool.name));
  const sanitised = runtimeRequest(request, context, listed.reach, tools);
  const repeatability = createRepeatability(tools);
  const broker = createBroker({
    executionId: request.executionId,
    runtimeId: manifest.id,
    limits: limitsInForce(request.options, fixed.defaults),
    offered,
    kernel,
    stop,
    events,
    repeatability,
    contextNow: () => contextAt(request, fixed.clock()),
  });
  turn.broker = broker;
  turn.repeatability = repeatability;

  const { id, version, protocolVersion } = manifest;
  events.record('turn.started', { agent: request.agent, visibleTools: [...offered], runtime: { id, version, protocolVersion } });
  const signal = AbortSignal.any([stop.signal]);
  const outcome = contractValue(RuntimeTurnOutcome, await stop.until((async () => turn.runtime.run(sanitised, broker.host, signal))()));
  if (!outcome.ok || jsonBytes(outcome.value) > outcomeBytesMax(events.reservedBytes)) {
    return { status: 'failed', source: 'envelope', error: errorOf('invalid_runtime_outcome') };
  }
  return endingOfOutcome(turn, stop, outcome.value, offered);
};

const endingOfOutcome = async (turn: Turn, stop: TurnStop, outcome: RuntimeTurnOutcome, offered: ReadonlySet<string>): Promise<Ending> => {
  const metadata = outcome.metadata === undefined ? {} : { metadata: outcome.metadata };
  switch (outcome.type) {
    case 'complete':
      return { status: 'succeeded', output: outcome.output, ...metadata };
    case 'fail':
      return { status: 'failed', source: 'runtime', error: outcome.error, ...metadata };
    case 'escalate': {
      // Asking a human is a capability like any other: a runtime that was not given it cannot end a turn with it.
      if (!offered.has(ESCALATE_TOOL)) return { status: 'failed', source: 'envelope', error: errorOf('tool_unavailable'), ...metadata };
      const context = contextAt(turn.request, turn.fixed.clock());
      await stop.ask(() => turn.kernel.recordEscalation(context, { reason: outcome.reason, executionId: turn.request.executionId }));
      const escalation = { reason: outcome.reason, reviewer: context.owner, requestedAt: context.now, status: 'pending' } as const;
      return { status: 'escalated', escalation, ...metadata };
    }
  }
};

/** Writes the ending down: the terminal event, the result, the one terminal record; only then is the ending told. */
const end = async (turn: Turn, ending: Ending): Promise<ExecutionResult> => {
  const { request, fixed, kernel, events, startedAt } = turn;
  const completed = fixed.clock();
  const last = terminalEvent(ending);
  const told = ending.status === 'cancelled' && ending.unheard === true ? undefined : events.append(last.type, last.data);
  const result = resultOf(ending, {
    request,
    manifest: turn.runtime.manifest,
    annotations: turn.broker?.annotations ?? {},
    events: events.recorded,
    startedAt,
    completedAt: timestampOf(completed),
  });
  try {
    await kernel.end(contextAt(request, completed), result, endFacts(ending));
  } catch (error) {
    if (error instanceof TurnLost) throw error;
    turn.report(error);
  }
  if (told !== undefined) events.tell(told);
  return result;
};

const contextAt = (request: ExecutionRequest, now: Instant): AccessContext => Object.freeze({ ...request.context, now: timestampOf(now) });

const turnAttributes = (request: ExecutionRequest) => ({
  [ATTRIBUTE.executionId]: request.executionId,
  [ATTRIBUTE.traceId]: request.context.traceId,
  [ATTRIBUTE.namespaceId]: request.context.namespaceId,
  [ATTRIBUTE.genAiOperationName]: 'invoke_agent',
  [ATTRIBUTE.genAiAgentId]: request.agent.agentId,
});
