import {
  type AccessContext,
  type AgentAddress,
  type AuthorizationDecision,
  type CapabilityRequirement,
  type ExecutionResult,
  INFRASTRUCTURE_CODES,
  type ReachResult,
  type Revision,
  type RuntimeChoice,
  type ToolCall,
  type ToolDefinition,
  type ToolResult,
  type Verdict,
  addressPath,
} from '@sharedos/contracts';
import {
  type Decided,
  authorityResolved,
  authorizationChecked,
  decidedWithoutAuthority,
  escalationRequested,
  publishToolDefinition,
  toolCatalogHash,
  toolCatalogListed,
  turnEnded,
} from '@sharedos/kernel';
import { AuditOutage, type TurnKernel, TurnLost } from '@sharedos/runtime';
import { SPAN, recordOutcome, withSpan } from '@sharedos/telemetry';
import { MediatedCalls, type MediatedCallsPorts } from './mediated-calls.ts';
import { type TurnIdentity, TurnLease, type TurnLeasePorts, usesIn, usesOnRecord } from './turn-lease.ts';
import { TurnRecords, type TurnRecordsPorts } from './turn-records.ts';
import type { TurnWrites } from './turn-writes.ts';
import { USE_NOT_CLAIMED } from './unclaimed-use.ts';

export type LedgerTurnPorts = TurnLeasePorts &
  MediatedCallsPorts &
  Pick<TurnRecordsPorts, 'audit'> & {
    /** Whether the tools of the context could be put together, and are no more than a catalogue holds; they are when absent. */
    readonly isListable?: boolean;
  };

/** The tools of a turn could not be put together: it has none, and is never run with some of them. */
export class CatalogueUnavailable extends Error {
  override readonly name = 'CatalogueUnavailable';
}

/**
 * The kernel of one turn, over the authorizer and the ledger. Authority, registry and records stay on this side; the envelope
 * and the runtime see none of them. The audit records travel inside the ledger's, so none can be missing for what happened.
 *
 * @see spec/turns.md §4 and §5
 */
export class LedgerTurn implements TurnKernel {
  readonly #ports: LedgerTurnPorts;
  readonly #executionId: string;
  readonly #lease: TurnLease;
  readonly #records: TurnRecords;
  readonly #calls: MediatedCalls;
  #context: AccessContext | undefined;
  /** The uses of the admission, until a record says that they are spent. */
  #admission: Pick<Verdict, 'use' | 'above'> = {};
  #isAdmitting = false;

  constructor(ports: LedgerTurnPorts, writes: TurnWrites, turn: TurnIdentity) {
    this.#ports = ports;
    this.#executionId = turn.executionId;
    this.#lease = new TurnLease(ports, turn);
    this.#records = new TurnRecords(writes, { turnId: turn.turnId, clock: ports.clock, ids: ports.ids, audit: ports.audit });
    this.#calls = new MediatedCalls(ports, this.#lease, this.#records);
  }

  /** The revision that the turn sees, once it is open. */
  get revision(): Revision | undefined {
    return this.#lease.revision;
  }

  /** Whether the turn may have been handed uses that no record of it admits. They are to be given back once it is over. */
  get mayReserve(): boolean {
    return this.#isAdmitting || this.#calls.mayReserve;
  }

  /** What the registration of the agent says of its runtime at the revision of the turn; absent where it says nothing. */
  get runtimeChoice(): RuntimeChoice | undefined {
    return this.#lease.runtimeChoice;
  }

  async open(context: AccessContext): Promise<void> {
    this.#context = context;
    if (!(await this.#lease.open(context))) {
      this.#records.keep(authorityResolved(this.#records.mark(context), { failure: this.#lease.failure }, NO_HOST_PORTS));
    }
    if (this.#lease.revision !== undefined) this.#records.revision = this.#lease.revision;
  }

  async admit(agent: AgentAddress): Promise<AuthorizationDecision> {
    const context = this.#contextNow();
    const request = {
      resource: { namespace: 'sharedos.execution', path: [...addressPath(agent)], owner: context.owner },
      action: 'invoke',
    };
    const operation = this.#lease.operation('admission');
    this.#isAdmitting = true;
    const verdict = await this.#lease.decide(context, { kind: 'authorize', request, consume: true, operation });
    if (verdict !== undefined && verdict.use === undefined) this.#isAdmitting = false;
    if (verdict === undefined) return this.#decidedHere(context, request, decidedWithoutAuthority(this.#lease.failure));
    if (!(await this.#lease.spend(context, usesIn(verdict), operation))) {
      return this.#decidedHere(context, request, USE_NOT_CLAIMED);
    }
    this.#admission = usesOnRecord(verdict);
    await this.#records.late(...verdict.audit);
    return verdict.decision ?? { allowed: false, reasonCode: verdict.code };
  }

  async list(): Promise<{ readonly reach: ReachResult; readonly tools: readonly ToolDefinition[] }> {
    const context = this.#contextNow();
    if (this.#ports.isListable === false) throw new CatalogueUnavailable();
    const { record, ...listed } = await withSpan(SPAN.toolCatalogue, {}, () => this.#discover(context));
    const { revision } = this.#lease;
    if (revision === undefined) throw new AuditOutage('a turn without authority is never admitted');
    await this.#records.before({ type: 'opened', revision, ...this.#admission }, record);
    this.#admission = {};
    this.#isAdmitting = false;
    return listed;
  }

  offered(tools: readonly ToolDefinition[]): void {
    this.#calls.catalogHash = toolCatalogHash(tools.map(publishToolDefinition));
  }

  async invokeTool(context: AccessContext, call: ToolCall, signal: AbortSignal): Promise<ToolResult> {
    return withSpan(SPAN.toolInvoke, {}, async (span) => {
      const result = await this.#calls.invoke(context, call, signal);
      recordOutcome(span, result.status, result.status === 'succeeded' ? undefined : result.error.code);
      return result;
    });
  }

  async recordRefusal(context: AccessContext, call: ToolCall, refusal: { readonly code: string; readonly cause?: string }): Promise<void> {
    try {
      await this.#calls.recordRefusal(context, call, refusal);
    } catch (error) {
      if (error instanceof TurnLost) throw error;
    }
  }

  async recordEscalation(context: AccessContext, { reason }: { readonly reason: string }): Promise<void> {
    // The question is kept where a person can answer it before anybody hears that the turn ended on it.
    if (this.#ports.keepQuestion !== undefined && !(await this.#ports.keepQuestion(context, reason, this.#executionId)))
      throw new AuditOutage('the question could not be kept');
    const escalation = { detail: reason, reviewer: context.owner, operationId: this.#executionId };
    await this.#records.before({ type: 'noted' }, escalationRequested(this.#records.mark(context), escalation));
  }

  /** There is nothing to give back: the lease is a token that nobody asks about any more. */
  close(): void {}

  async end(context: AccessContext, result: ExecutionResult, { endedBy }: { readonly endedBy?: 'envelope' | 'runtime' }): Promise<void> {
    const aborted = this.#calls.aborted(context);
    const code = 'error' in result ? result.error?.code : undefined;
    const ending = turnEnded(this.#records.mark(context), { executionId: this.#executionId, status: result.status, code, endedBy });
    const { revision } = this.#lease;
    // An admission is spent whatever the turn does later; where the turn was never opened, its end says so.
    const spent = this.#admission;
    const record = { type: 'ended', by: 'owner', result, ...(revision === undefined ? {} : { revision }), ...spent } as const;
    const written = await this.#records.end(record, ...aborted, ending);
    if (written === 'too_large') throw new TurnLost('the result of the turn is larger than a record may be');
    if (spent.use !== undefined) this.#isAdmitting = false;
  }

  async #discover(context: AccessContext) {
    const enabledToolNamespaces = this.#lease.toolNamespaces(context);
    const registered = this.#ports.registry.definitions();
    const enabled = registered.filter(({ namespace }) => enabledToolNamespaces.includes(namespace));
    const mark = this.#records.mark(context);
    const authorityHash = this.#lease.authorityHash;
    const answer = await this.#lease.reach(
      context,
      enabled.map(({ requiredCapability }) => requiredCapability),
    );
    if (authorityHash === undefined || answer === undefined) {
      const record = toolCatalogListed(mark, { enabledNamespaces: enabledToolNamespaces, failure: this.#lease.failure });
      return { tools: [], reach: { status: 'unavailable', reasonCode: 'authority_unavailable' } as ReachResult, record };
    }
    const { reach, discovered } = answer;
    const tools = enabled.filter((_, index) => discovered[index]?.allowed === true);
    const record = toolCatalogListed(mark, {
      enabledNamespaces: enabledToolNamespaces,
      authorityHash,
      catalogHash: toolCatalogHash(tools.map(publishToolDefinition)),
      withheldCount: registered.length - tools.length,
      withheldByOutage: discovered.some(({ reasonCode }) => INFRASTRUCTURE_CODES.has(reasonCode)),
      hostPolicyVersion: this.#lease.hostPolicyVersion,
    });
    return { tools, reach, record };
  }

  /** A decision that no authorizer made: it is recorded with the turn's next record. */
  #decidedHere(context: AccessContext, request: CapabilityRequirement, decided: Decided): AuthorizationDecision {
    const { authorityHash } = this.#lease;
    this.#records.keep(authorizationChecked(this.#records.mark(context), { request, decided, consume: true, authorityHash }));
    return decided.decision;
  }

  #contextNow(): AccessContext {
    if (this.#context === undefined) throw new TurnLost('the turn was never opened');
    return { ...this.#context, now: this.#records.now() };
  }
}

const NO_HOST_PORTS = { hostCeiling: 'absent', policy: undefined } as const;
