import { type Bus, readSubject } from '@sharedos/bus';
import { InboxMessage, type MessageEnvelope, decodeOwnBody, sameJson } from '@sharedos/contracts';

const READ_MS = 5_000;

/**
 * Whether a message whose acknowledgement was lost is in the inbox after all: the very message, since its id is its sender's alone.
 * `false` proves nothing: it may be on its way still, or the broker may not answer.
 */
export const inboxHolds =
  (bus: Bus) =>
  async (inbox: string, envelope: MessageEnvelope): Promise<boolean> => {
    const waiting = await readSubject(bus, 'MESSAGES', inbox, { timeoutMs: READ_MS });
    if (!waiting.ok) return false;
    return waiting.value.some(({ data }) => {
      const message = decodeOwnBody(InboxMessage, data);
      return message.ok && sameJson(message.value, envelope);
    });
  };
