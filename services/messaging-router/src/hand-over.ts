import {
  type DeliveryResult,
  InboxMessage,
  type MessageEnvelope,
  PROTOCOL_VERSION,
  RecipientTurn,
  ReplyMessage,
  hashOf,
  timestampOf,
} from '@sharedos/contracts';
import type { Place } from './find-place.ts';
import { EXPIRES_HEADER } from './inbox-age.ts';
import { type Outgoing, accepted, failed } from './outgoing.ts';
import type { Ports } from './ports.ts';

const DELIVER_MS = 5_000;
/** The lease of the recipient's route that a message in an inbox was dispatched under. */
export const LEASE_HEADER = 'sharedos-route-lease';

/**
 * Brings a message to where it goes. Done twice it is handed over once: a reply by being the first, a turn by its execution id, and
 * what lies in an inbox by the record of its send, which every reading consults.
 *
 * @returns `undefined` when its fate is unknown, also after looking for it there.
 */
export const handOver = async (
  ports: Pick<Ports, 'bus' | 'clock' | 'inboxHolds'>,
  send: Outgoing,
  place: Exclude<Place, { kind: 'unknown' }>,
  lease?: number,
): Promise<DeliveryResult | undefined> => {
  switch (place.kind) {
    case 'reply':
      return putReply(ports, send, place.natsSubject);
    case 'turn':
      return startTurn(ports, send, place.natsSubject, lease);
    case 'inbox':
      return putIntoInbox(ports, send, place.natsSubject, lease);
  }
};

/** All replies are kept; the first on the subject is the one that is waited for. */
const putReply = async ({ bus, clock }: Pick<Ports, 'bus' | 'clock'>, { envelope }: Outgoing, natsSubject: string) => {
  const stored = await bus.publishStored(natsSubject, { message: ReplyMessage, body: envelope }, { timeoutMs: DELIVER_MS });
  return stored.ok ? accepted({ clock }, envelope) : refusedBy({ clock }, envelope, stored.error.kind, 'message_delivery_failed');
};

const putIntoInbox = async (
  { bus, clock, inboxHolds }: Pick<Ports, 'bus' | 'clock' | 'inboxHolds'>,
  { envelope, expiresAt, operation }: Outgoing,
  inbox: string,
  lease: number | undefined,
): Promise<DeliveryResult | undefined> => {
  const headers = {
    ...(expiresAt === undefined ? {} : { [EXPIRES_HEADER]: expiresAt }),
    ...(lease === undefined ? {} : { [LEASE_HEADER]: String(lease) }),
  };
  const put = (messageId?: string) =>
    bus.publishStored(
      inbox,
      { message: InboxMessage, body: envelope },
      { timeoutMs: DELIVER_MS, headers, ...(messageId === undefined ? {} : { messageId }) },
    );
  // A copy brought within minutes of the first is none, by a name that is a hash no body can choose. But where the first was taken out
  // again, since it came before its record said that it was on its way, the broker's memory of it would lose the message.
  const first = await put(`inbox-${operation}`);
  const stored = first.ok && first.value.duplicate && !(await inboxHolds(inbox, envelope)) ? await put() : first;
  if (stored.ok || (stored.error.kind === 'unavailable' && (await inboxHolds(inbox, envelope)))) return accepted({ clock }, envelope);
  return refusedBy({ clock }, envelope, stored.error.kind, 'inbox_full');
};

/** Queued twice, it is still one turn: its execution id follows from the message alone. */
const startTurn = async (
  { bus, clock }: Pick<Ports, 'bus' | 'clock'>,
  { context, envelope }: Outgoing,
  queue: string,
  lease: number | undefined,
): Promise<DeliveryResult | undefined> => {
  const body: RecipientTurn = {
    version: PROTOCOL_VERSION,
    executionId: recipientExecutionId(context.namespaceId, envelope),
    message: envelope,
    requestedAt: timestampOf(clock()),
    ...(lease === undefined ? {} : { lease }),
  };
  const stored = await bus.publishStored(queue, { message: RecipientTurn, body }, { timeoutMs: DELIVER_MS });
  return stored.ok ? accepted({ clock }, envelope) : refusedBy({ clock }, envelope, stored.error.kind, 'recipient_busy');
};

export const recipientExecutionId = (namespaceId: string, { sender, id }: Pick<MessageEnvelope, 'sender' | 'id'>): string =>
  `message-${hashOf({ namespaceId, sender, id }).slice(0, 48)}`;

const refusedBy = (
  ports: Pick<Ports, 'clock'>,
  envelope: MessageEnvelope,
  kind: 'unavailable' | 'full' | 'too_large' | 'wrong_sequence',
  whenFull: string,
): DeliveryResult | undefined =>
  kind === 'unavailable' ? undefined : failed(ports, envelope, kind === 'full' ? whenFull : 'message_delivery_failed');
