import {
  type AccessContext,
  type AuditEvent,
  type CapabilityRequirement,
  RESULT_BYTES_MAX,
  type ToolCall,
  ToolResult,
  type Verdict,
  hashOf,
} from '@sharedos/contracts';
import { authorizationChecked, callDigestOf, contractValue, jsonBytes, readCall, toolInvoked, usageReleased } from '@sharedos/kernel';
import { TurnLost } from '@sharedos/runtime';
import { SPAN, withSpan } from '@sharedos/telemetry';
import type { ToolHandler, ToolRegistry } from '@sharedos/tools';
import { type KeepQuestion, askAboutCall } from './keep-question.ts';
import { type TurnLease, usesIn, usesOnRecord } from './turn-lease.ts';
import type { TurnRecords } from './turn-records.ts';
import { USE_NOT_CLAIMED } from './unclaimed-use.ts';

export interface MediatedCallsPorts {
  readonly registry: ToolRegistry;
  /** What a tool threw; for the operator's log alone. */
  readonly onProviderError: (error: unknown, at: { readonly tool: string; readonly code: string; readonly traceId: string }) => void;
  /** Keeps what a person is asked, and says whether it is kept; where absent, its record is all there is. */
  readonly keepQuestion?: KeepQuestion;
}

/**
 * All results of one turn together, in bytes of their JSON. Whoever ends the turn of a dead owner, or answers a request sent again,
 * reads all of its records: a turn that nobody could read to its end would never get one.
 */
export const TURN_RESULTS_BYTES_MAX = 64 * 1024 * 1024;

/** A result up to here fits into any record, so it will be the answer on record whenever that is written. */
const SMALL_RESULT_BYTES = 64 * 1024;

/** A call whose effect may have happened, and whose answer is not on record. */
interface OpenCall {
  readonly call: ToolCall;
  readonly verdict: Verdict;
}

/** An answer, and whether it is {@link SMALL_RESULT_BYTES} at most. */
interface Handled {
  readonly result: ToolResult;
  readonly isSmall: boolean;
}

/** How a call ended, as its record says it; `code` is what its caller heard. */
interface Outcome {
  readonly status: 'succeeded' | 'denied' | 'failed';
  readonly code?: string;
  readonly cause?: string | undefined;
}
type Refusal = Outcome & { readonly status: 'denied' | 'failed'; readonly code: string };

/**
 * The tool calls of one turn. Each is: ask the authorizer, claim the use, write `admitted`, run once, write `settled`. A refused
 * call has one record, with its decision and its refusal.
 *
 * @see spec/turns.md §9, and docs/architecture.md, "One tool call"
 */
export class MediatedCalls {
  readonly #ports: MediatedCallsPorts;
  readonly #lease: TurnLease;
  readonly #records: TurnRecords;
  /** What each call id of the turn asked for; no more of them than the turn may make calls. */
  readonly #asked = new Map<string, string>();
  readonly #open = new Map<string, OpenCall>();
  /** Calls that may have been handed uses which no record admits. */
  readonly #reserving = new Set<string>();
  #resultBytes = 0;
  /** The catalogue that the turn was given, by its hash: stated on the record of every call. */
  catalogHash: string | undefined;

  constructor(ports: MediatedCallsPorts, lease: TurnLease, records: TurnRecords) {
    this.#ports = ports;
    this.#lease = lease;
    this.#records = records;
  }

  async invoke(context: AccessContext, given: ToolCall, signal: AbortSignal): Promise<ToolResult> {
    signal.throwIfAborted();
    const fingerprint = hashOf({ tool: given.tool, arguments: given.arguments, traceId: given.traceId });
    const before = this.#asked.get(given.id);
    if (before !== undefined) return this.#again(context, given, before === fingerprint);
    this.#asked.set(given.id, fingerprint);

    if (given.traceId !== context.traceId) return this.#refuse(context, given, { status: 'denied', code: 'trace_mismatch' });
    if (!this.#lease.isHeld) return this.#refuse(context, given, { status: 'denied', code: 'authority_unavailable' });
    const handler = this.#ports.registry.get(given.tool);
    if (handler === undefined) return this.#refuse(context, given, { status: 'denied', code: 'tool_unavailable', cause: 'not_registered' });
    if (!this.#lease.toolNamespaces(context).includes(handler.definition.namespace)) {
      return this.#refuse(context, given, { status: 'denied', code: 'tool_unavailable', cause: 'namespace_disabled' });
    }
    return this.#decided(context, handler, given, signal);
  }

  /**
   * Records a call that the envelope refused. It is no answer of the call's id: the refusal spends none, and the id may be that of
   * a call whose effect is under way.
   */
  async recordRefusal(
    context: AccessContext,
    call: ToolCall,
    { code, cause }: { readonly code: string; readonly cause?: string },
  ): Promise<void> {
    await this.#records.before({ type: 'noted' }, this.#invoked(context, call, { status: 'denied', code, cause }, 'envelope'));
  }

  /** The records of calls that a turn which ends now leaves open: nobody can tell what they did. */
  aborted(context: AccessContext): readonly AuditEvent[] {
    return [...this.#open.values()].map(({ call, verdict }) =>
      this.#invoked(context, call, { status: 'failed', code: 'operation_aborted' }, 'kernel', verdict),
    );
  }

  /** Whether the turn may have been handed uses that its records do not admit: then they are to be given back once it is over. */
  get mayReserve(): boolean {
    return this.#reserving.size > 0;
  }

  async #decided(context: AccessContext, handler: ToolHandler, given: ToolCall, signal: AbortSignal): Promise<ToolResult> {
    const { exact, call, thrown } = readCall(handler, context, given);
    const ceiling = handler.definition.requiredCapability;
    const operation = this.#lease.operation('call', given.id);
    // From here on also where no answer comes: the question may have been answered all the same.
    this.#reserving.add(given.id);
    const which = this.#lease.holdsBoundGrants && 'requirement' in exact ? { callDigest: callDigestOf(call) } : {};
    const verdict = await this.#lease.decide(context, { kind: 'tool', ceiling, exact, operation, operationId: given.id, ...which });
    if (verdict === undefined) {
      signal.throwIfAborted();
      return this.#refuse(context, given, { status: 'denied', code: 'authority_unavailable' });
    }
    if (verdict.use === undefined) this.#reserving.delete(given.id);
    if (signal.aborted) return this.#abandon(context, given, verdict, signal);
    const { status, code, cause } = verdict;
    if (status !== 'allowed') {
      if (thrown !== undefined) this.#ports.onProviderError(thrown, { tool: given.tool, code, traceId: context.traceId });
      const asked = await askAboutCall(this.#ports.keepQuestion, this.#lease, context, this.#records.mark(context), call, verdict);
      return this.#refuse(context, given, { status, code, cause }, verdict, [...verdict.audit, ...asked]);
    }
    if (verdict.use !== undefined && !(await this.#lease.spend(context, usesIn(verdict), operation)))
      return this.#unspendable(context, given, { verdict, ceiling, operation });
    if (signal.aborted) return this.#abandon(context, given, verdict, signal);
    return this.#run(context, handler, call, verdict, signal);
  }

  /** The turn stopped between the decision and its record: nothing ran, and what was decided is told with the end, or after it. */
  async #abandon(context: AccessContext, { id }: ToolCall, verdict: Verdict, signal: AbortSignal): Promise<never> {
    await this.#records.late(...verdict.audit, ...this.#released(context, id, verdict));
    signal.throwIfAborted();
    throw new TurnLost('the turn was over');
  }

  /** The uses handed out cannot be spent: to the caller, the counters were not there. What was claimed of them is given back. */
  async #unspendable(
    context: AccessContext,
    call: ToolCall,
    { verdict, ceiling, operation }: { readonly verdict: Verdict; readonly ceiling: CapabilityRequirement; readonly operation: string },
  ): Promise<ToolResult> {
    const uses = usesIn(verdict);
    const denied = authorizationChecked(this.#records.mark(context), {
      request: { resource: verdict.resource ?? ceiling.resource, action: verdict.action ?? ceiling.action },
      decided: USE_NOT_CLAIMED,
      consume: true,
      authorityHash: this.#lease.authorityHash,
      operationId: call.id,
    });
    await this.#records.before({ type: 'released', callId: call.id, uses: [...uses] }, ...this.#released(context, call.id, verdict));
    if (await this.#lease.giveBack(context, uses, operation)) this.#reserving.delete(call.id);
    const refusal = { status: 'denied', code: 'usage_store_unavailable' } as const;
    return this.#refuse(context, call, refusal, { ...verdict, status: 'denied' }, [denied]);
  }

  #released(context: AccessContext, operationId: string, verdict: Verdict): readonly AuditEvent[] {
    return usesIn(verdict).map(({ grantId }) => usageReleased(this.#records.mark(context), { grantId, operationId }));
  }

  /**
   * A call id names one effect of a turn. The same call again is answered from the record; another call under the id is refused,
   * for it would run on the first one's use.
   *
   * @see spec/turns.md §13
   */
  async #again(context: AccessContext, call: ToolCall, same: boolean): Promise<ToolResult> {
    const settled = same ? await this.#records.settled(call.id) : undefined;
    if (settled !== undefined) return settled;
    const refusal: Refusal = same ? { status: 'failed', code: 'replay_pending' } : { status: 'denied', code: 'replay_conflict' };
    await this.#records.before({ type: 'noted' }, this.#invoked(context, call, refusal, 'kernel'));
    return this.#unanswered(call, refusal);
  }

  /** The effect: admitted on record, run once, settled on record. */
  async #run(context: AccessContext, handler: ToolHandler, call: ToolCall, verdict: Verdict, signal: AbortSignal): Promise<ToolResult> {
    // Open from here on: an admission whose fate is unknown counts as one.
    this.#open.set(call.id, { call, verdict });
    await withSpan(SPAN.ledgerAdmit, {}, () =>
      this.#records.before({ type: 'admitted', callId: call.id, tool: call.tool, ...usesOnRecord(verdict) }, ...verdict.audit),
    );
    this.#reserving.delete(call.id);
    // A turn that was stopped meanwhile enters no port; its end says that this call was left open.
    signal.throwIfAborted();
    const handled = await withSpan(SPAN.toolHandler, {}, () => this.#handle(context, handler, call, signal));
    if (this.#records.ended) return this.#settleLate(context, call, handled.result, verdict);
    this.#open.delete(call.id);
    return this.#settle(context, call, handled, verdict);
  }

  async #handle(context: AccessContext, handler: ToolHandler, call: ToolCall, signal: AbortSignal): Promise<Handled> {
    let answered: unknown;
    try {
      answered = await handler.invoke(context, call, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#ports.onProviderError(error, { tool: call.tool, code: 'tool_execution_failed', traceId: context.traceId });
      return this.#unhandled(call, 'tool_execution_failed');
    }
    const parsed = contractValue(ToolResult, answered);
    const fits = parsed.ok && parsed.value.callId === call.id && parsed.value.tool === call.tool;
    const bytes = fits ? jsonBytes(parsed.value) : Infinity;
    if (!fits || bytes > RESULT_BYTES_MAX || this.#resultBytes + bytes > TURN_RESULTS_BYTES_MAX) {
      return this.#unhandled(call, 'invalid_tool_result');
    }
    this.#resultBytes += bytes;
    return { result: parsed.value, isSmall: bytes <= SMALL_RESULT_BYTES };
  }

  #unhandled(call: ToolCall, code: string): Handled {
    return { result: this.#unanswered(call, { status: 'failed', code }), isSmall: true };
  }

  /** The next decision does not wait for this record; the next admission and the end of the turn do. */
  async #settle(context: AccessContext, call: ToolCall, { result, isSmall }: Handled, verdict: Verdict): Promise<ToolResult> {
    const event = this.#outcomeOf(context, call, result, verdict);
    const record = { type: 'settled', callId: call.id, result } as const;
    if (isSmall && !this.#records.keeps) {
      void withSpan(SPAN.ledgerSettle, {}, () => this.#records.behind(record, event)).catch(onlyOfLoss);
      return result;
    }
    const written = await withSpan(SPAN.ledgerSettle, {}, () => this.#records.after(record, event));
    if (written === 'written') return result;
    // A call is never left unsettled for its size; a refusal fits into any record.
    if (result.status === 'failed' && result.error.code === 'invalid_tool_result')
      throw new TurnLost('the failure of a call could not be recorded');
    return this.#settle(context, call, this.#unhandled(call, 'invalid_tool_result'), verdict);
  }

  /**
   * The turn ended meanwhile, with this call on record as aborted, and that stands. What the call came to is known after all, so it is
   * recorded behind the end, unless somebody else wrote there. Nobody waits for it, and nobody is answered with it.
   */
  async #settleLate(context: AccessContext, call: ToolCall, result: ToolResult, verdict: Verdict): Promise<never> {
    const now = { ...context, now: this.#records.now() };
    await this.#records.behindEnd({ type: 'settled', callId: call.id, result, late: true }, this.#outcomeOf(now, call, result, verdict));
    throw new TurnLost('the turn ended while the tool was running');
  }

  #outcomeOf(context: AccessContext, call: ToolCall, result: ToolResult, verdict: Verdict): AuditEvent {
    const outcome: Outcome = result.status === 'succeeded' ? { status: 'succeeded' } : { status: result.status, code: result.error.code };
    return this.#invoked(context, call, outcome, 'kernel', verdict);
  }

  async #refuse(
    context: AccessContext,
    call: ToolCall,
    refusal: Refusal,
    verdict?: Verdict,
    decisions: readonly AuditEvent[] = [],
  ): Promise<ToolResult> {
    const result = this.#unanswered(call, refusal);
    const event = this.#invoked(context, call, refusal, 'kernel', verdict);
    await withSpan(SPAN.ledgerSettle, {}, () => this.#records.before({ type: 'settled', callId: call.id, result }, ...decisions, event));
    return result;
  }

  #invoked(
    context: AccessContext,
    call: ToolCall,
    { status, code, cause }: Outcome,
    source: 'kernel' | 'envelope',
    verdict?: Verdict,
  ): AuditEvent {
    return toolInvoked(this.#records.mark(context), {
      operationId: call.id,
      tool: call.tool,
      outcome: status,
      reason: code,
      source,
      cause,
      resource: verdict?.resource,
      action: verdict?.action,
      grantId: verdict?.status === 'allowed' ? verdict.decision?.matchedGrantId : undefined,
      catalogHash: this.catalogHash,
    });
  }

  #unanswered({ id, tool }: ToolCall, { status, code }: Refusal): ToolResult {
    const message = status === 'denied' ? `The call was refused: ${code}.` : `The call failed: ${code}.`;
    return { status, callId: id, tool, completedAt: this.#records.now(), error: { code, message, retryable: false } };
  }
}

/** A loss is heard by whatever the turn writes next. Anything else is a defect of ours. */
const onlyOfLoss = (error: unknown): void => {
  if (!(error instanceof TurnLost)) throw error;
};
