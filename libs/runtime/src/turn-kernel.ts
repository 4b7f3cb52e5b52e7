import type { AccessContext, AgentAddress, AuditEvent, AuthorizationDecision, ExecutionResult, ReachResult, ToolCall, ToolDefinition, ToolResult } from '@sharedos/contracts';

/** A record that must precede an effect could not be written: the turn ends `audit_unavailable`, fail-closed. */
export class AuditOutage extends Error {
  override readonly name = 'AuditOutage';
}

/** This process no longer owns the turn: another declared it dead. It may admit, publish and record nothing more. */
export class TurnLost extends Error {
  override readonly name = 'TurnLost';
}

/** What the envelope asks of the kernel for one turn. It keeps authority, registry and ledger on its side of the fence. */
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
  /** Records a call that the envelope refused by itself. Never throws. */
  recordRefusal(context: AccessContext, call: ToolCall, refusal: { readonly code: string; readonly cause?: string }): Promise<void>;
  /** Records that the turn asked for a human. */
  recordEscalation(context: AccessContext, escalation: { readonly reason: string }): Promise<void>;
  /** Drops the lease. Idempotent. */
  close(): void;
  /** Writes the one terminal record with the one result. After the lease is gone; without the turn's signal. */
  end(context: AccessContext, result: ExecutionResult, end: { readonly endedBy?: 'envelope' | 'runtime'; readonly failClosed: boolean }): Promise<void>;
}

export type { AuditEvent };
