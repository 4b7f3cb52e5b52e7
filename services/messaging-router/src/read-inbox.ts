import { type Delivery, deleteMessage, readSubject, withinOneAnswer } from '@sharedos/bus';
import {
  type InboxEntry,
  InboxMessage,
  type MessageInbox,
  PAYLOAD_BYTES_MAX,
  type Reply,
  decodeBody,
  principalSubject,
  refused,
} from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';
import { isOver } from './inbox-age.ts';
import type { Ports } from './ports.ts';

const PAGE = 50;
const READ_MS = 4_000;

/** Messages waiting for the caller, oldest first, as many as one answer holds. They stay until they are acknowledged. */
export const readInbox =
  ({ bus, clock }: Pick<Ports, 'bus' | 'clock'>) =>
  async ({ limit = PAGE, after = 0 }: MessageInbox, { namespaceId, principal }: Delivery): Promise<Reply<{ messages: InboxEntry[] }>> => {
    invariant(principal !== undefined, 'an inbox is read by its principal');
    const inbox = principalSubject('inbox', namespaceId, principal);
    const stored = await readSubject(bus, 'MESSAGES', inbox, { timeoutMs: READ_MS, fromSequence: after + 1, limitMessages: limit });
    if (!stored.ok) return refused('inbox_unavailable', 'the inbox did not answer in time; try again', true);
    const now = clock();
    const over = stored.value.filter((message) => isOver(message, now));
    // It is not shown in any case; taken out now, it makes room. A deletion that fails is made at the next reading.
    await Promise.all(over.map(({ sequence }) => deleteMessage(bus, 'MESSAGES', sequence, { timeoutMs: READ_MS })));
    const messages = stored.value.flatMap((kept) => {
      if (over.includes(kept)) return [];
      const { data, sequence } = kept;
      const message = decodeBody(InboxMessage, data, PAYLOAD_BYTES_MAX);
      return message.ok ? [{ sequence, message: message.value }] : [];
    });
    return { ok: true, value: { messages: [...withinOneAnswer(messages)] } };
  };
