import {
  type AccessContext,
  type Address,
  type DeliveryResult,
  MESSAGE_PAYLOAD_BYTES_MAX,
  type MessageEnvelope,
  Path,
  addressId,
  addressPath,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';
import { type AuditMark, messageSent, operationKeyHash } from '@sharedos/kernel';
import type { OperationKey } from '@sharedos/ledger';
import type { Ports } from './ports.ts';

/** One message on its way out. */
export interface Outgoing {
  readonly context: AccessContext;
  readonly envelope: MessageEnvelope;
  /** From when on nobody is shown it any more. */
  readonly expiresAt?: string | undefined;
  readonly key: OperationKey;
  readonly turnId: string;
  /** The name its one use is taken under. */
  readonly operation: string;
  /** The call of a turn that was allowed to send it; absent for one that is decided here. */
  readonly callId?: string;
}

export const outgoing = (
  context: AccessContext,
  envelope: MessageEnvelope,
  turnId: string,
  more: Partial<Pick<Outgoing, 'expiresAt' | 'callId' | 'operation'>> = {},
): Outgoing => {
  const { namespaceId } = context;
  const { sender, id } = envelope;
  return {
    context,
    envelope,
    turnId,
    key: { namespaceId, kind: 'message', requester: sender, id },
    operation: operationKeyHash(namespaceId, 'message', sender, id),
    ...more,
  };
};

/** Whether a grant can name a recipient, and an inbox have its name. */
export const canReceive = (receiver: Address): boolean =>
  addressId(receiver).isWellFormed() && Path.safeParse(addressPath(receiver)).success;

/** Why an envelope cannot be of this context, or of this size, before anything is decided on it. */
export const envelopeFault = ({ context, envelope }: Outgoing): 'message_context_mismatch' | 'message_too_large' | undefined => {
  const { sender, purpose, traceId, payload } = envelope;
  if (!sameAddress(sender, context.actor) || purpose !== context.purpose || traceId !== context.traceId) return 'message_context_mismatch';
  return Buffer.byteLength(JSON.stringify(payload)) > MESSAGE_PAYLOAD_BYTES_MAX ? 'message_too_large' : undefined;
};

export const markOf = ({ ids, clock }: Pick<Ports, 'ids' | 'clock'>, { context, turnId }: Outgoing): AuditMark => ({
  id: ids(),
  at: clock(),
  context,
  place: { turnId },
});

/** The record of how a send went. `grantId` only where it was decided here: a turn's own record names the grant of its call. */
export const sentRecord = (ports: Pick<Ports, 'ids' | 'clock'>, send: Outgoing, result: DeliveryResult, grantId?: string) => {
  const { id, receiver } = send.envelope;
  const outcome = result.status === 'denied' || result.status === 'failed' ? result.status : 'succeeded';
  const reason = 'error' in result ? result.error.code : undefined;
  return messageSent(markOf(ports, send), { messageId: id, receiver, outcome, operationId: send.callId, grantId, reason });
};

/** Nothing ran and nothing will: it is refused whether or not that could be recorded. */
export const recordRefused = (ports: Pick<Ports, 'ids' | 'clock' | 'audit'>, send: Outgoing, result: DeliveryResult) =>
  ports.audit(sentRecord(ports, send, result));

const receiptOf = ({ clock }: Pick<Ports, 'clock'>, { id }: MessageEnvelope) => ({ messageId: id, timestamp: timestampOf(clock()) });

export const accepted = (ports: Pick<Ports, 'clock'>, envelope: MessageEnvelope): DeliveryResult => ({
  status: 'accepted',
  ...receiptOf(ports, envelope),
});

export const denied = (ports: Pick<Ports, 'clock'>, envelope: MessageEnvelope, code: string): DeliveryResult => ({
  status: 'denied',
  ...receiptOf(ports, envelope),
  error: { code, message: `The message was refused: ${code}.`, retryable: false },
});

export const failed = (ports: Pick<Ports, 'clock'>, envelope: MessageEnvelope, code: string, retryable = false): DeliveryResult => ({
  status: 'failed',
  ...receiptOf(ports, envelope),
  error: { code, message: `The message was not delivered: ${code}.`, retryable },
});
