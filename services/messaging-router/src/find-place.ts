import { type InboxRules, type MessageEnvelope, principalSubject } from '@sharedos/contracts';
import type { Outgoing } from './outgoing.ts';
import type { Ports } from './ports.ts';
import type { Asked } from './replies.ts';

/** Where a message goes: to the turn that waits for it, into a turn that it starts, or into its recipient's inbox. */
export type Place =
  | { readonly kind: 'reply'; readonly natsSubject: string }
  | { readonly kind: 'turn'; readonly natsSubject: string; readonly rules: InboxRules }
  | { readonly kind: 'inbox'; readonly natsSubject: string; readonly rules: InboxRules }
  | { readonly kind: 'unknown' };

/**
 * Finds out where a message goes, and what its recipient says of whom it hears. A message to an agent that is registered, and whose
 * authority and owner agreed to that, starts a turn of it; a reply starts none, or two agents would answer each other for ever.
 */
export const findPlace = async (
  { authority, rules }: Pick<Ports, 'authority' | 'rules'>,
  { context: { namespaceId }, envelope }: Pick<Outgoing, 'context' | 'envelope'>,
  asked: Asked | undefined,
): Promise<Place> => {
  const { receiver, replyTo } = envelope;
  if (asked?.byTurn === true && replyTo !== undefined)
    return { kind: 'reply', natsSubject: principalSubject('reply', namespaceId, receiver, replyTo) };
  const [own, registered] = await Promise.all([rules.of(namespaceId, receiver), startsTurns(authority, namespaceId, envelope)]);
  if (!own.ok || registered === undefined) return { kind: 'unknown' };
  return registered
    ? { kind: 'turn', natsSubject: principalSubject('turn.recipient', namespaceId, receiver), rules: own.value.rules }
    : { kind: 'inbox', natsSubject: principalSubject('inbox', namespaceId, receiver), rules: own.value.rules };
};

const startsTurns = async (
  authority: Ports['authority'],
  namespaceId: string,
  { receiver, replyTo }: MessageEnvelope,
): Promise<boolean | undefined> => {
  if (receiver.kind !== 'agent' || replyTo !== undefined) return false;
  const facts = await authority.namespace(namespaceId, receiver.agentId);
  return facts.ok ? facts.value.agent?.status === 'active' : undefined;
};
