import { type Delivery, deleteMessage, messageAt } from '@sharedos/bus';
import { type MessageAck, type Reply, principalSubject, refused } from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';
import type { Ports } from './ports.ts';

const ANSWER_MS = 4_000;

/**
 * Takes a message out of the caller's inbox for good. A sequence that is not in the caller's own inbox is answered like one that
 * was acknowledged before, so nobody learns of, or touches, another's message.
 */
export const acknowledgeMessage =
  ({ bus }: Ports) =>
  async ({ sequence }: MessageAck, { namespaceId, principal }: Delivery): Promise<Reply<{ acknowledged: boolean }>> => {
    invariant(principal !== undefined, 'an inbox is emptied by its principal');
    const found = await messageAt(bus, 'MESSAGES', sequence, { timeoutMs: ANSWER_MS });
    if (!found.ok) return unavailable();
    if (found.value?.subject !== principalSubject('inbox', namespaceId, principal)) return { ok: true, value: { acknowledged: false } };
    const deleted = await deleteMessage(bus, 'MESSAGES', sequence, { timeoutMs: ANSWER_MS });
    return deleted.ok ? { ok: true, value: { acknowledged: deleted.value } } : unavailable();
  };

const unavailable = () => refused('inbox_unavailable', 'the inbox did not answer in time; try again', true);
