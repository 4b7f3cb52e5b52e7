import type { Bus } from '@sharedos/bus';
import {
  type AccessContext,
  ASKED_ARGUMENTS_BYTES_MAX,
  type AuditEvent,
  type CapabilityRequest,
  EscalationOpen,
  EscalationOpenReply,
  type EscalationQuestion,
  type ToolCall,
  type Verdict,
  namespaceSubject,
  sameAddress,
} from '@sharedos/contracts';
import { type AuditMark, callDigestOf, callQuestionId, escalationIdOf, escalationRequested, jsonBytes } from '@sharedos/kernel';
import type { TurnLease } from './turn-lease.ts';

const ANSWER_MS = 10_000;

/** A refused call, and the authority that it lacked. */
export interface RefusedCall {
  readonly call: ToolCall;
  readonly requestedAuthority: CapabilityRequest;
}

/** @returns Whether the question is kept where a person can answer it. */
export type KeepQuestion = (context: AccessContext, reason: string, executionId: string, refused?: RefusedCall) => Promise<boolean>;

/** Opens the item that a reviewer answers. The same question, asked again while it is open, is the same item. */
export const keepQuestion =
  (bus: Pick<Bus, 'request'>): KeepQuestion =>
  async (context, reason, executionId, refused) => {
    const { namespaceId, actor, owner, authority, purpose, traceId, now } = context;
    const asked = { requester: actor, owner, authority, purpose, reason };
    const about = refused === undefined ? { id: escalationIdOf(namespaceId, asked) } : aboutCall(refused);
    const question: EscalationQuestion = { ...asked, ...about, reviewer: owner, traceId, executionId, requestedAt: now };
    const subject = namespaceSubject('escalation.open', namespaceId);
    const kept = await bus.request(subject, EscalationOpen, { question }, EscalationOpenReply, { timeoutMs: ANSWER_MS });
    return kept.ok && kept.value.ok;
  };

const aboutCall = ({ call: { id, tool, arguments: given }, requestedAuthority }: RefusedCall) => {
  const digest = callDigestOf({ tool, arguments: given });
  return { id: callQuestionId(requestedAuthority.id, digest), requestedAuthority, call: { id, tool, arguments: given, digest } };
};

/**
 * Puts a call that no grant covers to whoever owns what it is about, where the namespace wants that. The call is refused all the
 * same; an approval allows the very same call, in a later turn.
 *
 * @returns The record of the ask, where there was one.
 */
export const askAboutCall = async (
  keep: KeepQuestion | undefined,
  lease: Pick<TurnLease, 'asksAboutRefusedCalls' | 'executionId'>,
  context: AccessContext,
  mark: AuditMark,
  call: ToolCall,
  { decision }: Pick<Verdict, 'decision'>,
): Promise<readonly AuditEvent[]> => {
  const requestedAuthority = decision?.requiredAuthority;
  if (keep === undefined || requestedAuthority === undefined || !lease.asksAboutRefusedCalls) return [];
  // What somebody else than the turn's authority owns is not for an answer to grant, and what cannot be shown cannot be approved.
  const isAnswerable = sameAddress(context.owner, context.authority) && jsonBytes(call.arguments) <= ASKED_ARGUMENTS_BYTES_MAX;
  const reason = `No grant covers this call of ${call.tool}.`;
  if (!isAnswerable || !(await keep(context, reason, lease.executionId, { call, requestedAuthority }))) return [];
  return [escalationRequested(mark, { detail: reason, reviewer: context.owner, operationId: lease.executionId, requestedAuthority })];
};
