import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { Json } from '../json.ts';
import { AccessContext } from '../access.ts';
import { DeliveryResult, MessageEnvelope } from '../messages.ts';
import { Address } from '../principals.ts';
import { Id, NameId, Purpose, Version } from '../scalars.ts';
import { Ts } from '../time.ts';
import { ChangeCount } from './management.ts';
import { Revision } from './revision.ts';
import { RouteLease } from './route.ts';
import { replyMessage, wireMessage } from './wire.ts';

/**
 * Largest payload of a message, in bytes of its JSON. Larger content is left where it is, and its resource and digest are sent: the
 * recipient reads it under its own grants, or not at all.
 */
export const MESSAGE_PAYLOAD_BYTES_MAX = 48 * 1024;

/**
 * Sends one message. The sender is the caller; `authority` is whose grant it exercises and `owner` whose resource the
 * recipient's inbox is taken to be, the caller itself when absent. A body that names another `sender` is `identity_mismatch`.
 * From `expiresAt` on nobody is shown a message that still waits in an inbox.
 */
export const MessageSend = wireMessage(
  'message.send/1',
  z.strictObject({
    id: NameId,
    receiver: Address,
    purpose: Purpose,
    payload: Json,
    traceId: Id,
    createdAt: Ts,
    sender: Address.optional(),
    authority: Address.optional(),
    owner: Address.optional(),
    replyTo: Id.optional(),
    expiresAt: Ts.optional(),
  }),
);
export type MessageSend = z.infer<typeof MessageSend.schema>;
export const MessageSendReply = replyMessage('message.send.reply/1', DeliveryResult);

/** Messages waiting for the caller, oldest first, after a place in its inbox. */
export const MessageInbox = wireMessage(
  'message.inbox/1',
  z.strictObject({ limit: z.int().min(1).max(100).optional(), after: z.int().min(0).optional() }),
);
export type MessageInbox = z.infer<typeof MessageInbox.schema>;
export const InboxEntry = z.strictObject({ sequence: z.int().min(1), message: MessageEnvelope });
export type InboxEntry = z.infer<typeof InboxEntry>;
/** One message as its recipient's inbox keeps it. */
export const InboxMessage = wireMessage('inbox.message/1', MessageEnvelope);
export const MessageInboxReply = replyMessage('message.inbox.reply/1', z.strictObject({ messages: bounded(z.array(InboxEntry), 0, 100) }));

/** Takes a message out of the caller's inbox for good. Acknowledging twice changes nothing. */
export const MessageAck = wireMessage('message.ack/1', z.strictObject({ sequence: z.int().min(1) }));
export type MessageAck = z.infer<typeof MessageAck.schema>;
export const MessageAckReply = replyMessage('message.ack.reply/1', z.strictObject({ acknowledged: z.boolean() }));

/** Whom a principal hears: nothing from those it blocks, and no more a minute than it says. Each router counts for itself. */
export const InboxRules = z.strictObject({
  blocked: bounded(z.array(Address), 0, 256),
  perMinuteMax: z.int().min(1).max(1_000_000).optional(),
  perSenderPerMinuteMax: z.int().min(1).max(1_000_000).optional(),
});
export type InboxRules = z.infer<typeof InboxRules>;
export const InboxRulesMessage = wireMessage('inbox.rules/1', InboxRules);

/** The rules of the caller's own inbox; with `rules`, replaces them, if they still are at `expectedVersion` where that is stated. */
export const MessageRules = wireMessage(
  'message.rules/1',
  z.strictObject({ rules: InboxRules.optional(), expectedVersion: ChangeCount.optional() }),
);
export type MessageRules = z.infer<typeof MessageRules.schema>;
/** `version` grows with every change; 0 where none was made. */
export const InboxRulesAt = z.strictObject({ rules: InboxRules, version: ChangeCount });
export type InboxRulesAt = z.infer<typeof InboxRulesAt>;
export const MessageRulesReply = replyMessage('message.rules.reply/1', InboxRulesAt);

/**
 * Between services: delivers a message that a call of a turn was allowed to send. Its decision and its use are on the record of the
 * turn, so none is made here.
 */
export const MessageDeliver = wireMessage(
  'message.deliver/1',
  z.strictObject({
    context: AccessContext,
    envelope: MessageEnvelope,
    callId: Id,
    turnId: Id,
    revision: Revision.optional(),
    /** The name that the call's use was taken under. A message that is parked is decided anew by it, and takes no other use. */
    operation: Id.optional(),
  }),
);
export type MessageDeliver = z.infer<typeof MessageDeliver.schema>;
export const MessageDeliverReply = replyMessage('message.deliver.reply/1', DeliveryResult);

/**
 * Between services: what the turn that `message` started came to. It is sent back as an ordinary message of that agent, under its
 * registration and its own grant to send; refused like any other where there is none.
 */
export const MessageAnswer = wireMessage(
  'message.answer/1',
  z.strictObject({ executionId: NameId, message: MessageEnvelope, output: Json, completedAt: Ts }),
);
export type MessageAnswer = z.infer<typeof MessageAnswer.schema>;
export const MessageAnswerReply = replyMessage('message.answer.reply/1', DeliveryResult);

/** A reply to a request that a turn waits for, under the tokens of who asked and the id of the request. The first one counts. */
export const ReplyMessage = wireMessage('message.reply/1', MessageEnvelope);

/**
 * Starts a turn of the agent that a message is for. Under whose authority and over whose resources is not in it: that is what the
 * agent's registration says when the turn is taken.
 */
export const RecipientTurn = wireMessage(
  'turn.recipient/1',
  z.strictObject({
    version: Version,
    executionId: NameId,
    message: MessageEnvelope,
    requestedAt: Ts,
    /** Of an agent with a route: the lease that it was dispatched under. The turn takes it by `message.take`, or is not run. */
    lease: RouteLease.optional(),
  }),
);
export type RecipientTurn = z.infer<typeof RecipientTurn.schema>;
