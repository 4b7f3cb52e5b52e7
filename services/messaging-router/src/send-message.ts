import type { Delivery } from '@sharedos/bus';
import {
  type DeliveryResult,
  type MessageSend,
  PROTOCOL_VERSION,
  type Reply,
  refused,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';
import { invariant, provenanceOf } from '@sharedos/kernel';
import { ATTRIBUTE, SPAN, recordOutcome, withSpan } from '@sharedos/telemetry';
import { type Outgoing, canReceive, denied, outgoing, recordRefused } from './outgoing.ts';
import type { Ports } from './ports.ts';
import { sendOnce } from './send-once.ts';

/**
 * Sends one message to one recipient, under its own decision. The send is recorded before the message is delivered, and its
 * receipt after; the same message sent again is answered with the same receipt and delivered once.
 *
 * @see spec/messaging.md §3 and §8
 */
export const sendMessage =
  (ports: Ports) =>
  async (body: MessageSend, { namespaceId, principal }: Delivery): Promise<Reply<DeliveryResult>> => {
    invariant(principal !== undefined, 'messages are sent by principals');
    if (!canReceive(body.receiver)) return refused('invalid_request', 'the id of the receiver cannot be a segment of a path');
    const send = sendOf(ports, namespaceId, principal, body);
    if (body.sender !== undefined && !sameAddress(body.sender, principal)) {
      await recordRefused(ports, send, denied(ports, send.envelope, 'identity_mismatch'));
      return refused('identity_mismatch', 'the message names a sender other than the principal that published it');
    }
    const attributes = { [ATTRIBUTE.namespaceId]: namespaceId, [ATTRIBUTE.messageId]: body.id };
    return withSpan(SPAN.messageSend, { attributes }, async (span) => {
      const reply = await sendOnce(ports, send);
      recordOutcome(span, reply.ok ? reply.value.status : 'failed', reply.ok ? undefined : reply.error.code);
      return reply;
    });
  };

const sendOf = (ports: Ports, namespaceId: string, sender: Outgoing['envelope']['sender'], body: MessageSend): Outgoing => {
  const { id, receiver, purpose, payload, traceId, createdAt, replyTo, expiresAt } = body;
  const authority = body.authority ?? sender;
  return outgoing(
    {
      namespaceId,
      actor: sender,
      authority,
      owner: body.owner ?? authority,
      purpose,
      traceId,
      enabledToolNamespaces: [],
      now: timestampOf(ports.clock()),
    },
    {
      version: PROTOCOL_VERSION,
      id,
      sender,
      receiver,
      purpose,
      payload,
      traceId,
      createdAt,
      ...(replyTo === undefined ? {} : { replyTo }),
      provenance: provenanceOf('message.send'),
    },
    ports.ids(),
    { expiresAt },
  );
};
