import { setTimeout as pause } from 'node:timers/promises';
import type { HeldRoute, SharedOS } from '@sharedos/client';
import type { Address } from '@sharedos/contracts';
import { ALICE } from '../../support/test-system.ts';
import type { Plan, PlannedMessage } from './plan.ts';

/** What its recipient was handed, and what it acknowledged, in the order in which it happened to it. */
export type Handed = { readonly what: 'handed' | 'acknowledged'; readonly id: string };

export interface Observed {
  /** Messages whose sender was told that they were accepted. */
  readonly accepted: Set<string>;
  /** Messages whose sender was told anything else at the end, and what. */
  readonly refused: Map<string, string>;
  readonly handed: Map<string, Handed[]>;
}

const SENT_AT_ONCE = 12;
const AGAIN_MS = 250;
const PAGE = 100;
const ACKNOWLEDGED_AT_ONCE = 16;
const LEASE_MS = 60_000;
const AWAY_MS = 1_500;

export interface Sending {
  readonly plan: Plan;
  clientOf(sender: number): Promise<SharedOS>;
  recipientOf(recipient: number): Address;
  readonly observed: Observed;
  readonly signal: AbortSignal;
  /** Hears how many messages were sent, whatever is known of them yet. */
  onSent(count: number): void;
}

/** Sends every message, and the same again until it is known what became of it; what a dead router holds keeps nobody waiting. */
export const sendAll = async (sending: Sending): Promise<void> => {
  const queue = [...sending.plan.messages];
  const held: Promise<void>[] = [];
  let sent = 0;
  const lane = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined && !sending.signal.aborted; next = queue.shift()) {
      const again = await sendingOf(sending, next);
      while (!sending.signal.aborted && (await again()) === 'unanswered') await pause(AGAIN_MS);
      held.push(untilKnown(sending, again));
      sending.onSent((sent += 1));
    }
  };
  await Promise.all(Array.from({ length: SENT_AT_ONCE }, lane));
  await Promise.all(held);
};

/** @returns One attempt with the same message each time: `known` once it is told what became of it, `held` while another has it. */
const sendingOf = async ({ clientOf, recipientOf, observed }: Sending, { id, from, to }: PlannedMessage) => {
  const { messages } = await clientOf(from);
  const createdAt = new Date().toISOString();
  const message = { id, traceId: id, receiver: recipientOf(to), purpose: 'weathering', payload: id, authority: ALICE, createdAt };
  let known = false;
  return async (): Promise<'known' | 'held' | 'unanswered'> => {
    if (known) return 'known';
    const answer = await messages.send(message);
    if (!answer.ok) return 'unanswered';
    const { value } = answer;
    if ('error' in value && value.error.code === 'replay_pending') return 'held';
    known = true;
    if ('error' in value) observed.refused.set(id, `${value.status} ${value.error.code}`);
    else observed.accepted.add(id);
    return 'known';
  };
};

const untilKnown = async ({ signal }: Sending, again: Awaited<ReturnType<typeof sendingOf>>): Promise<void> => {
  while (!signal.aborted && (await again()) !== 'known') await pause(AGAIN_MS);
};

/** Reads an inbox, acknowledges all that is in it, and notes both in the order in which they are certain. */
export const receive = async (client: SharedOS, name: string, observed: Observed, isOver: () => Promise<boolean>): Promise<void> => {
  const mine: Handed[] = [];
  observed.handed.set(name, mine);
  for (;;) {
    const over = await isOver();
    const inbox = await client.messages.inbox({ limit: PAGE });
    const entries = inbox.ok ? [...inbox.value] : [];
    for (const { message } of entries) mine.push({ what: 'handed', id: message.id });
    const lane = async (): Promise<void> => {
      for (let entry = entries.shift(); entry !== undefined; entry = entries.shift()) {
        const acknowledged = await client.messages.ack(entry.sequence);
        if (acknowledged.ok && acknowledged.value) mine.push({ what: 'acknowledged', id: entry.message.id });
      }
    };
    const found = entries.length;
    await Promise.all(Array.from({ length: ACKNOWLEDGED_AT_ONCE }, lane));
    if (over && inbox.ok && found === 0) return;
    if (found === 0) await pause(AGAIN_MS);
  }
};

/** Leases a route and, whenever told, is away for a moment: what is sent meanwhile is parked. */
export const leaseRoute = async (client: SharedOS): Promise<{ away(): Promise<void> }> => {
  const { route } = client.messages;
  const hold = async (): Promise<HeldRoute> => {
    for (;;) {
      const held = await route.hold({ ttlMs: LEASE_MS });
      if (held.ok) return held.value;
      await pause(AGAIN_MS);
    }
  };
  let held = await hold();
  return {
    away: async () => {
      await held.pause();
      await pause(AWAY_MS);
      held = await hold();
    },
  };
};
