import { z } from 'zod';
import { AccessContext } from '../access.ts';
import { MessageEnvelope } from '../messages.ts';
import { Address } from '../principals.ts';
import { Id, NameId } from '../scalars.ts';
import { Ts } from '../time.ts';
import { RouteLease } from './route.ts';
import { replyMessage, wireMessage } from './wire.ts';

/** Where a message is handed over: in its recipient's inbox, to a turn that it starts, or to the turn that waits for it. */
export const DeliveryPlace = z.enum(['inbox', 'turn', 'reply']);
export type DeliveryPlace = z.infer<typeof DeliveryPlace>;

/**
 * What happens to one message, on the record of its send.
 *
 * - `MessageAccepted`: it was decided and admitted, and is in custody.
 * - `MessageParked`: there is no live route to its recipient; it waits for one until `until`.
 * - `MessageDispatched`: it is on its way, under a lease of the route where the recipient has one.
 * - `MessageDelivered`: its recipient acknowledged it, or its turn took it. It is handed to nobody again.
 * - `MessageDenied`, `MessageFailed`: it was not to be, or could not be, dispatched.
 * - `MessageRevoked`: the route was closed before it arrived.
 * - `MessageExpired`: its time was over before it arrived.
 */
export const DeliveryEvent = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('MessageAccepted'), at: Ts }),
  z.strictObject({ type: z.literal('MessageParked'), at: Ts, until: Ts }),
  z.strictObject({ type: z.literal('MessageDispatched'), at: Ts, to: DeliveryPlace, lease: RouteLease.optional() }),
  z.strictObject({ type: z.literal('MessageDelivered'), at: Ts }),
  z.strictObject({ type: z.literal('MessageDenied'), at: Ts, code: Id }),
  z.strictObject({ type: z.literal('MessageFailed'), at: Ts, code: Id }),
  z.strictObject({ type: z.literal('MessageRevoked'), at: Ts, code: Id }),
  z.strictObject({ type: z.literal('MessageExpired'), at: Ts }),
]);
export type DeliveryEvent = z.infer<typeof DeliveryEvent>;

/** A message that waits for a route to its recipient, with all that is needed to decide it anew when one opens. */
export const ParkedMessage = wireMessage(
  'parked.message/1',
  z.strictObject({
    context: AccessContext,
    envelope: MessageEnvelope,
    /** The name that its one use was taken under: decided anew, it takes no other. */
    operation: Id,
    /** The call of a turn that sent it, where one did. */
    callId: Id.optional(),
    until: Ts,
    expiresAt: Ts.optional(),
  }),
);
export type ParkedMessage = z.infer<typeof ParkedMessage.schema>;

/** What became of a message that the caller sent. */
export const MessageStatus = wireMessage('message.status/1', z.strictObject({ id: NameId }));
export type MessageStatus = z.infer<typeof MessageStatus.schema>;
export const DeliveryStatus = z.strictObject({
  messageId: Id,
  /** `pending`: it is not decided yet. */
  state: z.enum(['pending', 'accepted', 'parked', 'dispatched', 'delivered', 'denied', 'failed', 'revoked', 'expired']),
  at: Ts,
  /** Why it did not arrive. */
  code: Id.optional(),
  /** How long a parked message waits. */
  until: Ts.optional(),
});
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;
export const MessageStatusReply = replyMessage('message.status.reply/1', DeliveryStatus);

/**
 * Between services: a turn that a message starts is about to take it. Asked again, it is the same turn. `taken: false` says by which
 * code the message is not to be had any more.
 */
export const MessageTake = wireMessage('message.take/1', z.strictObject({ sender: Address, receiver: Address, id: Id, lease: RouteLease }));
export type MessageTake = z.infer<typeof MessageTake.schema>;
export const TakenMessage = z.strictObject({ taken: z.boolean(), code: Id.optional() });
export type TakenMessage = z.infer<typeof TakenMessage>;
export const MessageTakeReply = replyMessage('message.take.reply/1', TakenMessage);
