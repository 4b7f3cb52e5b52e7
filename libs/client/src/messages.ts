import { randomUUID } from 'node:crypto';
import {
  type DeliveryResult,
  type InboxEntry,
  MessageAck,
  MessageAckReply,
  MessageInbox,
  MessageInboxReply,
  MessageSend,
  MessageSendReply,
  type Result,
  ok,
  timestampOf,
} from '@sharedos/contracts';
import type { ClientError } from './client-error.ts';
import { type Session, ask } from './session.ts';

/** A message to send. Its id makes a repetition the same message; id, trace and time are minted when absent. */
export type OutgoingMessage = Pick<MessageSend, 'receiver' | 'purpose' | 'payload'> & Partial<MessageSend>;

export interface Inbox {
  /** Answers `denied` or `failed` as a delivery; only what could not be asked at all is an error. */
  send(message: OutgoingMessage): Promise<Result<DeliveryResult, ClientError>>;
  /** Messages waiting, oldest first. */
  inbox(query?: MessageInbox): Promise<Result<readonly InboxEntry[], ClientError>>;
  /** Takes one out for good; false when it was not there any more. */
  ack(sequence: number): Promise<Result<boolean, ClientError>>;
}

export const inboxOf = (session: Session): Inbox => ({
  send: (message) => {
    const minted = { id: randomUUID(), traceId: randomUUID(), createdAt: timestampOf(Date.now()) };
    return ask(session, 'message.send', MessageSend, { ...minted, ...message }, MessageSendReply);
  },
  inbox: async (query = {}) => {
    const answer = await ask(session, 'message.inbox', MessageInbox, query, MessageInboxReply);
    return answer.ok ? ok(answer.value.messages) : answer;
  },
  ack: async (sequence) => {
    const answer = await ask(session, 'message.ack', MessageAck, { sequence }, MessageAckReply);
    return answer.ok ? ok(answer.value.acknowledged) : answer;
  },
});
