import type { AuthorityClient } from '@sharedos/bus';
import {
  type AccessContext,
  type AgentAddress,
  type AuditEvent,
  type AuthorityQuestion,
  type AuthorizationDecision,
  type ExecutionResult,
  INFRASTRUCTURE_CODES,
  type Instant,
  type OpenedAuthority,
  RESULT_BYTES_MAX,
  type ReachResult,
  type Revision,
  type ToolCall,
  type ToolDefinition,
  ToolResult,
  type UseTaken,
  type Verdict,
  addressPath,
  hashOf,
  instantOf,
  timestampOf,
} from '@sharedos/contracts';
import {
  type AuditMark,
  type AuthorityFailure,
  type Decided,
  authorityResolved,
  authorizationChecked,
  catalogHash,
  decidedWithoutAuthority,
  escalationRequested,
  publishTool,
  toolCatalogListed,
  toolInvoked,
  turnEnded,
} from '@sharedos/kernel';
import type { Ledger } from '@sharedos/ledger';
import { AuditOutage, type TurnKernel, TurnLost } from '@sharedos/runtime';
import { SPAN, recordOutcome, withSpan } from '@sharedos/telemetry';
import type { ToolHandler, ToolRegistry } from '@sharedos/tools';
import { readCall } from './call-requirement.ts';
import type { TurnWrites } from './turn-writes.ts';

export interface LedgerTurnPorts {
  readonly authority: AuthorityClient;
  readonly ledger: Ledger;
  readonly registry: ToolRegistry;
  readonly clock: () => Instant;
  readonly ids: () => string;
  /** Tells the authorizers that a use handed out in this epoch had been spent before. */
  readonly distrust: (namespaceId: string, epoch: string) => Promise<void>;
  /** What a tool threw; for the operator's log alone. */
  readonly onProviderError: (error: unknown, at: { readonly tool: string; readonly code: string; readonly traceId: string }) => void;
}

export interface TurnIdentity {
  readonly turnId: string;
  /** The turn's own name among operations; the stem of the names that uses are taken under. */
  readonly operation: string;
  readonly executionId: string;
  /** Longest the turn may last, in milliseconds. */
  readonly validForMs: number;
}

/** A call that was admitted and has not been settled: its effect may have happened. */
interface OpenCall {
  readonly call: ToolCall;
  readonly verdict: Verdict;
}

type Refusal = { readonly status: 'denied' | 'failed'; readonly code: string; readonly cause?: string | undefined };

/**
 * The kernel of one turn, over the authorizer and the ledger. Authority, registry and records stay on this side; the envelope
 * and the runtime see none of them.
 *
 * Each call is: ask the authorizer, claim the use, write `admitted`, run, write `settled`. The audit records travel inside those
 * writes, so none of them can be missing for what happened.
 *
 * @see docs/architecture.md, "One tool call"
 */
export class LedgerTurn implements TurnKernel {
  readonly #ports: LedgerTurnPorts;
  readonly #writes: TurnWrites;
  readonly #turn: TurnIdentity;
  readonly #openCalls = new Map<string, OpenCall>();
  /** Calls of this turn by id, with what each asked. */
  readonly #calls = new Map<string, string>();
  #context: AccessContext | undefined;
  #opened: OpenedAuthority | undefined;
  #failure: AuthorityFailure = { code: 'grant_source_failed' };
  #admissionUse: UseTaken | undefined;
  /** Records made before there was anything to write them with. */
  #pending: AuditEvent[] = [];
  #order = 0;
  #offeredHash: string | undefined;
  #ended = false;

  constructor(ports: LedgerTurnPorts, writes: TurnWrites, turn: TurnIdentity) {
    this.#ports = ports;
    this.#writes = writes;
    this.#turn = turn;
  }

  /** The revision that the turn sees, once it is open. */
  get revision(): Revision | undefined {
    return this.#opened?.revision;
  }

  async open(context: AccessContext): Promise<void> {
    this.#context = context;
    const { turnId, validForMs } = this.#turn;
    const opened = await this.#ports.authority.open({ turnId, context, validForMs, auditId: this.#ports.ids() });
    if (opened.ok) {
      this.#opened = opened.value;
      if (opened.value.status === 'unavailable') this.#failure = failureOf(opened.value);
      return;
    }
    if (opened.error.code === 'audit_unavailable') throw new AuditOutage(opened.error.reason);
    this.#pending.push(authorityResolved(this.#mark(context), { failure: this.#failure }, NO_HOST_PORTS));
  }

  async admit(agent: AgentAddress): Promise<AuthorizationDecision> {
    const context = this.#held();
    const request = { resource: { namespace: 'sharedos.execution', path: [...addressPath(agent)], owner: context.owner }, action: 'invoke' };
    const verdict = await this.#decide(context, { kind: 'authorize', request, consume: true, operation: this.#operation('admission') });
    if (verdict === undefined) return this.#decidedHere(context, request, decidedWithoutAuthority(this.#failure));
    const decision = verdict.decision ?? { allowed: false, reasonCode: verdict.code };
    if (verdict.use !== undefined && !(await this.#spend(context, verdict.use, this.#operation('admission')))) {
      return this.#decidedHere(context, request, USE_NOT_CLAIMED);
    }
    this.#admissionUse = verdict.use;
    this.#pending.push(...verdict.audit);
    return decision;
  }

  async list(): Promise<{ readonly reach: ReachResult; readonly tools: readonly ToolDefinition[] }> {
    const context = this.#held();
    const { enabledToolNamespaces } = context;
    const registered = this.#ports.registry.list().map(({ definition }) => definition);
    const enabled = registered.filter(({ namespace }) => enabledToolNamespaces.includes(namespace));
    const listed = await withSpan(SPAN.toolCatalogue, {}, () => this.#discover(context, enabled));

    const revision = this.#opened?.revision;
    if (revision === undefined) throw new AuditOutage('a turn without authority is never admitted');
    const { use, audit } = { use: this.#admissionUse, audit: this.#take(listed.record) };
    await this.#writes.before({ type: 'opened', at: this.#now(), revision, ...(use === undefined ? {} : { use }), audit });
    return listed;
  }

  offered(tools: readonly ToolDefinition[]): void {
    this.#offeredHash = catalogHash(tools.map(publishTool));
  }

  async invokeTool(context: AccessContext, call: ToolCall, signal: AbortSignal): Promise<ToolResult> {
    return withSpan(SPAN.toolInvoke, {}, async (span) => {
      const result = await this.#invoke(context, call, signal);
      recordOutcome(span, result.status, result.status === 'succeeded' ? undefined : result.error.code);
      return result;
    });
  }

  async recordRefusal(context: AccessContext, call: ToolCall, { code, cause }: { readonly code: string; readonly cause?: string }): Promise<void> {
    try {
      await this.#settleRefused(context, call, { status: 'denied', code, cause }, [], 'envelope');
    } catch (error) {
      if (error instanceof TurnLost) throw error;
    }
  }

  async recordEscalation(context: AccessContext, { reason }: { readonly reason: string }): Promise<void> {
    const { executionId } = this.#turn;
    const event = escalationRequested(this.#mark(context), { detail: reason, reviewer: context.owner, operationId: executionId });
    await this.#writes.before({ type: 'noted', at: this.#now(), audit: this.#take(event) });
  }

  /** There is nothing to give back: the lease is a token that nobody asks about any more. */
  close(): void {}

  async end(context: AccessContext, result: ExecutionResult, { endedBy }: { readonly endedBy?: 'envelope' | 'runtime' }): Promise<void> {
    this.#ended = true;
    const aborted = [...this.#openCalls.values()].map(({ call, verdict }) =>
      this.#called(context, call, { status: 'failed', code: 'operation_aborted' }, 'kernel', verdict),
    );
    const code = 'error' in result ? result.error?.code : undefined;
    const ending = turnEnded(this.#mark(context), { executionId: this.#turn.executionId, status: result.status, code, endedBy });
    const record = { type: 'ended', at: this.#now(), by: 'owner', result, audit: this.#take(...aborted, ending) } as const;
    const revision = this.#opened?.revision;
    const written = await this.#writes.after(revision === undefined ? record : { ...record, revision });
    if (written === 'too_large') throw new TurnLost('the result of the turn is larger than a record may be');
  }

  async #invoke(context: AccessContext, given: ToolCall, signal: AbortSignal): Promise<ToolResult> {
    const refuse = (refusal: Refusal, decisions: readonly AuditEvent[] = [], verdict?: Verdict) =>
      this.#settleRefused(context, given, refusal, decisions, 'kernel', verdict);

    if (given.traceId !== context.traceId) return refuse({ status: 'denied', code: 'trace_mismatch' });
    if (this.#opened?.status !== 'resolved') return refuse({ status: 'denied', code: 'authority_unavailable' });
    const handler = this.#ports.registry.get(given.tool);
    if (handler === undefined) return refuse({ status: 'denied', code: 'tool_unavailable', cause: 'not_registered' });
    if (!context.enabledToolNamespaces.includes(handler.definition.namespace)) {
      return refuse({ status: 'denied', code: 'tool_unavailable', cause: 'namespace_disabled' });
    }

    const fingerprint = hashOf({ tool: given.tool, arguments: given.arguments });
    const before = this.#calls.get(given.id);
    if (before !== undefined) return this.#callAgain(context, given, before === fingerprint);
    this.#calls.set(given.id, fingerprint);
    const { exact, call, thrown } = readCall(handler, context, given);
    const operation = this.#operation('call', given.id);
    const ceiling = handler.definition.requiredCapability;
    const verdict = await this.#decide(context, { kind: 'tool', ceiling, exact, operation, operationId: given.id });
    if (verdict === undefined) return refuse({ status: 'denied', code: 'authority_unavailable' });
    if (verdict.status !== 'allowed') {
      if (thrown !== undefined) this.#ports.onProviderError(thrown, { tool: given.tool, code: verdict.code, traceId: context.traceId });
      return refuse({ status: verdict.status, code: verdict.code, cause: verdict.cause }, verdict.audit, verdict);
    }
    if (verdict.use !== undefined && !(await this.#spend(context, verdict.use, operation))) {
      const request = { resource: verdict.resource ?? ceiling.resource, action: verdict.action ?? ceiling.action };
      const denied = this.#checkedHere(context, request, USE_NOT_CLAIMED, given.id);
      return refuse({ status: 'denied', code: 'usage_store_unavailable' }, [denied], verdict);
    }
    return this.#run(context, handler, call, verdict, signal);
  }

  /**
   * A call id names one effect of a turn. The same call again is answered from the record; another call under the id is refused,
   * for it would run on the first one's use.
   *
   * @see spec/turns.md §13
   */
  async #callAgain(context: AccessContext, call: ToolCall, same: boolean): Promise<ToolResult> {
    const settled = same ? await this.#writes.settled(call.id) : undefined;
    if (settled !== undefined) return settled;
    const refusal = same ? ({ status: 'failed', code: 'replay_pending' } as const) : ({ status: 'denied', code: 'replay_conflict' } as const);
    const event = this.#called(context, call, refusal, 'kernel');
    await this.#writes.before({ type: 'noted', at: this.#now(), audit: this.#take(event) });
    return this.#failed(call, refusal.code, refusal.status);
  }

  /** The effect: admitted on record, run once, settled on record. */
  async #run(context: AccessContext, handler: ToolHandler, call: ToolCall, verdict: Verdict, signal: AbortSignal): Promise<ToolResult> {
    const { use } = verdict;
    signal.throwIfAborted();
    await withSpan(SPAN.ledgerAdmit, {}, () =>
      this.#writes.before({ type: 'admitted', at: this.#now(), callId: call.id, tool: call.tool, ...(use === undefined ? {} : { use }), audit: this.#take(...verdict.audit) }),
    );
    this.#openCalls.set(call.id, { call, verdict });
    const result = await withSpan(SPAN.toolHandler, {}, () => this.#handle(context, handler, call, signal));
    // The turn may have ended meanwhile, with this call on record as aborted. Its effect stays unknown, as was said.
    if (this.#ended) throw new TurnLost('the turn ended while the tool was running');
    return this.#settle(context, call, result, verdict);
  }

  async #handle(context: AccessContext, handler: ToolHandler, call: ToolCall, signal: AbortSignal): Promise<ToolResult> {
    let answered: unknown;
    try {
      answered = await handler.invoke(context, call, signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#ports.onProviderError(error, { tool: call.tool, code: 'tool_execution_failed', traceId: context.traceId });
      return this.#failed(call, 'tool_execution_failed');
    }
    const parsed = ToolResult.safeParse(answered);
    const fits = parsed.success && parsed.data.callId === call.id && parsed.data.tool === call.tool;
    return fits && Buffer.byteLength(JSON.stringify(parsed.data)) <= RESULT_BYTES_MAX ? parsed.data : this.#failed(call, 'invalid_tool_result');
  }

  async #settle(context: AccessContext, call: ToolCall, result: ToolResult, verdict: Verdict): Promise<ToolResult> {
    const outcome = result.status === 'succeeded' ? { status: 'succeeded' as const } : { status: result.status, code: result.error.code };
    const event = this.#called(context, call, outcome, 'kernel', verdict);
    await withSpan(SPAN.ledgerSettle, {}, () => this.#writes.after({ type: 'settled', at: this.#now(), callId: call.id, result, audit: this.#take(event) }));
    this.#openCalls.delete(call.id);
    return result;
  }

  async #settleRefused(
    context: AccessContext,
    call: ToolCall,
    refusal: Refusal,
    decisions: readonly AuditEvent[],
    source: 'kernel' | 'envelope',
    verdict?: Verdict,
  ): Promise<ToolResult> {
    const result = this.#failed(call, refusal.code, refusal.status);
    const event = this.#called(context, call, refusal, source, verdict);
    await withSpan(SPAN.ledgerSettle, {}, () =>
      this.#writes.before({ type: 'settled', at: this.#now(), callId: call.id, result, audit: this.#take(...decisions, event) }),
    );
    return result;
  }

  async #discover(context: AccessContext, enabled: readonly ToolDefinition[]) {
    const registeredCount = this.#ports.registry.list().length;
    const mark = this.#mark(context);
    const asked = enabled.map(({ requiredCapability }) => requiredCapability);
    const answer = this.#opened?.status === 'resolved' ? await this.#ports.authority.reach(this.#opened.token, context, asked) : undefined;
    if (this.#opened?.status !== 'resolved' || answer?.ok !== true) {
      const record = toolCatalogListed(mark, { enabledNamespaces: context.enabledToolNamespaces, failure: this.#failure });
      return { tools: [], reach: { status: 'unavailable', reasonCode: 'authority_unavailable' } as ReachResult, record };
    }
    const { reach, discovered } = answer.value;
    const tools = enabled.filter((_, index) => discovered[index]?.allowed === true);
    const record = toolCatalogListed(mark, {
      enabledNamespaces: context.enabledToolNamespaces,
      authorityHash: this.#opened.snapshot.hash,
      catalogHash: catalogHash(tools.map(publishTool)),
      withheldCount: registeredCount - tools.length,
      withheldByOutage: discovered.some(({ reasonCode }) => INFRASTRUCTURE_CODES.has(reasonCode)),
    });
    return { tools, reach, record };
  }

  async #decide(context: AccessContext, question: AuthorityQuestion): Promise<Verdict | undefined> {
    if (this.#opened === undefined) return undefined;
    const { ids, authority } = this.#ports;
    const verdict = await authority.decide(this.#opened.token, context, question, [ids(), ids()]);
    return verdict.ok ? verdict.value : undefined;
  }

  /** Makes a use that was handed out really spent. `false`: it must not be used, and nothing may run on it. */
  async #spend(context: AccessContext, { grantId, ordinal, epoch }: UseTaken, operation: string): Promise<boolean> {
    const claimed = await this.#ports.ledger.claimUse(context.namespaceId, { at: this.#now(), grantId, ordinal, operation });
    if (claimed.ok) return true;
    // Handed out twice: the counters lost their memory. They are closed until they agree with the claims again.
    if (claimed.error.kind === 'taken') await this.#ports.distrust(context.namespaceId, epoch);
    return false;
  }

  #decidedHere(context: AccessContext, request: Parameters<typeof authorizationChecked>[1]['request'], decided: Decided): AuthorizationDecision {
    this.#pending.push(this.#checkedHere(context, request, decided));
    return decided.decision;
  }

  #checkedHere(
    context: AccessContext,
    request: Parameters<typeof authorizationChecked>[1]['request'],
    decided: Decided,
    operationId?: string,
  ): AuditEvent {
    const authorityHash = this.#opened?.status === 'resolved' ? this.#opened.snapshot.hash : undefined;
    return authorizationChecked(this.#mark(context), { request, decided, consume: true, authorityHash, operationId });
  }

  #called(
    context: AccessContext,
    call: ToolCall,
    outcome: { readonly status: 'succeeded' | 'denied' | 'failed'; readonly code?: string; readonly cause?: string | undefined },
    source: 'kernel' | 'envelope',
    verdict?: Verdict,
  ): AuditEvent {
    return toolInvoked(this.#mark(context), {
      operationId: call.id,
      tool: call.tool,
      outcome: outcome.status,
      reason: outcome.code,
      source,
      cause: outcome.cause,
      resource: verdict?.resource,
      action: verdict?.action,
      grantId: verdict?.status === 'allowed' ? verdict.decision?.matchedGrantId : undefined,
      catalogHash: this.#offeredHash,
    });
  }

  #failed(call: ToolCall, code: string, status: 'denied' | 'failed' = 'failed'): ToolResult {
    return { status, callId: call.id, tool: call.tool, completedAt: this.#now(), error: { code, message: messageOf(code, status), retryable: false } };
  }

  #held(): AccessContext {
    if (this.#context === undefined) throw new TurnLost('the turn was never opened');
    return { ...this.#context, now: this.#now() };
  }

  #mark(context: AccessContext): AuditMark {
    const place = { turnId: this.#turn.turnId, revision: this.#opened?.revision };
    return { id: this.#ports.ids(), at: instantOf(context.now) ?? this.#ports.clock(), context, place };
  }

  /** All records due now, numbered in the order of this turn. */
  #take(...events: readonly AuditEvent[]): AuditEvent[] {
    const due = [...this.#pending, ...events];
    this.#pending = [];
    return due.map((event) => ({ ...event, metadata: { ...event.metadata, order: this.#order++ } }));
  }

  #now(): string {
    return timestampOf(this.#ports.clock());
  }

  /** One name for one effect, the same for a retry and for nothing else. */
  #operation(kind: string, id = ''): string {
    return hashOf({ parent: this.#turn.operation, kind, id });
  }
}

const NO_HOST_PORTS = { hostCeiling: 'absent', policy: undefined } as const;

/** A use was handed out and could not be claimed: to the caller, the counters were not there. */
const USE_NOT_CLAIMED: Decided = { decision: { allowed: false, reasonCode: 'usage_store_unavailable' } };

const failureOf = ({ code, detail }: Extract<OpenedAuthority, { status: 'unavailable' }>): AuthorityFailure =>
  detail === undefined ? { code } : { code, detail };

const messageOf = (code: string, status: 'denied' | 'failed'): string =>
  status === 'denied' ? `The call was refused: ${code}.` : `The call failed: ${code}.`;
