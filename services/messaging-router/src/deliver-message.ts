import type { Delivery } from '@sharedos/bus';
import { type DeliveryResult, type MessageDeliver, type Reply, refused } from '@sharedos/contracts';
import { ATTRIBUTE, SPAN, recordOutcome, withSpan } from '@sharedos/telemetry';
import { canReceive, outgoing } from './outgoing.ts';
import type { Ports } from './ports.ts';
import { sendOnce } from './send-once.ts';

/**
 * Delivers what a call of a turn was allowed to send. The call's decision and its use are on the turn's own record, so none is made
 * here; all that is not a decision is checked as for any other message.
 *
 * @see spec/messaging.md §5
 */
export const deliverMessage =
  (ports: Ports) =>
  async ({ context, envelope, callId, turnId, operation }: MessageDeliver, { namespaceId }: Delivery): Promise<Reply<DeliveryResult>> => {
    if (context.namespaceId !== namespaceId || !canReceive(envelope.receiver))
      return refused('invalid_request', 'the message is of another namespace, or its receiver cannot be a segment of a path');
    const attributes = { [ATTRIBUTE.namespaceId]: namespaceId, [ATTRIBUTE.messageId]: envelope.id };
    return withSpan(SPAN.messageSend, { attributes }, async (span) => {
      const reply = await sendOnce(
        ports,
        outgoing(context, envelope, turnId, { callId, ...(operation === undefined ? {} : { operation }) }),
      );
      recordOutcome(span, reply.ok ? reply.value.status : 'failed', reply.ok ? undefined : reply.error.code);
      return reply;
    });
  };
