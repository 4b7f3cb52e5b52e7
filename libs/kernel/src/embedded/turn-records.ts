import { type AccessContext, type CapabilityRequest, type CapabilityRequestPayload, Escalation } from '@sharedos/contracts';
import { escalationRequested, toolInvoked, turnEnded } from '../audit.ts';
import { ContractError } from '../contract-errors.ts';
import { contractValue } from '../contract-value.ts';
import { capabilityRequestOf } from '../required-authority.ts';
import type { KernelCore, KernelOperationOptions } from './core.ts';

export interface EscalationOptions extends KernelOperationOptions {
  /** What is asked for: the ask is the caller's, all else is stated anew from the trusted context. */
  readonly requestedAuthority?: CapabilityRequestPayload;
  /** The execution that asks. */
  readonly executionId?: string;
}

/**
 * Records that a turn stopped and asked a human. It grants nothing and unblocks nothing. The reviewer is assumed to be the owner.
 * When this resolves the record is durable; only then may the turn be reported escalated.
 *
 * @throws ContractError for an ask that is none, AuditUnavailableError, and the signal's reason.
 */
export const recordEscalation = async (
  core: KernelCore,
  given: AccessContext,
  reason: string,
  { requestedAuthority, executionId, signal }: EscalationOptions = {},
): Promise<Escalation> => {
  const context = core.enter(given, signal);
  let minted: CapabilityRequest | undefined;
  if (requestedAuthority !== undefined) {
    const request = capabilityRequestOf(context, requestedAuthority);
    if (!request.ok) throw new ContractError('request for authority', 'it asks for nothing that could be granted');
    minted = request.value;
  }
  const escalation = contractValue(Escalation, {
    reason,
    reviewer: context.owner,
    requestedAt: context.now,
    status: 'pending',
    ...(minted === undefined ? {} : { requestedAuthority: minted }),
  });
  if (!escalation.ok) throw new ContractError('escalation', escalation.error);
  const asked = { detail: escalation.value.reason, reviewer: context.owner, operationId: executionId, requestedAuthority: minted };
  await core.recordBefore(escalationRequested(core.mark(context), asked));
  return escalation.value;
};

/** How a turn finished, as the boundary that finished it saw it. */
export interface TurnEndRecord {
  readonly executionId: string;
  readonly status: 'denied' | 'succeeded' | 'failed' | 'escalated' | 'cancelled';
  readonly reasonCode?: string;
  /** Who produced a failure: the envelope refusing, or the runtime reporting its own. */
  readonly endedBy?: 'envelope' | 'runtime';
}

/** The one terminal record of a turn. */
export const recordTurnEnd = async (
  core: KernelCore,
  given: AccessContext,
  { executionId, status, reasonCode, endedBy }: TurnEndRecord,
  { signal }: KernelOperationOptions = {},
): Promise<void> => {
  const context = core.enter(given, signal);
  await core.recordAfter(turnEnded(core.mark(context), { executionId, status, code: reasonCode, endedBy }));
};

/** One call that a boundary refused before the kernel was asked. */
export interface RefusedCall {
  readonly callId: string;
  readonly tool: string;
  readonly reasonCode: string;
  readonly cause?: string;
}

/** Records a call that the envelope refused: a guessed name or a spent budget is an attempt like any other. */
export const recordRefusedCall = async (
  core: KernelCore,
  given: AccessContext,
  { callId, tool, reasonCode, cause }: RefusedCall,
  { signal, catalogHash }: KernelOperationOptions & { readonly catalogHash?: string } = {},
): Promise<void> => {
  const context = core.enter(given, signal);
  const refused = { operationId: callId, tool, outcome: 'denied', reason: reasonCode, source: 'envelope', cause, catalogHash } as const;
  await core.recordAfter(toolInvoked(core.mark(context), refused));
};
