import { type Route, route } from '@sharedos/bus';
import { MessageAck, MessageAckReply, MessageInbox, MessageInboxReply, MessageSend, MessageSendReply } from '@sharedos/contracts';
import { acknowledgeMessage } from './acknowledge-message.ts';
import type { Ports } from './ports.ts';
import { readInbox } from './read-inbox.ts';
import { sendMessage } from './send-message.ts';

/** All that the messaging-router answers, on one screen. */
export const composeMessagingRouter = (ports: Ports): readonly Route[] => [
  route('message.send', { request: MessageSend, reply: MessageSendReply, handle: sendMessage(ports) }),
  route('message.inbox', { request: MessageInbox, reply: MessageInboxReply, handle: readInbox(ports) }),
  route('message.ack', { request: MessageAck, reply: MessageAckReply, handle: acknowledgeMessage(ports) }),
];
