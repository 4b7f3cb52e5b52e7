import { type Bus, type Delivery, lastOnSubject } from '@sharedos/bus';
import {
  type Address,
  type InboxRules,
  type InboxRulesAt,
  InboxRulesMessage,
  type Instant,
  type MessageRules,
  type Reply,
  type Result,
  type Unavailable,
  addressKey,
  decodeOwnBody,
  ok,
  principalSubject,
  refused,
  sameAddress,
  unavailable,
} from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';
import type { Outgoing } from './outgoing.ts';
import type { Ports } from './ports.ts';
import { RateWindows } from './rate-windows.ts';

const ANSWER_MS = 4_000;
const NONE: InboxRulesAt = { rules: { blocked: [] }, version: 0 };

/** Whom each principal hears, as it says itself; and how much it heard in the last minute through this router. */
export class InboxRuleBook {
  readonly #bus: Bus;
  readonly #windows: RateWindows;

  constructor(bus: Bus, clock: () => Instant) {
    this.#bus = bus;
    this.#windows = new RateWindows(clock);
  }

  /** The rules in force, read anew: a sender that was blocked before a send began is not heard by it. `version` is opaque. */
  async of(namespaceId: string, principal: Address): Promise<Result<InboxRulesAt, Unavailable>> {
    const subject = principalSubject('inboxrules', namespaceId, principal);
    const last = await lastOnSubject(this.#bus, 'MESSAGES', subject, { timeoutMs: ANSWER_MS });
    if (!last.ok) return last;
    if (last.value === undefined) return ok(NONE);
    const rules = decodeOwnBody(InboxRulesMessage, last.value.data);
    return rules.ok ? ok({ rules: rules.value, version: last.value.sequence }) : unavailable('the rules of the inbox cannot be read');
  }

  /** Whether the recipient does not hear this sender at all. Nothing is counted. */
  blocks({ envelope: { sender } }: Pick<Outgoing, 'envelope'>, { blocked }: InboxRules): boolean {
    return blocked.some((one) => sameAddress(one, sender));
  }

  /** Why the recipient does not hear this message. One that it does hear counts from then on. */
  fault(send: Pick<Outgoing, 'context' | 'envelope'>, rules: InboxRules): 'sender_blocked' | 'recipient_rate_limited' | undefined {
    if (this.blocks(send, rules)) return 'sender_blocked';
    const { perMinuteMax, perSenderPerMinuteMax } = rules;
    const {
      context: { namespaceId },
      envelope: { sender, receiver },
    } = send;
    const place = `${namespaceId} ${addressKey(receiver)}`;
    const limits = [
      ...(perMinuteMax === undefined ? [] : [{ key: place, max: perMinuteMax }]),
      ...(perSenderPerMinuteMax === undefined ? [] : [{ key: `${place} ${addressKey(sender)}`, max: perSenderPerMinuteMax }]),
    ];
    return this.#windows.take(limits) ? undefined : 'recipient_rate_limited';
  }
}

/** Tells, or replaces, the rules of the caller's own inbox. */
export const messageRules =
  ({ bus, rules: book }: Pick<Ports, 'bus' | 'rules'>) =>
  async ({ rules, expectedVersion }: MessageRules, { namespaceId, principal }: Delivery): Promise<Reply<InboxRulesAt>> => {
    invariant(principal !== undefined, 'an inbox is ruled by its principal');
    const now = await book.of(namespaceId, principal);
    if (!now.ok) return away();
    if (rules === undefined) return { ok: true, value: now.value };
    if (expectedVersion !== undefined && expectedVersion !== now.value.version) return changed(now.value.version);
    const stored = await bus.publishStored(
      principalSubject('inboxrules', namespaceId, principal),
      { message: InboxRulesMessage, body: rules },
      { timeoutMs: ANSWER_MS, expectedLastSubjectSequence: now.value.version },
    );
    if (stored.ok) return { ok: true, value: { rules, version: stored.value.sequence } };
    return stored.error.kind === 'wrong_sequence' ? changed(stored.error.found ?? now.value.version) : away();
  };

const away = () => refused('inbox_unavailable', 'the inbox did not answer in time; try again', true);
const changed = (version: number): Reply<never> => ({
  ok: false,
  error: { code: 'version_conflict', message: 'the rules were changed meanwhile; read them again', retryable: false, details: { version } },
});
