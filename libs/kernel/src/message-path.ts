import { type Address, type MessageEnvelope, addressKey, sameAddress } from '@sharedos/contracts';

/** Messages that may follow from each other: each sent in the turn that the one before it started. */
export const HOPS_MAX = 16;

export type Provenance = NonNullable<MessageEnvelope['provenance']>;

/**
 * How a message came about: `source` made it, in the turn that `cause` started, or in none. It is appended hop by hop and decides
 * nothing about permission.
 *
 * @see spec/messaging.md §11.2
 */
export const provenanceOf = (source: string, cause?: Pick<MessageEnvelope, 'id' | 'sender' | 'provenance'>): Provenance => {
  if (cause === undefined) return { source, parentIds: [] };
  const { id, sender, provenance } = cause;
  return {
    source,
    parentIds: [...(provenance?.parentIds ?? []), id].slice(-64),
    metadata: { senders: [...sendersOf(provenance), addressKey(sender)].slice(-64) },
  };
};

/**
 * Why a message may not follow from those before it. An agent that is asked by whomever it is waiting for would wait for itself,
 * and a chain without an end would spend what every agent on it is allowed. A reply goes back the way it came, and ends there.
 */
export const pathFault = ({ sender, receiver, replyTo, provenance }: MessageEnvelope): 'message_hop_limit' | 'message_loop' | undefined => {
  const parents = provenance?.parentIds.length ?? 0;
  if (parents === 0 || replyTo !== undefined) return undefined;
  if (parents > HOPS_MAX) return 'message_hop_limit';
  const waits = receiver.kind === 'agent' && (sameAddress(sender, receiver) || sendersOf(provenance).includes(addressKey(receiver)));
  return waits ? 'message_loop' : undefined;
};

const sendersOf = (provenance: Provenance | undefined): readonly string[] => {
  const senders = provenance?.metadata?.['senders'];
  return Array.isArray(senders) ? senders.filter((sender): sender is string => typeof sender === 'string') : [];
};

/** What a reply is measured by: who asked whom, for what and within which trace. */
export interface AskedMessage {
  readonly id: string;
  readonly sender: Address;
  readonly receiver: Address;
  readonly purpose: string;
  readonly traceId: string;
}

/** Whether a message is the answer to another: from whoever was asked, to whoever asked, about that. */
export const answersMessage = (reply: MessageEnvelope, asked: AskedMessage): boolean =>
  reply.replyTo === asked.id &&
  sameAddress(reply.sender, asked.receiver) &&
  sameAddress(reply.receiver, asked.sender) &&
  reply.purpose === asked.purpose &&
  reply.traceId === asked.traceId;
