import { type Route, route } from '@sharedos/bus';
import {
  MessageAck,
  MessageAckReply,
  MessageAnswer,
  MessageAnswerReply,
  MessageDeliver,
  MessageDeliverReply,
  MessageInbox,
  MessageInboxReply,
  MessageRules,
  MessageRoute,
  MessageRouteReply,
  MessageRulesReply,
  MessageSend,
  MessageSendReply,
  MessageStatus,
  MessageStatusReply,
  MessageTake,
  MessageTakeReply,
} from '@sharedos/contracts';
import { acknowledgeMessage } from './acknowledge-message.ts';
import { answerMessage } from './answer-message.ts';
import { deliverMessage } from './deliver-message.ts';
import { messageRules } from './inbox-rules.ts';
import { messageRoute } from './message-route.ts';
import { messageStatus } from './message-status.ts';
import type { Ports } from './ports.ts';
import { readInbox } from './read-inbox.ts';
import { sendMessage } from './send-message.ts';
import { takeMessage } from './take-message.ts';

/** All that the messaging-router answers, on one screen. */
export const composeMessagingRouter = (ports: Ports): readonly Route[] => [
  route('message.send', { request: MessageSend, reply: MessageSendReply, handle: sendMessage(ports) }),
  route('message.inbox', { request: MessageInbox, reply: MessageInboxReply, handle: readInbox(ports) }),
  route('message.ack', { request: MessageAck, reply: MessageAckReply, handle: acknowledgeMessage(ports) }),
  route('message.rules', { request: MessageRules, reply: MessageRulesReply, handle: messageRules(ports) }),
  route('message.route', { request: MessageRoute, reply: MessageRouteReply, handle: messageRoute(ports) }),
  route('message.status', { request: MessageStatus, reply: MessageStatusReply, handle: messageStatus(ports) }),
  route('message.take', { request: MessageTake, reply: MessageTakeReply, handle: takeMessage(ports) }),
  route('message.deliver', { request: MessageDeliver, reply: MessageDeliverReply, handle: deliverMessage(ports) }),
  route('message.answer', { request: MessageAnswer, reply: MessageAnswerReply, handle: answerMessage(ports) }),
];
