import { type Delivery, reportDistrust } from '@sharedos/bus';
import {
  type AccessContext,
  type Address,
  type AuditEvent,
  type DeliveryResult,
  type EndedRecord,
  InboxMessage,
  type MessageEnvelope,
  type MessageSend,
  Path,
  PROTOCOL_VERSION,
  type Reply,
  type UseTaken,
  addressId,
  addressPath,
  hashOf,
  principalSubject,
  sameAddress,
  timestampOf,
  refused,
} from '@sharedos/contracts';
import {
  type AuditMark,
  authorizationChecked,
  decidedWithoutAuthority,
  foldExecution,
  invariant,
  messageSent,
  operationKeyHash,
  replayAnswer,
} from '@sharedos/kernel';
import type { LedgerClaim, OperationHistory, OperationKey } from '@sharedos/ledger';
import { ATTRIBUTE, SPAN, recordOutcome, withSpan } from '@sharedos/telemetry';
import type { Ports } from './ports.ts';

/** A send is one operation and soon over; its token need not outlive it by more. */
const VALID_FOR_MS = 30_000;
const DELIVER_MS = 5_000;
/** An operation this old has lost its router. Whether its message was delivered is then unknown, and stays so. */
const ABANDONED_AFTER_MS = 60_000;

/** One send, under way. */
interface Send {
  readonly context: AccessContext;
  readonly envelope: MessageEnvelope;
  readonly key: OperationKey;
  readonly turnId: string;
  /** The name its one use is taken under. */
  readonly operation: string;
}

/**
 * Sends one message to one recipient, under its own decision. The send is recorded before the message is delivered, and its
 * receipt after; the same message sent again is answered with the same receipt and delivered once.
 *
 * @see spec/messaging.md §3 and §8
 */
export const sendMessage =
  (ports: Ports) =>
  async (body: MessageSend, { namespaceId, principal }: Delivery): Promise<Reply<DeliveryResult>> => {
    invariant(principal !== undefined, 'messages are sent by principals');
    // No grant can name such a recipient, and no inbox could have its name.
    if (!addressId(body.receiver).isWellFormed() || !Path.safeParse(addressPath(body.receiver)).success) {
      return refused('invalid_request', 'the id of the receiver cannot be a segment of a path');
    }
    const send = sendOf(ports, namespaceId, principal, body);
    if (body.sender !== undefined && !sameAddress(body.sender, principal)) {
      await recordRefused(ports, send, 'identity_mismatch');
      return refused('identity_mismatch', 'the message names a sender other than the principal that published it');
    }
    return withSpan(
      SPAN.messageSend,
      { attributes: { [ATTRIBUTE.namespaceId]: namespaceId, [ATTRIBUTE.messageId]: body.id } },
      async (span) => {
        const reply = await claimAndSend(ports, send);
        recordOutcome(span, reply.ok ? reply.value.status : 'failed', reply.ok ? undefined : reply.error.code);
        return reply;
      },
    );
  };

const sendOf = ({ clock, ids }: Ports, namespaceId: string, sender: Address, body: MessageSend): Send => {
  const { id, receiver, purpose, payload, traceId, createdAt, replyTo } = body;
  const authority = body.authority ?? sender;
  const key = { namespaceId, kind: 'message', requester: sender, id } as const;
  return {
    context: {
      namespaceId,
      actor: sender,
      authority,
      owner: body.owner ?? authority,
      purpose,
      traceId,
      enabledToolNamespaces: [],
      now: timestampOf(clock()),
    },
    envelope: {
      version: PROTOCOL_VERSION,
      id,
      sender,
      receiver,
      purpose,
      payload,
      traceId,
      createdAt,
      ...(replyTo === undefined ? {} : { replyTo }),
    },
    key,
    turnId: ids(),
    operation: operationKeyHash(namespaceId, 'message', sender, id),
  };
};

const claimAndSend = async (ports: Ports, send: Send): Promise<Reply<DeliveryResult>> => {
  const { now: _, ...frame } = send.context;
  const fingerprint = hashOf({ context: frame, envelope: send.envelope });
  const claimed = await ports.ledger.claim(send.key, {
    type: 'claimed',
    at: timestampOf(ports.clock()),
    ownerId: ports.instance,
    turnId: send.turnId,
    fingerprint,
    requester: send.envelope.sender,
    operationId: send.envelope.id,
    traceId: send.envelope.traceId,
    requestSequence: 0,
  });
  if (claimed.ok) return authorizeAndDeliver(ports, send, claimed.value);
  if (claimed.error.kind === 'exists') return answerAgain(ports, send, fingerprint, claimed.error.history);
  return refused('ledger_unavailable', 'the send could not be recorded; send the same message again', true);
};

/** Open, decide, spend, admit, deliver, settle. */
const authorizeAndDeliver = async (ports: Ports, send: Send, claim: LedgerClaim): Promise<Reply<DeliveryResult>> => {
  const { context, envelope, turnId, operation } = send;
  const request = {
    resource: { namespace: 'sharedos.messaging', path: [...addressPath(envelope.receiver)], owner: context.owner },
    action: 'send',
  };
  const opened = await ports.authority.open({ turnId, context, validForMs: VALID_FOR_MS, auditId: ports.ids() });
  const verdict = opened.ok
    ? await ports.authority.decide(
        opened.value.token,
        context,
        { kind: 'authorize', request, consume: true, operation, operationId: envelope.id },
        [ports.ids(), ports.ids()],
      )
    : opened;
  if (!verdict.ok) {
    const decided = decidedWithoutAuthority({ code: 'grant_source_failed' });
    const decision = authorizationChecked(mark(ports, send), { request, decided, consume: true, operationId: envelope.id });
    return finish(ports, send, claim, denied(ports, envelope, 'authority_unavailable'), [decision]);
  }
  const { status, code, decision, use, above, audit } = verdict.value;
  if (status !== 'allowed') return finish(ports, send, claim, denied(ports, envelope, code), audit);
  if (use !== undefined && !(await spend(ports, send, [use, ...(above ?? [])]))) {
    const unclaimed = { decision: { allowed: false, reasonCode: 'usage_store_unavailable' } };
    const event = authorizationChecked(mark(ports, send), { request, decided: unclaimed, consume: true, operationId: envelope.id });
    return finish(ports, send, claim, denied(ports, envelope, 'usage_store_unavailable'), [event]);
  }
  const admitted = await claim.append({
    type: 'admitted',
    at: timestampOf(ports.clock()),
    callId: envelope.id,
    ...(use === undefined ? {} : { use }),
    ...(above === undefined ? {} : { above }),
    audit,
  });
  // The fate of that record is unknown, so nothing may be delivered on it.
  if (!admitted.ok) return refused('ledger_unavailable', 'the send could not be recorded; send the same message again', true);
  const receipt = await deliver(ports, send);
  // Nobody can tell whether it arrived. The send stays open, and asking again says pending and in the end interrupted.
  if (receipt === undefined)
    return refused('delivery_unknown', 'the inbox did not say whether it has the message; ask again with the same message', true);
  return finish(ports, send, claim, receipt, [], decision?.matchedGrantId);
};

/** Puts the message into the recipient's inbox. `undefined` when its fate is unknown, also after looking for it there. */
const deliver = (ports: Ports, { context, envelope }: Send): Promise<DeliveryResult | undefined> =>
  withSpan(SPAN.messageDeliver, {}, async () => {
    const inbox = principalSubject('inbox', context.namespaceId, envelope.receiver);
    const stored = await ports.bus.publishStored(inbox, { message: InboxMessage, body: envelope }, { timeoutMs: DELIVER_MS });
    if (stored.ok || (stored.error.kind === 'unavailable' && (await ports.inboxHolds(inbox, envelope)))) {
      return { status: 'accepted', ...receiptOf(ports, envelope) };
    }
    if (stored.error.kind === 'unavailable') return undefined;
    return failed(ports, envelope, stored.error.kind === 'full' ? 'inbox_full' : 'message_delivery_failed');
  });

/** Writes the receipt and its record. A receipt that could not be written is not told: the sender asks again and hears what stands. */
const finish = async (
  ports: Ports,
  send: Send,
  claim: LedgerClaim,
  receipt: DeliveryResult,
  decisions: readonly AuditEvent[],
  grantId?: string,
): Promise<Reply<DeliveryResult>> => {
  const written = await claim.append(endOf(ports, send, receipt, 'owner', decisions, grantId));
  return written.ok
    ? { ok: true, value: receipt }
    : refused('ledger_unavailable', 'the receipt could not be recorded; send the same message again', true);
};

const answerAgain = async (ports: Ports, send: Send, fingerprint: string, history: OperationHistory): Promise<Reply<DeliveryResult>> => {
  const { envelope } = send;
  const state = foldExecution(history.records);
  const replayed = replayAnswer(state, { fingerprint, requestSequence: 0 });
  if (replayed.answer === 'stored') {
    invariant('messageId' in replayed.ended.result, 'the end of a send holds a receipt');
    return { ok: true, value: replayed.ended.result };
  }
  if (replayed.answer === 'conflict') {
    await recordRefused(ports, send, 'replay_conflict');
    return { ok: true, value: denied(ports, envelope, 'replay_conflict') };
  }
  const claimedAt = Date.parse(state.claimed?.at ?? '');
  if (ports.clock() - claimedAt < ABANDONED_AFTER_MS) {
    await recordRefused(ports, send, 'replay_pending', 'failed');
    return { ok: true, value: failed(ports, envelope, 'replay_pending', true) };
  }
  const claim = ports.ledger.resume(send.key, history);
  if (state.openCalls.length === 0) return authorizeAndDeliver(ports, { ...send, turnId: ports.ids() }, claim);
  return finish(ports, send, claim, failed(ports, envelope, 'replay_interrupted'), []);
};

/** Makes uses that were handed out really spent: all of them, or nothing may run. */
const spend = async ({ ledger, bus, clock }: Ports, { context, operation, turnId }: Send, uses: readonly UseTaken[]): Promise<boolean> => {
  const { namespaceId } = context;
  const claim = { at: timestampOf(clock()), operation, turn: turnId };
  const claims = await Promise.all(
    uses.map(async ({ grantId, ordinal, epoch }) => {
      const claimed = await ledger.claimUse(namespaceId, { ...claim, grantId, ordinal });
      if (!claimed.ok && claimed.error.kind === 'taken') await reportDistrust(bus, namespaceId, epoch);
      return claimed.ok;
    }),
  );
  return claims.every(Boolean);
};

const endOf = (
  ports: Ports,
  send: Send,
  result: DeliveryResult,
  by: EndedRecord['by'],
  decisions: readonly AuditEvent[],
  grantId?: string,
): EndedRecord => {
  const outcome = result.status === 'denied' || result.status === 'failed' ? result.status : 'succeeded';
  const reason = 'error' in result ? result.error.code : undefined;
  const { id, receiver } = send.envelope;
  return {
    type: 'ended',
    at: timestampOf(ports.clock()),
    by,
    result,
    audit: [...decisions, messageSent(mark(ports, send), { messageId: id, receiver, outcome, grantId, reason })],
  };
};

/** Nothing ran and nothing will: it is refused whether or not that could be recorded. */
const recordRefused = (ports: Ports, send: Send, reason: string, outcome: 'denied' | 'failed' = 'denied') =>
  ports.audit(messageSent(mark(ports, send), { messageId: send.envelope.id, receiver: send.envelope.receiver, outcome, reason }));

const mark = ({ ids, clock }: Ports, { context, turnId }: Send): AuditMark => ({ id: ids(), at: clock(), context, place: { turnId } });

const receiptOf = ({ clock }: Ports, { id }: MessageEnvelope) => ({ messageId: id, timestamp: timestampOf(clock()) });

const denied = (ports: Ports, envelope: MessageEnvelope, code: string): DeliveryResult => ({
  status: 'denied',
  ...receiptOf(ports, envelope),
  error: { code, message: `The message was refused: ${code}.`, retryable: false },
});

const failed = (ports: Ports, envelope: MessageEnvelope, code: string, retryable = false): DeliveryResult => ({
  status: 'failed',
  ...receiptOf(ports, envelope),
  error: { code, message: `The message was not delivered: ${code}.`, retryable },
});
