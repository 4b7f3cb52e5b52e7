import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { Json } from '../json.ts';
import { DeliveryResult, MessageEnvelope } from '../messages.ts';
import { Address } from '../principals.ts';
import { Id, NameId, Purpose } from '../scalars.ts';
import { Ts } from '../time.ts';
import { replyMessage, wireMessage } from './wire.ts';

/**
 * Sends one message. The sender is the caller; `authority` is whose grant it exercises and `owner` whose resource the
 * recipient's inbox is taken to be, the caller itself when absent. A body that names another `sender` is `identity_mismatch`.
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
