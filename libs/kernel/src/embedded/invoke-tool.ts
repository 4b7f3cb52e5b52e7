import { type AccessContext, type CapabilityRequirement, ToolCall, ToolResult, instantOf } from '@sharedos/contracts';
import { authorizationChecked, toolInvoked } from '../audit.ts';
import { ContractError } from '../contract-errors.ts';
import { contractValue, frozenCopy } from '../contract-value.ts';
import { type ReadCall, readCall } from '../read-call.ts';
import { SPAN, measure } from '../spans.ts';
import { decideToolCall } from '../tool-call.ts';
import type { ToolHandler } from '../tool-handler.ts';
import type { ToolRegistry } from '../tool-registry.ts';
import { catalogueOf } from './catalogue.ts';
import {
  type Held,
  type KernelCore,
  type KernelOperationOptions,
  compiledAuthority,
  heldAuthority,
  instantIn,
  refusal,
  signalOr,
} from './core.ts';
import { once } from './once.ts';

export interface InvokeToolOptions extends KernelOperationOptions {
  /** Hash of the catalogue that the caller was shown; the one last listed in its turn when absent. */
  readonly catalogHash?: string;
  /** The execution that the call belongs to; where operations are remembered, its id is one of it. The trace stands for it when absent. */
  readonly executionId?: string;
}

/** What of a call's end goes on its record, beside its status and code. */
interface Facts {
  readonly cause?: string | undefined;
  readonly grantId?: string | undefined;
  readonly requirement?: CapabilityRequirement | undefined;
}

/** One call on its way through the checks. */
interface Calling {
  readonly core: KernelCore;
  readonly context: AccessContext;
  readonly call: ToolCall;
  readonly signal: AbortSignal | undefined;
  readonly catalogHash: string | undefined;
}

/**
 * Decides one call from its exact arguments, runs it at most once and records how it ended.
 *
 * @throws ContractError for what is no call, AuditUnavailableError when the decision could not be recorded, and the signal's reason.
 * @see spec/turns.md §9
 */
export const invokeTool = (
  core: KernelCore,
  given: AccessContext,
  givenCall: ToolCall,
  { signal, catalogHash, executionId }: InvokeToolOptions = {},
): Promise<ToolResult> =>
  measure(
    core.spans,
    SPAN.TOOL_INVOKE,
    async (scope) => {
      const context = core.enter(given, signal);
      const call = contractValue(ToolCall, givenCall);
      if (!call.ok) throw new ContractError('tool call', call.error);
      scope.set('callId', call.value.id);
      scope.set('tool', call.value.tool);
      const shown = catalogHash ?? core.leaseOf(context)?.listedHash;
      return present({ core, context, call: call.value, signal, catalogHash: shown }, executionId);
    },
    (result, scope) => scope.set('status', result.status),
  );

const present = async (calling: Calling, executionId: string | undefined): Promise<ToolResult> => {
  const { core, context, call } = calling;
  const { id, tool, arguments: given, traceId } = call;
  if (traceId !== context.traceId) return refuse(calling, 'denied', 'trace_mismatch');
  return once(core, {
    key: { namespaceId: context.namespaceId, actor: context.actor, kind: 'tool', scope: executionId ?? traceId, id },
    context,
    // When it was asked for has no meaning: whoever presents it again may say another instant.
    input: { tool, arguments: given, traceId },
    schema: ToolResult,
    refuse: (status, code) => refuse(calling, status, code),
    run: () => mediate(calling),
  });
};

const mediate = async (calling: Calling): Promise<ToolResult> => {
  const { core, context, call, signal } = calling;
  const held = await core.hold(context, signal);
  if (core.options.refuseStaleCalls === true && isStale(call, context, held)) return refuse(calling, 'denied', 'stale_request');
  if (held.resolution.status === 'unavailable') return refuse(calling, 'denied', 'authority_unavailable');
  let registry: ToolRegistry;
  try {
    registry = await catalogueOf(core, held.lease, context, signal);
  } catch (error) {
    signal?.throwIfAborted();
    report(calling, error, 'tool_catalog', 'tool_catalog_unavailable');
    return refuse(calling, 'failed', 'tool_catalog_unavailable');
  }
  const handler = registry.get(call.tool);
  if (handler === undefined) return refuse(calling, 'denied', 'tool_unavailable', { cause: 'not_registered' });
  if (!context.enabledToolNamespaces.includes(handler.definition.namespace))
    return refuse(calling, 'denied', 'tool_unavailable', { cause: 'namespace_disabled' });
  return decideAndRun(calling, held.resolution, handler);
};

const decideAndRun = async (
  calling: Calling,
  resolution: Extract<Held['resolution'], { status: 'resolved' }>,
  handler: ToolHandler,
): Promise<ToolResult> => {
  const { core, context, call, signal } = calling;
  const { installed, run, reportCeiling } = core.decider;
  let read: ReadCall | undefined;
  const ceiling = handler.definition.requiredCapability;
  const verdict = await measure(
    core.spans,
    SPAN.AUTHORIZE,
    () =>
      run(
        decideToolCall(compiledAuthority(core, resolution), {
          ceiling,
          // Read only once the tool is known to be seen: a parser is the host's code, and works for nobody else.
          exact: () => (read = readCall(handler, context, call)).exact,
          now: instantIn(context),
          checks: installed.checks,
          ancestorsMax: installed.ancestorsMax,
          hostCeiling: installed.ceiling,
        }),
      ),
    ({ code }, scope) => scope.set('reasonCode', code),
  );
  const authorityHash = resolution.authority.snapshot.hash;
  for (const recorded of verdict.recorded) {
    reportCeiling(recorded.decided, context, recorded.request);
    await core.recordBefore(authorizationChecked(core.mark(context), { ...recorded, authorityHash, operationId: call.id }));
  }
  const { resource, action } = verdict;
  const requirement = resource === undefined || action === undefined ? undefined : { resource, action };
  const facts = { cause: verdict.cause, grantId: verdict.grantId, requirement };
  if (read !== undefined && 'thrown' in read) report(calling, read.thrown, 'tool', verdict.code);
  if (verdict.status !== 'allowed' || read === undefined)
    return refuse(calling, verdict.status === 'failed' ? 'failed' : 'denied', verdict.code, facts);
  signal?.throwIfAborted();
  return execute(calling, handler, read.call, facts);
};

const execute = async (calling: Calling, handler: ToolHandler, call: ToolCall, facts: Facts): Promise<ToolResult> => {
  const { core, context, signal } = calling;
  let answered: unknown;
  try {
    answered = await measure(core.spans, SPAN.TOOL_HANDLER, (scope) => {
      scope.set('callId', call.id);
      scope.set('tool', call.tool);
      return handler.invoke(context, call, signalOr(signal));
    });
  } catch (error) {
    if (signal?.aborted === true) {
      // It was entered and then stopped: whether it had its effect, nobody can tell.
      await settle(calling, 'failed', 'operation_aborted', facts);
      throw signal.reason;
    }
    report(calling, error, 'tool', 'tool_execution_failed', facts);
    return refuse(calling, 'failed', 'tool_execution_failed', facts);
  }
  const result = contractValue(ToolResult, answered);
  if (!result.ok || result.value.callId !== call.id || result.value.tool !== call.tool)
    return refuse(calling, 'failed', 'invalid_tool_result', facts);
  const { status } = result.value;
  await settle(calling, status, result.value.status === 'succeeded' ? undefined : result.value.error.code, facts);
  return result.value;
};

const refuse = async (calling: Calling, status: 'denied' | 'failed', code: string, facts: Facts = {}): Promise<ToolResult> => {
  await settle(calling, status, code, facts);
  const { call, context } = calling;
  return frozenCopy({ status, callId: call.id, tool: call.tool, completedAt: context.now, error: refusal(code) });
};

const settle = (
  { core, context, call, catalogHash }: Calling,
  outcome: 'succeeded' | 'denied' | 'failed',
  reason: string | undefined,
  { cause, grantId, requirement }: Facts,
): Promise<void> =>
  core.recordAfter(
    toolInvoked(core.mark(context), {
      operationId: call.id,
      tool: call.tool,
      outcome,
      reason,
      source: 'kernel',
      cause,
      resource: requirement?.resource,
      action: requirement?.action,
      grantId,
      catalogHash,
    }),
  );

const report = (
  { core, context, call }: Calling,
  error: unknown,
  kind: 'tool' | 'tool_catalog',
  reasonCode: string,
  { requirement }: Facts = {},
): void =>
  core.report(error, {
    kind,
    reasonCode,
    traceId: context.traceId,
    namespaceId: context.namespaceId,
    operationId: call.id,
    tool: call.tool,
    ...requirement,
  });

/** Inside a turn, a call made before the turn was admitted or after this operation's instant was made for something else. */
const isStale = ({ requestedAt }: ToolCall, context: AccessContext, { resolution, inTurn }: Held): boolean => {
  if (!inTurn || resolution.status !== 'resolved') return false;
  const requested = instantOf(requestedAt) ?? NaN;
  const admittedAt = heldAuthority(resolution).admittedAt ?? NaN;
  return !(requested >= admittedAt && requested <= instantIn(context));
};
