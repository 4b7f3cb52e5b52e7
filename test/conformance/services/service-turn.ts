import { randomUUID } from 'node:crypto';
import {
  type AccessContext,
  type AuthorizationDecision,
  type CapabilityRequirement,
  EscalationOpen,
  EscalationOpenReply,
  type ExecutionResult,
  type ReachResult,
  type ToolCall,
  type ToolDefinition,
  type ToolResult,
  hashOf,
  namespaceSubject,
  timestampOf,
} from '@sharedos/contracts';
import {
  type ToolRegistry,
  authorityResolved,
  authorizationChecked,
  capabilityRequestOf,
  decidedWithoutAuthority,
  escalationIdOf,
} from '@sharedos/kernel';
import { messageRequestTool } from '../../../services/tool-executor/src/message-request.ts';
import { keepQuestion } from '../../../services/tool-executor/src/keep-question.ts';
import { LedgerTurn } from '../../../services/tool-executor/src/ledger-turn.ts';
import { TurnLease, usesIn } from '../../../services/tool-executor/src/turn-lease.ts';
import { TurnWrites } from '../../../services/tool-executor/src/turn-writes.ts';
import { USE_NOT_CLAIMED } from '../../../services/tool-executor/src/unclaimed-use.ts';
import type { ServicesSystem } from './system.ts';

const NO_HOST_PORTS = { hostCeiling: 'absent', policy: undefined } as const;
const VALID_FOR_MS = 1_000_000;
const KEPT_MS = 10_000;

/**
 * One open turn over the services: opened once at an authorizer, asked as the executor asks, with its calls on record in the
 * ledger. A step outside a turn is one of these, of a single operation.
 */
export class ServiceTurn {
  readonly context: AccessContext;
  readonly #system: ServicesSystem;
  readonly #turnId = randomUUID();
  readonly #ports: ConstructorParameters<typeof LedgerTurn>[0];
  readonly #lease: TurnLease;
  #opened: Promise<boolean> | undefined;
  #calls: Promise<LedgerTurn> | undefined;

  constructor(system: ServicesSystem, context: AccessContext) {
    this.#system = system;
    this.context = context;
    const client = system.authority();
    let answer: ReturnType<typeof client.open> | undefined;
    this.#ports = {
      // The lease and the calls of a turn share one opening.
      authority: {
        open: (body) => (answer ??= client.open(body)),
        decide: (...asked) => client.decide(...asked),
        reach: (...asked) => client.reach(...asked),
      },
      ledger: system.ledger,
      counters: { held: async () => undefined, release: async () => false },
      audit: async () => undefined,
      registry: this.#registry(),
      clock: () => system.scene.clockMs,
      ids: randomUUID,
      distrust: async () => undefined,
      onProviderError: () => undefined,
      keepQuestion: keepQuestion(system.executorBus),
    };
    this.#lease = new TurnLease(this.#ports, this.#identity);
  }

  /** With the tool for messages, as the executor adds it to every turn. */
  #registry(): ToolRegistry {
    const { scene, executorBus: bus, replies } = this.#system;
    const registry = scene.registry.copy();
    const turn = { turnId: this.#turnId, executionId: this.#turnId, requester: this.context.authority };
    if (scene.asksByMessage) registry.register(messageRequestTool({ bus, replies }, turn));
    return registry;
  }

  get #identity() {
    return { turnId: this.#turnId, operation: hashOf({ turn: this.#turnId }), executionId: this.#turnId, validForMs: VALID_FOR_MS };
  }

  /** Loads authority and holds it. What came of it: resolved, or why not. */
  async open(): Promise<Record<string, unknown>> {
    await this.#open();
    if (this.#lease.isHeld) return { status: 'resolved', hash: this.#lease.authorityHash };
    const { code, detail } = this.#lease.failure;
    return { status: 'unavailable', code, ...(detail === undefined ? {} : { detail }) };
  }

  async authorize(context: AccessContext, request: CapabilityRequirement, consume: boolean): Promise<AuthorizationDecision> {
    await this.#open();
    const operation = hashOf({ turn: this.#turnId, decision: randomUUID() });
    const verdict = await this.#lease.decide(context, { kind: 'authorize', request, consume, operation });
    const here = (decided: Parameters<typeof authorizationChecked>[1]['decided']): AuthorizationDecision => {
      this.#system.scene.onAudit(authorizationChecked(this.#mark(context), { request, decided, consume }));
      return decided.decision;
    };
    if (verdict === undefined) return here(decidedWithoutAuthority(this.#lease.failure));
    if (!(await this.#lease.spend(context, usesIn(verdict), operation))) return here(USE_NOT_CLAIMED);
    // Whoever asks for a decision writes its records, with whatever it allows.
    for (const event of verdict.audit) this.#system.scene.onAudit(event);
    return verdict.decision ?? { allowed: false, reasonCode: verdict.code };
  }

  async discover(context: AccessContext, ceiling: CapabilityRequirement): Promise<Record<string, unknown>> {
    await this.#open();
    const answer = await this.#lease.reach(context, [ceiling]);
    return { ...(answer?.discovered[0] ?? { allowed: false, reasonCode: 'authority_unavailable' }) };
  }

  async reach(context: AccessContext): Promise<ReachResult> {
    await this.#open();
    const answer = await this.#lease.reach(context, []);
    return answer?.reach ?? { status: 'unavailable', reasonCode: 'authority_unavailable' };
  }

  async admit(agent: Parameters<LedgerTurn['admit']>[0]): Promise<AuthorizationDecision> {
    const calls = await this.#turn();
    const decision = await calls.admit(agent);
    // What was decided is written with the next record of the turn: the one that opens it, or the one that ends it.
    if (decision.allowed) await calls.list();
    else await calls.end(this.context, this.#denied(decision.reasonCode), {});
    return decision;
  }

  async list(): Promise<readonly ToolDefinition[]> {
    const calls = await this.#turn();
    const { tools } = await calls.list();
    calls.offered(tools);
    return tools;
  }

  async invoke(context: AccessContext, call: ToolCall): Promise<ToolResult> {
    return (await this.#turn()).invokeTool(context, call, new AbortController().signal);
  }

  /** Asks whoever owns what the turn is about, as the executor does, and reads the question back as the owner finds it. */
  async ask(context: AccessContext, reason: string, wanted: unknown): Promise<Record<string, unknown>> {
    const { namespaceId, actor, owner, authority, purpose } = context;
    const asked = { requester: actor, owner, authority, purpose, reason };
    let id = escalationIdOf(namespaceId, asked);
    if (wanted === undefined) await (await this.#turn()).recordEscalation(context, { reason });
    else id = await this.#askFor(context, reason, wanted);
    const shown = await (await this.#system.client(namespaceId, owner)).escalations.show(id);
    if (!shown.ok) throw new Error(`the question was not kept: ${JSON.stringify(shown.error)}`);
    const { question, status } = shown.value.escalation;
    const { reviewer, requestedAt, requestedAuthority } = question;
    const stub = { reason: question.reason, reviewer, requestedAt, status: status === 'open' ? 'pending' : status };
    return { ...stub, ...(requestedAuthority === undefined ? {} : { requestedAuthority }) };
  }

  /** A question that names what it wants comes from the host: the kernel describes it, and the authorizer keeps it. */
  async #askFor(context: AccessContext, reason: string, wanted: unknown): Promise<string> {
    const { namespaceId, actor, owner, authority, purpose, traceId, now } = context;
    const minted = capabilityRequestOf(context, wanted);
    if (!minted.ok) throw new Error('that is no ask');
    const { value: requestedAuthority } = minted;
    const question = {
      ...{ id: requestedAuthority.id, requester: actor, owner, authority, reviewer: owner, purpose, reason, traceId },
      ...{ executionId: this.#turnId, requestedAuthority, requestedAt: now },
    };
    const subject = namespaceSubject('escalation.open', namespaceId);
    const kept = await this.#system.executorBus.request(subject, EscalationOpen, { question }, EscalationOpenReply, { timeoutMs: KEPT_MS });
    if (!kept.ok || !kept.value.ok) throw new Error(`the question was not kept: ${JSON.stringify(kept)}`);
    return requestedAuthority.id;
  }

  /** A turn that only asks writes the load that failed itself; the calls of a turn write their own. */
  async #open(): Promise<void> {
    this.#opened ??= this.#lease.open(this.context).then((answered) => {
      if (!answered && this.#calls === undefined)
        this.#system.scene.onAudit(authorityResolved(this.#mark(this.context), { failure: this.#lease.failure }, NO_HOST_PORTS));
      return answered;
    });
    await this.#opened;
  }

  #turn(): Promise<LedgerTurn> {
    return (this.#calls ??= this.#claim());
  }

  async #claim(): Promise<LedgerTurn> {
    const { namespaceId, authority, traceId } = this.context;
    const { ledger, scene } = this.#system;
    const claim = await ledger.claim(
      { namespaceId, kind: 'execution', requester: authority, id: this.#turnId },
      {
        type: 'claimed',
        at: timestampOf(scene.clockMs),
        ownerId: 'conformance',
        turnId: this.#turnId,
        fingerprint: hashOf({ turn: this.#turnId }),
        requester: authority,
        operationId: this.#turnId,
        traceId,
        requestSequence: 1,
      },
    );
    if (!claim.ok) throw new Error(`the turn was not claimed: ${JSON.stringify(claim.error)}`);
    const turn = new LedgerTurn(this.#ports, new TurnWrites(ledger, claim.value), this.#identity);
    await turn.open(this.context);
    await this.#lease.open(this.context);
    return turn;
  }

  #denied(code: string): ExecutionResult {
    const at = timestampOf(this.#system.scene.clockMs);
    const of = { version: '1' as const, executionId: this.#turnId, traceId: this.context.traceId, events: [] };
    return { ...of, startedAt: at, completedAt: at, status: 'denied', error: { code, message: 'The turn was refused.' } };
  }

  #mark(context: AccessContext) {
    return { id: randomUUID(), at: this.#system.scene.clockMs, context };
  }
}
