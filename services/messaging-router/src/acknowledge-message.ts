import { type Delivery, deleteMessage, messageAt } from '@sharedos/bus';
import { InboxMessage, type MessageAck, PAYLOAD_BYTES_MAX, type Reply, decodeBody, principalSubject, refused } from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';
import { keyOf, stepDelivery } from './delivery-record.ts';
import type { Ports } from './ports.ts';

const ANSWER_MS = 4_000;

/**
 * Takes a message out of the caller's inbox for good. That it was delivered is on record before its place is emptied, so that no copy
 * of it is ever handed over again. A sequence that is not in the caller's own inbox is answered like one that was acknowledged before,
 * so nobody learns of, or touches, another's message.
 */
export const acknowledgeMessage =
  (ports: Pick<Ports, 'bus' | 'ledger' | 'clock' | 'ids'>) =>
  async ({ sequence }: MessageAck, { namespaceId, principal }: Delivery): Promise<Reply<{ acknowledged: boolean }>> => {
    invariant(principal !== undefined, 'an inbox is emptied by its principal');
    const { bus, clock } = ports;
    const found = await messageAt(bus, 'MESSAGES', sequence, { timeoutMs: ANSWER_MS });
    if (!found.ok) return away();
    if (found.value?.subject !== principalSubject('inbox', namespaceId, principal)) return { ok: true, value: { acknowledged: false } };
    const message = decodeBody(InboxMessage, found.value.data, PAYLOAD_BYTES_MAX);
    const step = message.ok
      ? await stepDelivery(ports, keyOf(namespaceId, message.value), { type: 'ConfirmDelivery', at: clock() })
      : undefined;
    if (step?.ok === false && step.error.kind === 'unavailable') return away();
    // Revoked or over meanwhile: it is gone, and was not received.
    const isLate = step?.ok === false && step.error.kind === 'refused';
    const deleted = await deleteMessage(bus, 'MESSAGES', sequence, { timeoutMs: ANSWER_MS });
    return deleted.ok ? { ok: true, value: { acknowledged: deleted.value && !isLate } } : away();
  };

const away = () => refused('inbox_unavailable', 'the inbox did not answer in time; try again', true);
