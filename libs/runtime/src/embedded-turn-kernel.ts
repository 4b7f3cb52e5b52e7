import {
  type AccessContext,
  type AgentAddress,
  type AuthorizationDecision,
  type ExecutionResult,
  type ReachResult,
  type ToolCall,
  type ToolDefinition,
  type ToolResult,
} from '@sharedos/contracts';
import { AuditUnavailableError, type SharedOSKernel, type TurnAuthorityScope, publishToolCatalog, toolCatalogHash } from '@sharedos/kernel';
import { AuditOutage, type TurnKernel } from './turn-kernel.ts';

/**
 * One turn over the embedded kernel: with it the envelope runs in a process of its own, without any server. A turn that is
 * replaced by its caller is not fenced here; whoever needs turns that survive their process runs the services.
 */
export const embeddedTurnKernel = (kernel: SharedOSKernel): TurnKernel => new EmbeddedTurnKernel(kernel);

class EmbeddedTurnKernel implements TurnKernel {
  readonly #kernel: SharedOSKernel;
  #scope: TurnAuthorityScope | undefined;
  #context: AccessContext | undefined;
  #catalogHash: string | undefined;
  #closed = false;

  constructor(kernel: SharedOSKernel) {
    this.#kernel = kernel;
  }

  async open(context: AccessContext, signal: AbortSignal): Promise<void> {
    this.#context = context;
    const scope = await recorded(() => this.#kernel.openTurnAuthority(context, { signal }));
    this.#scope = scope;
    // The turn was given up while its authority was on its way: nobody will close it later.
    if (this.#closed) scope.close();
  }

  admit(agent: AgentAddress, signal: AbortSignal): Promise<AuthorizationDecision> {
    return recorded(() => this.#kernel.admitTurn(this.#opened(), agent, { signal }));
  }

  async list(signal: AbortSignal): Promise<{ readonly reach: ReachResult; readonly tools: readonly ToolDefinition[] }> {
    const reach = await recorded(() => this.#kernel.reach(this.#opened(), { signal }));
    return { reach, tools: await recorded(() => this.#kernel.listTools(this.#opened(), { signal })) };
  }

  offered(tools: readonly ToolDefinition[]): void {
    this.#catalogHash = toolCatalogHash(publishToolCatalog(tools));
  }

  invokeTool(context: AccessContext, call: ToolCall, signal: AbortSignal): Promise<ToolResult> {
    return recorded(() => this.#kernel.invokeTool(context, call, { signal, ...this.#shown() }));
  }

  recordRefusal(context: AccessContext, call: ToolCall, refusal: { readonly code: string; readonly cause?: string }): Promise<void> {
    const { code, cause } = refusal;
    const refused = { callId: call.id, tool: call.tool, reasonCode: code, ...(cause === undefined ? {} : { cause }) };
    return this.#kernel.recordRefusedCall(context, refused, this.#shown());
  }

  async recordEscalation(context: AccessContext, { reason, executionId }: Parameters<TurnKernel['recordEscalation']>[1]): Promise<void> {
    await recorded(() => this.#kernel.recordEscalation(context, reason, { executionId }));
  }

  close(): void {
    this.#closed = true;
    this.#scope?.close();
  }

  end(context: AccessContext, result: ExecutionResult, { endedBy }: { readonly endedBy?: 'envelope' | 'runtime' }): Promise<void> {
    const code = 'error' in result ? result.error?.code : undefined;
    return this.#kernel.recordTurnEnd(context, {
      executionId: result.executionId,
      status: result.status,
      ...(code === undefined ? {} : { reasonCode: code }),
      ...(endedBy === undefined ? {} : { endedBy }),
    });
  }

  #shown(): { readonly catalogHash?: string } {
    return this.#catalogHash === undefined ? {} : { catalogHash: this.#catalogHash };
  }

  #opened(): AccessContext {
    if (this.#context === undefined) throw new Error('a turn is opened before anything is asked of it');
    return this.#context;
  }
}

/** The kernel's word for a record that could not be written, in the envelope's. */
const recorded = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AuditUnavailableError) throw new AuditOutage(error.message, { cause: error.cause });
    throw error;
  }
};
