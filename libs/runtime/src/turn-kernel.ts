import type {
  AccessContext,
  AgentAddress,
  AuthorizationDecision,
  ExecutionResult,
  ReachResult,
  ToolCall,
  ToolDefinition,
  ToolResult,
} from '@sharedos/contracts';

/** A record that must precede an effect could not be written: the turn ends `audit_unavailable`, fail-closed. */
export class AuditOutage extends Error {
  override readonly name = 'AuditOutage';
}

/** This process no longer owns the turn: another declared it dead. It may admit, publish and record nothing more. */
export class TurnLost extends Error {
  override readonly name = 'TurnLost';
}

/**
 * What the envelope asks of the kernel for one turn. It keeps authority, registry and ledger on its side of the fence.
 *
 * Any of them may reject with {@link TurnLost}, and those that write a record before an effect with {@link AuditOutage}; another
 * rejection while the turn opens ends it `runtime_failed`. What takes a signal is abandoned when it fires; `end` has none, so the
 * kernel bounds that wait itself.
 */
export interface TurnKernel {
  /** Opens the authority lease. Authority that is unavailable is held, and {@link admit} then refuses. */
  open(context: AccessContext, signal: AbortSignal): Promise<void>;
  /** The one consuming authorization to run this agent. */
  admit(agent: AgentAddress, signal: AbortSignal): Promise<AuthorizationDecision>;
  /** Reach of the open turn and the tools it may discover, in the kernel's order. Throws when a provider does. */
  list(signal: AbortSignal): Promise<{ readonly reach: ReachResult; readonly tools: readonly ToolDefinition[] }>;
  /** States which tools the turn was given; the hash goes on every later record of a call. */
  offered(tools: readonly ToolDefinition[]): void;
  /** One call, decided from its exact arguments and run at most once. Rejects only on abort, audit outage or loss of the turn. */
  invokeTool(context: AccessContext, call: ToolCall, signal: AbortSignal): Promise<ToolResult>;
  /** Records a call that the envelope refused by itself. A failure to record changes nothing; only a lost turn matters. */
  recordRefusal(context: AccessContext, call: ToolCall, refusal: { readonly code: string; readonly cause?: string }): Promise<void>;
  /** Records that the turn asked for a human. Durable when it resolves: only then is the turn reported escalated. */
  recordEscalation(context: AccessContext, escalation: { readonly reason: string; readonly executionId: string }): Promise<void>;
  /** Drops the lease. Idempotent; called again when a lease arrives after its turn was abandoned. */
  close(): void;
  /**
   * Writes the one terminal record with the one result. After the lease is gone; without the turn's signal. `endedBy` is present
   * for `failed` and `cancelled` alone; the record of a cancelled turn says `failed` / `turn_cancelled`.
   */
  end(
    context: AccessContext,
    result: ExecutionResult,
    end: { readonly endedBy?: 'envelope' | 'runtime'; readonly failClosed: boolean },
  ): Promise<void>;
}
