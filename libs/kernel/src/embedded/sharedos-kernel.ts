import {
  type AccessContext,
  Address,
  type AuthorizationDecision,
  type AuthorizationRequest,
  type DeliveryResult,
  type Escalation,
  type MessageEnvelope,
  type ReachResult,
  type ResourceInvocationRequest,
  type ResourceResult,
  type ToolCall,
  type ToolCatalog,
  type ToolDefinition,
  type ToolNamespaceCatalog,
  type ToolNamespaceUpdate,
  type ToolResult,
} from '@sharedos/contracts';
import type { AgentCardRead } from '../agent-card.ts';
import { type TurnAuthorityScope, turnAuthorityKey } from '../authority-resolver.ts';
import { ContractError, DuplicateRegistrationError } from '../contract-errors.ts';
import { contractValue } from '../contract-value.ts';
import { computeReach } from '../reach.ts';
import type { ResourceProvider } from '../resource-provider.ts';
import { agentExecutionRequest } from '../standard-capabilities.ts';
import type { ContextToolProvider, ToolHandler } from '../tool-handler.ts';
import { listPublishedTools, listToolNamespaces, listTools, updateToolNamespaces } from './catalogue.ts';
import {
  KernelCore,
  type KernelOperationOptions,
  type SharedOSKernelOptions,
  compiledAuthority,
  heldAuthority,
  instantIn,
} from './core.ts';
import { decideOperation } from './decide-operation.ts';
import { invokeResource } from './invoke-resource.ts';
import { type InvokeToolOptions, invokeTool } from './invoke-tool.ts';
import { type AgentCardReadOptions, readAgentCard } from './read-agent-card.ts';
import { sendMessage } from './send-message.ts';
import {
  type EscalationOptions,
  type RefusedCall,
  type TurnEndRecord,
  recordEscalation,
  recordRefusedCall,
  recordTurnEnd,
} from './turn-records.ts';

export interface KernelAuthorizeOptions extends KernelOperationOptions {
  /** Decides as for an execution: a use of a bounded grant is spent. */
  readonly consume?: boolean;
}

/**
 * Every permission-controlled operation, in one process and over ports of the host. The access context is a trusted value that
 * the host builds; never build it from what a request says of itself.
 *
 * A decision is recorded before anything follows from it: where that record cannot be written, the operation rejects with
 * `AuditUnavailableError` and nothing runs. A caller's cancel is re-thrown, never answered as a refusal.
 */
export class SharedOSKernel {
  readonly #core: KernelCore;

  constructor(options: SharedOSKernelOptions) {
    if (typeof options?.grantSource?.load !== 'function') throw new ContractError('a kernel needs a grant source');
    this.#core = new KernelCore(options);
    for (const provider of options.toolProviders ?? []) this.registerToolProvider(provider);
  }

  registerResourceProvider(provider: ResourceProvider): void {
    this.#core.resources.register(provider);
  }

  registerTool(handler: ToolHandler): void {
    this.#core.tools.register(handler);
  }

  /** @throws ContractError for an id that is blank; DuplicateRegistrationError when it is taken. */
  registerToolProvider(provider: ContextToolProvider): void {
    const id = typeof provider.id === 'string' ? provider.id.trim() : '';
    if (id === '' || typeof provider.listTools !== 'function') throw new ContractError('a tool provider needs an id and listTools');
    if (this.#core.providers.has(id)) throw new DuplicateRegistrationError('tool provider', id);
    this.#core.providers.set(id, provider);
  }

  /**
   * Loads the authority of one turn and holds it: every operation that presents the same turn identity is answered from it, those
   * that a handler makes from inside included. Authority that could not be established is held too.
   *
   * @see spec/authorization.md §6
   */
  async openTurnAuthority(given: AccessContext, { signal }: KernelOperationOptions = {}): Promise<TurnAuthorityScope> {
    const context = this.#core.enter(given, signal);
    const { lease, close } = this.#core.leases.open(turnAuthorityKey(context));
    try {
      const resolution = await this.#core.load(lease, context, signal);
      return resolution.status === 'resolved'
        ? { status: 'resolved', snapshot: resolution.authority.snapshot, close }
        : { status: 'unavailable', code: resolution.code, close };
    } catch (error) {
      close();
      throw error;
    }
  }

  async authorize(
    given: AccessContext,
    request: AuthorizationRequest,
    { consume = false, signal }: KernelAuthorizeOptions = {},
  ): Promise<AuthorizationDecision> {
    const context = this.#core.enter(given, signal);
    const asked = copyOfRequest(request);
    const held = await this.#core.hold(context, signal);
    return (await decideOperation(this.#core, held, context, asked, { consume })).decision;
  }

  /** The check a catalogue is filtered by. It spends nothing and is not recorded: a listing denies all the time, by design. */
  async canDiscover(
    given: AccessContext,
    ceiling: AuthorizationRequest,
    { signal }: KernelOperationOptions = {},
  ): Promise<AuthorizationDecision> {
    const context = this.#core.enter(given, signal);
    const { resolution } = await this.#core.hold(context, signal);
    if (resolution.status === 'unavailable') return { allowed: false, reasonCode: 'authority_unavailable' };
    const { installed, run, reportCeiling } = this.#core.decider;
    const options = { now: instantIn(context), consume: false, mode: 'discover', ...installed } as const;
    const decided = await run(compiledAuthority(this.#core, resolution).decide(copyOfRequest(ceiling), options));
    reportCeiling(decided, context, ceiling);
    return decided.decision;
  }

  /** Spends permission to run exactly one turn of an agent. */
  async admitTurn(given: AccessContext, givenAgent: Address, { signal }: KernelOperationOptions = {}): Promise<AuthorizationDecision> {
    const context = this.#core.enter(given, signal);
    const agent = contractValue(Address, givenAgent);
    if (!agent.ok) throw new ContractError('agent', agent.error);
    const held = await this.#core.hold(context, signal);
    const request = agentExecutionRequest(agent.value, context.owner);
    return (await decideOperation(this.#core, held, context, request, { consume: true })).decision;
  }

  /** Where this actor may operate, with the authority stripped out. It describes; every operation is decided by itself. */
  async reach(given: AccessContext, { signal }: KernelOperationOptions = {}): Promise<ReachResult> {
    const context = this.#core.enter(given, signal);
    const { resolution } = await this.#core.hold(context, signal);
    if (resolution.status === 'unavailable') return { status: 'unavailable', reasonCode: 'authority_unavailable' };
    const { installed, run } = this.#core.decider;
    return run(computeReach(heldAuthority(resolution), { now: instantIn(context), ...installed }));
  }

  readAgentCard(context: AccessContext, subject: Address, options?: AgentCardReadOptions): Promise<AgentCardRead> {
    return readAgentCard(this.#core, context, subject, options);
  }

  listTools(context: AccessContext, options?: KernelOperationOptions): Promise<readonly ToolDefinition[]> {
    return listTools(this.#core, context, options);
  }

  listPublishedTools(context: AccessContext, options: KernelOperationOptions & { readonly executionId: string }): Promise<ToolCatalog> {
    return listPublishedTools(this.#core, context, options);
  }

  listToolNamespaces(context: AccessContext, options?: KernelOperationOptions): Promise<ToolNamespaceCatalog> {
    return listToolNamespaces(this.#core, context, options);
  }

  updateToolNamespaces(
    context: AccessContext,
    update: ToolNamespaceUpdate,
    options?: KernelOperationOptions,
  ): Promise<ToolNamespaceCatalog> {
    return updateToolNamespaces(this.#core, context, update, options);
  }

  invokeTool(context: AccessContext, call: ToolCall, options?: InvokeToolOptions): Promise<ToolResult> {
    return invokeTool(this.#core, context, call, options);
  }

  invokeResource(context: AccessContext, request: ResourceInvocationRequest, options?: KernelOperationOptions): Promise<ResourceResult> {
    return invokeResource(this.#core, context, request, options);
  }

  sendMessage(context: AccessContext, envelope: MessageEnvelope, options?: KernelOperationOptions): Promise<DeliveryResult> {
    return sendMessage(this.#core, context, envelope, options);
  }

  recordEscalation(context: AccessContext, reason: string, options?: EscalationOptions): Promise<Escalation> {
    return recordEscalation(this.#core, context, reason, options);
  }

  recordTurnEnd(context: AccessContext, turn: TurnEndRecord, options?: KernelOperationOptions): Promise<void> {
    return recordTurnEnd(this.#core, context, turn, options);
  }

  recordRefusedCall(
    context: AccessContext,
    call: RefusedCall,
    options?: KernelOperationOptions & { readonly catalogHash?: string },
  ): Promise<void> {
    return recordRefusedCall(this.#core, context, call, options);
  }
}

/** A caller that edits its request while it is decided on changes nothing. What is no data is decided as it is: invalid. */
const copyOfRequest = (request: AuthorizationRequest): AuthorizationRequest => {
  try {
    return structuredClone(request);
  } catch {
    throw new ContractError('authorization request', 'it is no data');
  }
};
