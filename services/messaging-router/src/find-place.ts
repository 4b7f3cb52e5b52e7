import { type InboxRules, type MessageEnvelope, NOTICE_SENDER, type RouteState, principalSubject, sameAddress } from '@sharedos/contracts';
import { route as routeRules } from '@sharedos/kernel';
import type { Outgoing } from './outgoing.ts';
import type { Ports } from './ports.ts';
import type { Asked } from './replies.ts';

/** Where a message goes: to the turn that waits for it, into a turn that it starts, or into its recipient's inbox. */
export type Place =
  | { readonly kind: 'reply'; readonly natsSubject: string }
  | { readonly kind: 'turn' | 'inbox'; readonly natsSubject: string; readonly rules: InboxRules; readonly route: RouteState }
  | { readonly kind: 'unknown' };

/**
 * Finds out where a message goes, what its recipient says of whom it hears, and whether there is a path to it. A message to an agent
 * that is registered, and whose authority and owner agreed to that, starts a turn of it; a reply starts none, or two agents would
 * answer each other for ever.
 */
export const findPlace = async (
  { authority, rules, routes }: Pick<Ports, 'authority' | 'rules' | 'routes'>,
  { context: { namespaceId }, envelope }: Pick<Outgoing, 'context' | 'envelope'>,
  asked: Asked | undefined,
): Promise<Place> => {
  const { receiver, replyTo } = envelope;
  if (asked?.byTurn === true && replyTo !== undefined)
    return { kind: 'reply', natsSubject: principalSubject('reply', namespaceId, receiver, replyTo) };
  const [own, route, registered] = await Promise.all([
    rules.of(namespaceId, receiver),
    routes.of(namespaceId, receiver),
    startsTurns(authority, namespaceId, envelope),
  ]);
  if (!own.ok || !route.ok || registered === undefined) return { kind: 'unknown' };
  // A notice of the system starts no turn and waits for no route: it is there when its recipient looks.
  const found = { rules: own.value.rules, route: sameAddress(envelope.sender, NOTICE_SENDER) ? routeRules.initial : route.value };
  return registered
    ? { kind: 'turn', natsSubject: principalSubject('turn.recipient', namespaceId, receiver), ...found }
    : { kind: 'inbox', natsSubject: principalSubject('inbox', namespaceId, receiver), ...found };
};

const startsTurns = async (
  authority: Ports['authority'],
  namespaceId: string,
  { sender, receiver, replyTo }: MessageEnvelope,
): Promise<boolean | undefined> => {
  if (receiver.kind !== 'agent' || replyTo !== undefined || sameAddress(sender, NOTICE_SENDER)) return false;
  const facts = await authority.namespace(namespaceId, receiver.agentId);
  return facts.ok ? facts.value.agent?.status === 'active' : undefined;
};
