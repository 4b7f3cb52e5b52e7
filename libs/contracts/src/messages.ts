import { z } from 'zod';
import { bounded } from './bounded.ts';
import { Json, JsonObj } from './json.ts';
import { ProtocolError } from './errors.ts';
import { Address } from './principals.ts';
import { Id, Purpose, Version } from './scalars.ts';
import { Ts } from './time.ts';

/** Data plus one purpose fixed by the host. A message brings no authority. @see spec/messaging.md §1 */
export const MessageEnvelope = z.strictObject({
  version: Version,
  id: Id,
  sender: Address,
  receiver: Address,
  purpose: Purpose,
  payload: Json,
  traceId: Id,
  createdAt: Ts,
  replyTo: Id.optional(),
  provenance: z.strictObject({ source: Id, parentIds: bounded(z.array(Id), 0, 64), metadata: JsonObj.optional() }).optional(),
});
export type MessageEnvelope = z.infer<typeof MessageEnvelope>;

const receipt = { messageId: Id, timestamp: Ts, metadata: JsonObj.optional() };

export const DeliveryResult = z.discriminatedUnion('status', [
  z.strictObject({ status: z.literal('accepted'), ...receipt }),
  z.strictObject({ status: z.literal('delivered'), ...receipt }),
  z.strictObject({ status: z.literal('denied'), ...receipt, error: ProtocolError }),
  z.strictObject({ status: z.literal('failed'), ...receipt, error: ProtocolError }),
]);
export type DeliveryResult = z.infer<typeof DeliveryResult>;
