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
import { SPAN, withSpan } from '@sharedos/telemetry';
import type { Place } from './find-place.ts';
import { EXPIRES_HEADER } from './inbox-age.ts';
import { type Outgoing, accepted, denied, failed } from './outgoing.ts';
import type { Ports } from './ports.ts';

const DELIVER_MS = 5_000;

/** Puts a message where it goes. `undefined` when its fate is unknown, also after looking for it there. */
export const dispatch = (ports: Ports, send: Outgoing, place: Place): Promise<DeliveryResult | undefined> =>
  withSpan(SPAN.messageDeliver, {}, async () => {
    const { envelope } = send;
    if (place.kind === 'unknown') return failed(ports, envelope, 'message_delivery_failed');
    if (place.kind === 'reply') {
      // All replies are kept; the first on the subject is the one that is waited for.
      const stored = await ports.bus.publishStored(place.natsSubject, { message: ReplyMessage, body: envelope }, { timeoutMs: DELIVER_MS });
      return stored.ok ? accepted(ports, envelope) : refusedBy(ports, envelope, stored.error.kind, 'message_delivery_failed');
    }
    const unheard = ports.rules.fault(send, place.rules);
    if (unheard !== undefined) return denied(ports, envelope, unheard);
    return place.kind === 'turn' ? startTurn(ports, send, place.natsSubject) : putIntoInbox(ports, send, place.natsSubject);
  });

const putIntoInbox = async (ports: Ports, { envelope, expiresAt }: Outgoing, inbox: string): Promise<DeliveryResult | undefined> => {
  const stored = await ports.bus.publishStored(
    inbox,
    { message: InboxMessage, body: envelope },
    { timeoutMs: DELIVER_MS, ...(expiresAt === undefined ? {} : { headers: { [EXPIRES_HEADER]: expiresAt } }) },
  );
  if (stored.ok || (stored.error.kind === 'unavailable' && (await ports.inboxHolds(inbox, envelope)))) return accepted(ports, envelope);
  return refusedBy(ports, envelope, stored.error.kind, 'inbox_full');
};

/** Queued twice, it is still one turn: its execution id follows from the message alone. */
const startTurn = async (ports: Ports, { context, envelope }: Outgoing, queue: string): Promise<DeliveryResult | undefined> => {
  const body: RecipientTurn = {
    version: PROTOCOL_VERSION,
    executionId: recipientExecutionId(context.namespaceId, envelope),
    message: envelope,
    requestedAt: timestampOf(ports.clock()),
  };
  const stored = await ports.bus.publishStored(queue, { message: RecipientTurn, body }, { timeoutMs: DELIVER_MS });
  return stored.ok ? accepted(ports, envelope) : refusedBy(ports, envelope, stored.error.kind, 'recipient_busy');
};

export const recipientExecutionId = (namespaceId: string, { sender, id }: Pick<MessageEnvelope, 'sender' | 'id'>): string =>
  `message-${hashOf({ namespaceId, sender, id }).slice(0, 48)}`;

const refusedBy = (
  ports: Ports,
  envelope: MessageEnvelope,
  kind: 'unavailable' | 'full' | 'too_large' | 'wrong_sequence',
  whenFull: string,
): DeliveryResult | undefined =>
  kind === 'unavailable' ? undefined : failed(ports, envelope, kind === 'full' ? whenFull : 'message_delivery_failed');
