import { randomUUID } from 'node:crypto';
import {
  type DeliveryResult,
  type DeliveryStatus,
  type InboxEntry,
  MessageAck,
  MessageAckReply,
  MessageInbox,
  MessageInboxReply,
  MessageSend,
  MessageSendReply,
  MessageStatus,
  MessageStatusReply,
  type Result,
  ok,
  timestampOf,
} from '@sharedos/contracts';
import type { ClientError } from './client-error.ts';
import { type Route, routeOf } from './route-leases.ts';
import { type Session, ask } from './session.ts';

/** A message to send. Its id makes a repetition the same message; id, trace and time are minted when absent. */
export type OutgoingMessage = Pick<MessageSend, 'receiver' | 'purpose' | 'payload'> & Partial<MessageSend>;

export interface Inbox {
  /** Answers `denied` or `failed` as a delivery; only what could not be asked at all is an error. */
  send(message: OutgoingMessage): Promise<Result<DeliveryResult, ClientError>>;
  /** What became of a message that this principal sent: accepted, parked, dispatched, delivered, or why it did not arrive. */
  status(id: string): Promise<Result<DeliveryStatus, ClientError>>;
  readonly route: Route;
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
  status: (id) => ask(session, 'message.status', MessageStatus, { id }, MessageStatusReply),
  route: routeOf(session),
  inbox: async (query = {}) => {
    const answer = await ask(session, 'message.inbox', MessageInbox, query, MessageInboxReply);
    return answer.ok ? ok(answer.value.messages) : answer;
  },
  ack: async (sequence) => {
    const answer = await ask(session, 'message.ack', MessageAck, { sequence }, MessageAckReply);
    return answer.ok ? ok(answer.value.acknowledged) : answer;
  },
});
