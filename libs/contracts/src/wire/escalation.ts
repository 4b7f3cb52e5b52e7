import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { Capability, CapabilityGrant, CapabilityRequest } from '../grants.ts';
import { JsonObj } from '../json.ts';
import { Address } from '../principals.ts';
import { Hash, Id, NameId, Purpose } from '../scalars.ts';
import { Ts } from '../time.ts';
import { Because, CommandId } from './management.ts';
import { Revision } from './revision.ts';
import { replyMessage, wireMessage } from './wire.ts';

/** Arguments that a question may show, in bytes of their JSON. A call with more is refused, and nobody is asked about it. */
export const ASKED_ARGUMENTS_BYTES_MAX = 32 * 1024;

/** The refused call that a question is about: its exact arguments, as its tool reads them, and the digest that an answer is bound to. */
export const AskedCall = z.strictObject({ id: Id, tool: Id, arguments: JsonObj, digest: Hash });
export type AskedCall = z.infer<typeof AskedCall>;

/**
 * A question that a turn ended on, or that its host asks about a refused call, waiting for a person. Its id is that of the authority it asks for, where it names some, so
 * that the same ask has one place however often it is repeated, and of its call, where it is about one; otherwise it follows from who
 * asked whom, for what and why.
 */
export const EscalationQuestion = z.strictObject({
  id: NameId,
  requester: Address,
  owner: Address,
  authority: Address,
  /** Who is asked; the owner, unless the host knows better. */
  reviewer: Address,
  purpose: Purpose,
  reason: bounded(z.string(), 1, 512),
  traceId: Id,
  executionId: Id.optional(),
  requestedAuthority: CapabilityRequest.optional(),
  /** An approval of such a question allows this call alone, once. */
  call: AskedCall.optional(),
  requestedAt: Ts,
  expiresAt: Ts.optional(),
});
export type EscalationQuestion = z.infer<typeof EscalationQuestion>;

const answered = { escalationId: NameId, by: Address, answeredAt: Ts };

/** Opened, or asked again while it was open or after it was answered: the answers before stay as they were. */
export const EscalationOpened = z.strictObject({ type: z.literal('EscalationOpened'), question: EscalationQuestion });
/** The answer and its grant are one record: the grant is issued from it, and holds what was asked. */
export const EscalationApproved = z.strictObject({ type: z.literal('EscalationApproved'), ...answered, grant: CapabilityGrant });
/** The same for an answer that gives less than was asked. */
export const EscalationNarrowed = z.strictObject({ type: z.literal('EscalationNarrowed'), ...answered, grant: CapabilityGrant });
export const EscalationRefused = z.strictObject({ type: z.literal('EscalationRefused'), ...answered, reason: Because.optional() });
export const EscalationExpired = z.strictObject({ type: z.literal('EscalationExpired'), escalationId: NameId, expiredAt: Ts });
export const EscalationWithdrawn = z.strictObject({
  type: z.literal('EscalationWithdrawn'),
  escalationId: NameId,
  by: Address,
  withdrawnAt: Ts,
  reason: Because.optional(),
});

export const EscalationEvent = z.discriminatedUnion('type', [
  EscalationOpened,
  EscalationApproved,
  EscalationNarrowed,
  EscalationRefused,
  EscalationExpired,
  EscalationWithdrawn,
]);
export type EscalationEvent = z.infer<typeof EscalationEvent>;

export const EscalationStatus = z.enum(['open', 'approved', 'narrowed', 'refused', 'expired', 'withdrawn']);

/** When a question was answered, by whom, and why; nobody answers one that expired. */
export const EscalationAnswered = z.strictObject({ at: Ts, by: Address.optional(), reason: Because.optional() });
export type EscalationAnswered = z.infer<typeof EscalationAnswered>;

/** A question and what became of it. `grant` is what an approval gave; its id follows from the question's. */
export const EscalationItem = z.strictObject({
  question: EscalationQuestion,
  status: EscalationStatus,
  grant: CapabilityGrant.optional(),
  answer: EscalationAnswered.optional(),
});
export type EscalationItem = z.infer<typeof EscalationItem>;

/** The payload of the message that tells of a question: its reviewers when it is asked, and whoever asked when it is answered. */
export const EscalationNotice = z.strictObject({
  escalation: z.strictObject({
    id: NameId,
    status: EscalationStatus,
    requester: Address,
    owner: Address,
    purpose: Purpose,
    reason: bounded(z.string(), 1, 512),
    requestedAt: Ts,
    expiresAt: Ts.optional(),
    /** The tool of the call that it is about; its arguments are in the item alone. */
    tool: Id.optional(),
    answer: EscalationAnswered.optional(),
    grantId: Id.optional(),
  }),
  /** From this revision on a turn finds the grant. */
  revision: Revision.optional(),
});
export type EscalationNotice = z.infer<typeof EscalationNotice>;

/** Between services: keeps a question before its turn is told as escalated. The same question again while it is open changes nothing. */
export const EscalationOpen = wireMessage('escalation.open/1', z.strictObject({ question: EscalationQuestion }));
export type EscalationOpen = z.infer<typeof EscalationOpen.schema>;
export const EscalationOpenReply = replyMessage('escalation.open.reply/1', z.strictObject({ escalationId: NameId, revision: Revision }));

/** The questions that the caller asked, is asked, owns what is asked for, or reviews for their owner, newest first. */
export const EscalationList = wireMessage(
  'escalation.list/1',
  z.strictObject({ status: EscalationStatus.optional(), limit: z.int().min(1).max(100).optional() }),
);
export type EscalationList = z.infer<typeof EscalationList.schema>;
export const EscalationsAt = z.strictObject({ escalations: bounded(z.array(EscalationItem), 0, 100), revision: Revision });
export type EscalationsAt = z.infer<typeof EscalationsAt>;
export const EscalationListReply = replyMessage('escalation.list.reply/1', EscalationsAt);

/** One question; to others than those it concerns it is not there. */
export const EscalationShow = wireMessage('escalation.show/1', z.strictObject({ escalationId: NameId }));
export type EscalationShow = z.infer<typeof EscalationShow.schema>;
export const EscalationAt = z.strictObject({ escalation: EscalationItem, revision: Revision });
export type EscalationAt = z.infer<typeof EscalationAt>;
export const EscalationReply = replyMessage('escalation.reply/1', EscalationAt);

/**
 * What a reviewer says. An approval gives `capabilities`, or all that was asked for: it may narrow and not widen. Its grant is for the
 * purpose of the question, ends at `expiresAt` (an hour from the answer when absent), allows `usesMax` uses (one when absent), and
 * cannot be passed on. About a call, it allows that call once, and no number of uses is said.
 */
export const EscalationResolution = z.discriminatedUnion('answer', [
  z.strictObject({
    answer: z.literal('approve'),
    capabilities: bounded(z.array(Capability), 1, 64).optional(),
    expiresAt: Ts.optional(),
    usesMax: z.int().min(1).max(1_000_000).optional(),
  }),
  z.strictObject({ answer: z.literal('refuse'), reason: Because.optional() }),
  z.strictObject({ answer: z.literal('withdraw'), reason: Because.optional() }),
]);
export type EscalationResolution = z.infer<typeof EscalationResolution>;

/** Answers a question as its reviewer, as the owner or in its place, or withdraws one's own. */
export const EscalationResolve = wireMessage(
  'escalation.resolve/1',
  z.strictObject({ commandId: CommandId, escalationId: NameId, resolution: EscalationResolution }),
);
export type EscalationResolve = z.infer<typeof EscalationResolve.schema>;
