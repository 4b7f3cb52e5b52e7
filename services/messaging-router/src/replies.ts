import type { AuditEvent, MessageEnvelope } from '@sharedos/contracts';
import { type AskedMessage, answersMessage, foldExecution } from '@sharedos/kernel';
import type { Ports } from './ports.ts';

/** A recipient may answer before the record of what it answers is complete. */
const RECORDED_MS = 2_000;
const LOOK_AGAIN_MS = 20;

/** What a message answers, as its own send recorded it. */
export interface Asked extends AskedMessage {
  /** A turn waits for the answer, and nobody else does. */
  readonly byTurn: boolean;
}

/**
 * Finds the message that a reply names, under the principal it goes to: what somebody else asked cannot be answered, or found.
 *
 * @returns `undefined` where there is no such message, or none that was taken.
 */
export const askedBy = async (
  { ledger, wait }: Pick<Ports, 'ledger' | 'wait'>,
  namespaceId: string,
  { receiver, replyTo }: Pick<MessageEnvelope, 'receiver' | 'replyTo'>,
): Promise<Asked | undefined | 'unavailable'> => {
  if (replyTo === undefined) return undefined;
  for (let waitedMs = 0; ; waitedMs += LOOK_AGAIN_MS) {
    const read = await ledger.read({ namespaceId, kind: 'message', requester: receiver, id: replyTo });
    if (!read.ok) return 'unavailable';
    if (read.value === undefined) return undefined;
    const { ended } = foldExecution(read.value.records);
    if (ended !== undefined) {
      const sent = ended.audit.find(({ type, outcome }) => type === 'message.sent' && outcome === 'succeeded');
      return sent === undefined ? undefined : askedOf(sent);
    }
    if (waitedMs >= RECORDED_MS) return 'unavailable';
    await wait(LOOK_AGAIN_MS);
  }
};

const askedOf = ({ actor, receiver, messageId, purpose, traceId, operationId }: AuditEvent): Asked | undefined =>
  receiver === undefined || messageId === undefined
    ? undefined
    : { id: messageId, sender: actor, receiver, purpose, traceId, byTurn: operationId !== undefined };

/** Why a message is not the reply that it says it is. One code for all: nobody learns what others asked. */
export const replyFault = (envelope: MessageEnvelope, asked: Asked | undefined): 'invalid_message_reply' | undefined =>
  envelope.replyTo === undefined || (asked !== undefined && answersMessage(envelope, asked)) ? undefined : 'invalid_message_reply';
