import type { QueuedDelivery } from '@sharedos/bus';
import { turnEnded } from '@sharedos/kernel';
import type { RefusedRequest } from './accept-request.ts';
import type { Ports } from './ports.ts';
import { type Requester, publishRefusal } from './turn-answers.ts';
import { countRefusal } from './turn-metrics.ts';

/** When a request that could not be settled is offered again. */
export const ASK_AGAIN_MS = 1_000;

/** Refuses a request that never becomes a turn: on record, if it could be read at all, and then told to who sent it. */
export const refuseRequest = async (
  ports: Ports,
  delivery: QueuedDelivery,
  from: Requester,
  { executionId, context, error }: RefusedRequest,
): Promise<void> => {
  countRefusal(from.namespaceId, error.code);
  if (context !== undefined && executionId !== undefined) {
    const mark = { id: ports.ids(), at: ports.clock(), context };
    const recorded = await ports.audit(turnEnded(mark, { executionId, status: 'denied', code: error.code }));
    if (!recorded.ok) return delivery.nak(ASK_AGAIN_MS);
  }
  const told = await publishRefusal(ports.bus, from, {
    sequence: delivery.sequence,
    error,
    ...(executionId === undefined ? {} : { executionId }),
  });
  return told ? acknowledge(delivery) : delivery.nak(ASK_AGAIN_MS);
};

/** An acknowledgement that was lost brings the message again, and then it is answered from the record. */
export const acknowledge = async (delivery: QueuedDelivery): Promise<void> => {
  await delivery.ack();
};
