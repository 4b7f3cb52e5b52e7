import {
  type Address,
  type CapabilityGrant,
  type EscalationItem,
  type EscalationQuestion,
  type Instant,
  instantOf,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';
import { type EscalationState, escalation, escalationGrantId } from '@sharedos/kernel';
import { readNamespaceEvent } from '../fold/namespace-events.ts';
import type { Ports } from '../ports.ts';

/** A question that was put, whatever became of it. */
export type Known = Exclude<EscalationState, { status: 'absent' }>;

/** Where a question is decided on. */
export const questionStream = (namespaceId: string, id: string) => ({
  stream: { category: 'escalation', namespaceId, id } as const,
  decider: escalation,
  parseEvent: readNamespaceEvent('escalation'),
});

export const concerns = ({ requester, owner, reviewer }: EscalationQuestion, principal: Address): boolean =>
  [requester, owner, reviewer].some((party) => sameAddress(party, principal));

/** One that nobody answered in time is told as expired, whether or not that was recorded. */
export const itemOf = (state: Known, now: Instant): EscalationItem => {
  const { question, status } = state;
  if (isOver(state, now)) return { question, status: 'expired', answer: { at: question.expiresAt ?? timestampOf(now) } };
  const grant = 'grant' in state ? state.grant : undefined;
  return {
    question,
    status,
    ...('answer' in state ? { answer: state.answer } : {}),
    ...(grant === undefined ? {} : { grant }),
  };
};

/** Whether a question is still open, and its time is over. */
export const isOver = ({ question: { expiresAt }, status }: Known, now: Instant): boolean =>
  status === 'open' && expiresAt !== undefined && now >= (instantOf(expiresAt) ?? 0);

/** The grant that an approval of this question issued, as it stands; it is there before the question says that it was approved. */
export const grantFor = ({ fold }: Pick<Ports, 'fold'>, namespaceId: string, question: EscalationQuestion): CapabilityGrant | undefined =>
  fold.index.grantAt(namespaceId, escalationGrantId(namespaceId, question), Infinity, Infinity)?.grant;
