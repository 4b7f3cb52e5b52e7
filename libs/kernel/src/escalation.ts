import {
  type Address,
  type CapabilityGrant,
  type EscalationAnswered,
  type EscalationEvent,
  type EscalationQuestion,
  type Instant,
  instantOf,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';
import { type Decider, accept, invariant, refuse, unreachable } from './decider.ts';
import { capabilityIsWithin } from './delegation.ts';

export type EscalationCommand =
  | { readonly type: 'OpenEscalation'; readonly question: EscalationQuestion }
  | ({ readonly type: 'ApproveEscalation'; readonly grant: CapabilityGrant } & ByReviewer)
  | ({ readonly type: 'RefuseEscalation'; readonly reason?: string | undefined } & ByReviewer)
  | { readonly type: 'WithdrawEscalation'; readonly by: Address; readonly at: Instant; readonly reason?: string | undefined }
  | { readonly type: 'ExpireEscalation'; readonly at: Instant };

interface ByReviewer {
  readonly by: Address;
  readonly at: Instant;
  /** Whether the owner registered `by` to answer in its place, as the management plane decided. */
  readonly registered?: boolean | undefined;
}

export type EscalationAnswer = 'approved' | 'narrowed' | 'refused' | 'expired' | 'withdrawn';

export type EscalationState =
  | { readonly status: 'absent' }
  | { readonly status: 'open'; readonly question: EscalationQuestion }
  | {
      readonly status: EscalationAnswer;
      readonly question: EscalationQuestion;
      readonly answer: EscalationAnswered;
      readonly grant?: CapabilityGrant;
    };

export type EscalationRefusal = { readonly code: EscalationRefusalCode };
export type EscalationRefusalCode =
  | 'escalation_not_found'
  | 'escalation_answered'
  | 'escalation_expired'
  | 'escalation_not_expired'
  | 'not_the_reviewer'
  | 'not_the_requester'
  | GrantFault;

type GrantFault =
  | 'issuer_not_authority'
  | 'subject_not_requester'
  | 'wider_than_request'
  | 'purpose_not_requested'
  | 'answer_must_expire'
  | 'answer_delegable';

/**
 * One question that a turn ended on. It is answered once; the same ask made again later opens it again. Nothing here resumes a
 * turn: an approval is a new grant, which the agent's next turn may find.
 *
 * @see spec/escalation.md §6
 */
export const escalation: Decider<EscalationState, EscalationCommand, EscalationEvent, EscalationRefusal> = {
  initial: { status: 'absent' },
  decide: (command, state) => {
    if (command.type === 'OpenEscalation') {
      const { question } = command;
      const opened = { type: 'EscalationOpened', question } as const;
      if (state.status !== 'open') return accept([opened]);
      // One that nobody can answer any more is no place to wait in, whether or not its end was recorded.
      if (!isOverAt(state.question, instantOf(question.requestedAt) ?? 0)) return accept([]);
      return accept([{ type: 'EscalationExpired', escalationId: question.id, expiredAt: question.requestedAt }, opened]);
    }
    if (state.status === 'absent') return refuse({ code: 'escalation_not_found' });
    if (state.status !== 'open') return refuse({ code: 'escalation_answered' });
    const { question } = state;
    const { id: escalationId } = question;
    const at = timestampOf(command.at);
    const isOver = isOverAt(question, command.at);
    switch (command.type) {
      case 'ApproveEscalation': {
        const { grant, by } = command;
        if (!isReviewer(command, question)) return refuse({ code: 'not_the_reviewer' });
        if (isOver) return refuse({ code: 'escalation_expired' });
        // Where nothing was named, whatever is given is more than was asked; only who is asked, and the owner, may say what.
        if (question.requestedAuthority === undefined && !isAsked(by, question)) return refuse({ code: 'wider_than_request' });
        const fault = faultOf(grant, question);
        if (fault !== undefined) return refuse({ code: fault });
        const type = givesAll(grant, question) ? 'EscalationApproved' : 'EscalationNarrowed';
        return accept([{ type, escalationId, by, answeredAt: at, grant }]);
      }
      case 'RefuseEscalation': {
        const { by } = command;
        if (!isReviewer(command, question)) return refuse({ code: 'not_the_reviewer' });
        return accept([{ type: 'EscalationRefused', escalationId, by, answeredAt: at, ...because(command) }]);
      }
      case 'WithdrawEscalation': {
        const { by } = command;
        if (!sameAddress(by, question.requester)) return refuse({ code: 'not_the_requester' });
        return accept([{ type: 'EscalationWithdrawn', escalationId, by, withdrawnAt: at, ...because(command) }]);
      }
      case 'ExpireEscalation':
        return isOver ? accept([{ type: 'EscalationExpired', escalationId, expiredAt: at }]) : refuse({ code: 'escalation_not_expired' });
      default:
        return unreachable(command);
    }
  },
  evolve: (state, event) => {
    if (event.type === 'EscalationOpened') return { status: 'open', question: event.question };
    invariant(state.status !== 'absent', 'an escalation is opened before it is answered');
    const { question } = state;
    switch (event.type) {
      case 'EscalationApproved':
        return { status: 'approved', question, answer: { at: event.answeredAt, by: event.by }, grant: event.grant };
      case 'EscalationNarrowed':
        return { status: 'narrowed', question, answer: { at: event.answeredAt, by: event.by }, grant: event.grant };
      case 'EscalationRefused':
        return { status: 'refused', question, answer: { at: event.answeredAt, by: event.by, ...because(event) } };
      case 'EscalationExpired':
        return { status: 'expired', question, answer: { at: event.expiredAt } };
      case 'EscalationWithdrawn':
        return { status: 'withdrawn', question, answer: { at: event.withdrawnAt, by: event.by, ...because(event) } };
      default:
        return unreachable(event);
    }
  },
};

const isOverAt = ({ expiresAt }: EscalationQuestion, at: Instant): boolean => expiresAt !== undefined && at >= (instantOf(expiresAt) ?? 0);

const because = ({ reason }: { readonly reason?: string | undefined }): { readonly reason?: string } =>
  reason === undefined ? {} : { reason };

/** The owner may always answer for what is its own, whoever was asked in its place. */
const isAsked = (by: Address, { reviewer, owner }: EscalationQuestion): boolean => sameAddress(by, reviewer) || sameAddress(by, owner);

/** A registered reviewer answers for others; never its own question. */
const isReviewer = ({ by, registered }: ByReviewer, question: EscalationQuestion): boolean =>
  isAsked(by, question) || (registered === true && !sameAddress(by, question.requester));

/**
 * What keeps a grant from being an answer: one that the next turn would not find, that reaches further than the question, or that
 * outlives it.
 */
const faultOf = (
  { issuer, subject, capabilities, constraints }: CapabilityGrant,
  { authority, requester, requestedAuthority, owner, purpose }: EscalationQuestion,
): GrantFault | undefined => {
  if (!sameAddress(issuer, authority)) return 'issuer_not_authority';
  if (!sameAddress(subject, requester)) return 'subject_not_requester';
  const asked = requestedAuthority?.capabilities;
  if (asked !== undefined && !capabilities.every((given) => asked.some((wanted) => capabilityIsWithin(given, wanted, { owner }))))
    return 'wider_than_request';
  if (constraints.purposes?.length !== 1 || constraints.purposes[0] !== purpose) return 'purpose_not_requested';
  if (constraints.expiresAt === undefined) return 'answer_must_expire';
  return (constraints.delegationDepth ?? 0) > 0 ? 'answer_delegable' : undefined;
};

/** Whether every capability asked for is within one that is given. Where none was named, the answer is what was asked. */
const givesAll = ({ capabilities }: CapabilityGrant, { requestedAuthority, owner }: EscalationQuestion): boolean =>
  requestedAuthority === undefined ||
  requestedAuthority.capabilities.every((wanted) => capabilities.some((given) => capabilityIsWithin(wanted, given, { owner })));
