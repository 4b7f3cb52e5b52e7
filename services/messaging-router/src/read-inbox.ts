import { type Delivery, type StoredMessage, deleteMessage, readSubject, withinOneAnswer } from '@sharedos/bus';
import {
  type InboxEntry,
  InboxMessage,
  type MessageEnvelope,
  type MessageInbox,
  PAYLOAD_BYTES_MAX,
  type Reply,
  type RouteState,
  addressKey,
  decodeBody,
  principalSubject,
  refused,
} from '@sharedos/contracts';
import { invariant, isOver, isRevoked } from '@sharedos/kernel';
import { keyOf, readDelivery, stepDelivery } from './delivery-record.ts';
import { LEASE_HEADER } from './hand-over.ts';
import { isOver as isOld } from './inbox-age.ts';
import type { Ports } from './ports.ts';
import { revoke } from './revoke-deliveries.ts';

const PAGE = 50;
const READ_MS = 4_000;

type InboxPorts = Pick<Ports, 'bus' | 'clock' | 'ids' | 'ledger' | 'routes'>;

/**
 * Messages waiting for the caller, oldest first, as many as one answer holds. They stay until they are acknowledged. Here they are
 * handed over, so here each is held against its record and its route once more: what was acknowledged, or revoked, is not shown again
 * by a copy of it that a router brought late.
 */
export const readInbox =
  (ports: InboxPorts) =>
  async ({ limit = PAGE, after = 0 }: MessageInbox, { namespaceId, principal }: Delivery): Promise<Reply<{ messages: InboxEntry[] }>> => {
    invariant(principal !== undefined, 'an inbox is read by its principal');
    const inbox = principalSubject('inbox', namespaceId, principal);
    const options = { timeoutMs: READ_MS, fromSequence: after + 1, limitMessages: limit };
    const [stored, route] = await Promise.all([
      readSubject(ports.bus, 'MESSAGES', inbox, options),
      ports.routes.of(namespaceId, principal),
    ]);
    if (!stored.ok || !route.ok) return away();
    const judged = await Promise.all(stored.value.map((kept) => judge(ports, namespaceId, route.value, kept)));
    if (judged.includes('unavailable')) return away();
    const seen = new Set<string>();
    const messages: InboxEntry[] = [];
    const stale: number[] = [];
    for (const [index, { sequence }] of stored.value.entries()) {
      const message = judged[index];
      if (message === undefined || message === 'unavailable') continue;
      const name = message === 'stale' ? undefined : `${addressKey(message.sender)} ${message.id}`;
      if (message === 'stale' || seen.has(name as string)) stale.push(sequence);
      else messages.push({ sequence, message });
      if (name !== undefined) seen.add(name);
    }
    // Not shown in any case; taken out now, they make room. A deletion that fails is made at the next reading.
    await Promise.all(stale.map((sequence) => deleteMessage(ports.bus, 'MESSAGES', sequence, { timeoutMs: READ_MS })));
    return { ok: true, value: { messages: [...withinOneAnswer(messages)] } };
  };

/** The message, where it is to be shown. `undefined`: it is not, or not yet, and is left where it is. */
const judge = async (
  ports: InboxPorts,
  namespaceId: string,
  route: RouteState,
  kept: StoredMessage,
): Promise<MessageEnvelope | 'stale' | 'unavailable' | undefined> => {
  const decoded = decodeBody(InboxMessage, kept.data, PAYLOAD_BYTES_MAX);
  if (!decoded.ok) return undefined;
  const message = decoded.value;
  if (isRevoked(route, leaseOf(kept))) return (await revoke(ports, namespaceId, message)) ? 'stale' : 'unavailable';
  const now = ports.clock();
  if (isOld(kept, now)) {
    // It is over whether or not that can be recorded.
    await stepDelivery(ports, keyOf(namespaceId, message), { type: 'ExpireDelivery', at: now });
    return 'stale';
  }
  const read = await readDelivery(ports, keyOf(namespaceId, message));
  if (!read.ok) return 'unavailable';
  if (read.value === undefined) return message;
  // It was brought before its record said that it waits for a route. When it leaves, this copy may be the one that is found.
  if (read.value.state.status === 'parked') return undefined;
  return isOver(read.value.state) ? 'stale' : message;
};

const leaseOf = ({ header }: Pick<StoredMessage, 'header'>): number | undefined => {
  const stated = header(LEASE_HEADER);
  return stated === undefined ? undefined : Number(stated);
};

const away = () => refused('inbox_unavailable', 'the inbox did not answer in time; try again', true);
