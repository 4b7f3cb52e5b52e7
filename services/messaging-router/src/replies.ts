import type { MessageEnvelope } from '@sharedos/contracts';
import { type AskedMessage, answersMessage, deliveryOf, foldExecution } from '@sharedos/kernel';
import type { Ports } from './ports.ts';

/** What a message answers, as its own send recorded it. */
export interface Asked extends AskedMessage {
  /** A turn waits for the answer, and nobody else does. */
  readonly byTurn: boolean;
}

/**
 * Finds the message that a reply names, under the principal it goes to: what somebody else asked cannot be answered, or found. Its
 * claim says all that is needed, so that a recipient may answer before the record of what it answers is complete.
 *
 * @returns `undefined` where there is no such message, or none that was taken.
 */
export const askedBy = async (
  { ledger }: Pick<Ports, 'ledger'>,
  namespaceId: string,
  { receiver, replyTo }: Pick<MessageEnvelope, 'receiver' | 'replyTo'>,
): Promise<Asked | undefined | 'unavailable'> => {
  if (replyTo === undefined) return undefined;
  const read = await ledger.read({ namespaceId, kind: 'message', requester: receiver, id: replyTo });
  if (!read.ok) return 'unavailable';
  if (read.value === undefined) return undefined;
  const { claimed } = foldExecution(read.value.records);
  if (claimed?.message === undefined || NEVER_SENT.has(deliveryOf(read.value.records).status)) return undefined;
  const { operationId: id, requester: sender, traceId, message } = claimed;
  return { id, sender, traceId, ...message };
};

const NEVER_SENT: ReadonlySet<string> = new Set(['denied', 'failed']);

/** Why a message is not the reply that it says it is. One code for all: nobody learns what others asked. */
export const replyFault = (envelope: MessageEnvelope, asked: Asked | undefined): 'invalid_message_reply' | undefined =>
  envelope.replyTo === undefined || (asked !== undefined && answersMessage(envelope, asked)) ? undefined : 'invalid_message_reply';
