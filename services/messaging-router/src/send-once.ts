import {
  type AuditEvent,
  type DeliveryEvent,
  type DeliveryResult,
  type EndedRecord,
  type Instant,
  type Reply,
  hashOf,
  instantOf,
  refused,
  timestampOf,
} from '@sharedos/contracts';
import { foldExecution, invariant, pathFault, replayAnswer } from '@sharedos/kernel';
import type { LedgerClaim, OperationHistory } from '@sharedos/ledger';
import { type OpenedSend, decideSend, openSend } from './decide-send.ts';
import { dispatch } from './dispatch.ts';
import { type Place, findPlace } from './find-place.ts';
import { type Outgoing, accepted, denied, envelopeFault, failed, recordRefused, sentRecord } from './outgoing.ts';
import type { Ports } from './ports.ts';
import { type Asked, askedBy, replyFault } from './replies.ts';

/** One for each record that its recipient, or the end of its route, writes about the message meanwhile. */
const FINISH_ATTEMPTS = 4;

/** Claims the one operation that a message is, and carries it out; or answers from what its record says. */
export const sendOnce = async (ports: Ports, send: Outgoing): Promise<Reply<DeliveryResult>> => {
  const { now: _, ...frame } = send.context;
  const { expiresAt, envelope } = send;
  const fingerprint = hashOf({ context: frame, envelope, ...(expiresAt === undefined ? {} : { expiresAt }) });
  const isDecided = send.callId !== undefined;
  const looking = lookAhead(ports, send, isDecided);
  const claimed = await ports.ledger.claim(send.key, {
    type: 'claimed',
    at: timestampOf(ports.clock()),
    ownerId: ports.instance,
    turnId: send.turnId,
    fingerprint,
    requester: envelope.sender,
    operationId: envelope.id,
    traceId: envelope.traceId,
    requestSequence: 0,
    message: { receiver: envelope.receiver, purpose: envelope.purpose, byTurn: isDecided },
  });
  if (claimed.ok) return carryOut(ports, send, claimed.value, looking);
  if (claimed.error.kind === 'exists') return answerAgain(ports, send, fingerprint, claimed.error.history);
  return refused('ledger_unavailable', 'the send could not be recorded; send the same message again', true);
};

/** What is found out about a send while it is claimed: nothing comes of it unless the claim is ours. */
interface LookAhead {
  readonly asked: Promise<Asked | undefined | 'unavailable'>;
  readonly place: Promise<Place>;
  /** Authority to decide it by; absent where a turn has just decided what its call sends. */
  readonly opened?: Promise<OpenedSend> | undefined;
}

const lookAhead = (ports: Ports, send: Outgoing, isDecided: boolean): LookAhead => {
  const asked = askedBy(ports, send.context.namespaceId, send.envelope);
  return {
    asked,
    place: asked.then((found) => (found === 'unavailable' ? { kind: 'unknown' } : findPlace(ports, send, found))),
    // What is refused as it stands is decided by nobody.
    ...(isDecided || faultOf(send) !== undefined ? {} : { opened: openSend(ports, send) }),
  };
};

const faultOf = (send: Outgoing) => envelopeFault(send) ?? pathFault(send.envelope);

const carryOut = async (
  ports: Ports,
  send: Outgoing,
  claim: LedgerClaim,
  { asked, place, opened }: LookAhead,
): Promise<Reply<DeliveryResult>> => {
  const { envelope } = send;
  const answered = await asked;
  if (answered === 'unavailable')
    return refused('ledger_unavailable', 'what is answered could not be read; send the same message again', true);
  const fault = faultOf(send) ?? replyFault(envelope, answered);
  if (fault !== undefined) return finish(ports, send, claim, { result: denied(ports, envelope, fault) });
  if (opened === undefined) return deliver(ports, send, claim, { place, decidedAt: ports.clock() });
  return authorizeAndDeliver(ports, send, claim, place, opened);
};

/** Decide, spend, admit, deliver, settle. */
const authorizeAndDeliver = async (
  ports: Ports,
  send: Outgoing,
  claim: LedgerClaim,
  place: Promise<Place>,
  opened: Promise<OpenedSend>,
): Promise<Reply<DeliveryResult>> => {
  const { envelope } = send;
  const decidedAt = ports.clock();
  const decided = await decideSend(ports, send, opened);
  if (decided.kind !== 'allowed')
    return finish(ports, send, claim, { result: denied(ports, envelope, decided.code), decisions: decided.audit });
  const { use, above, audit, grantId } = decided;
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
  return deliver(ports, send, claim, { place, decidedAt, grantId });
};

interface Admitted {
  readonly place: Promise<Place>;
  readonly decidedAt: Instant;
  readonly grantId?: string | undefined;
}

const deliver = async (
  ports: Ports,
  send: Outgoing,
  claim: LedgerClaim,
  { place, decidedAt, grantId }: Admitted,
): Promise<Reply<DeliveryResult>> => {
  const dispatched = await dispatch(ports, send, await place, decidedAt);
  // Nobody can tell whether it arrived. The send stays open, and asking again says pending until it is brought anew.
  if (dispatched === undefined)
    return refused('delivery_unknown', 'the inbox did not say whether it has the message; ask again with the same message', true);
  const reply = await finish(ports, send, claim, { ...dispatched, grantId });
  // The route may have been opened between the look at it and the record that the message waits for it.
  if (dispatched.event?.type === 'MessageParked') ports.waiting.wake(send.context.namespaceId, send.envelope.receiver);
  return reply;
};

interface Ending {
  readonly result: DeliveryResult;
  readonly event?: DeliveryEvent | undefined;
  readonly decisions?: readonly AuditEvent[];
  readonly grantId?: string | undefined;
}

/** Writes the receipt and its record. A receipt that could not be written is not told: the sender asks again and hears what stands. */
const finish = async (
  ports: Ports,
  send: Outgoing,
  claim: LedgerClaim,
  { result, event, decisions = [], grantId }: Ending,
): Promise<Reply<DeliveryResult>> => {
  const record: EndedRecord = {
    type: 'ended',
    at: timestampOf(ports.clock()),
    by: 'owner',
    result,
    ...(event === undefined ? {} : { delivery: event }),
    audit: [...decisions, sentRecord(ports, send, result, grantId)],
  };
  const written = await claim.append(record);
  if (written.ok) return { ok: true, value: result };
  for (let attempt = 0; written.error.kind === 'fenced' && attempt < FINISH_ATTEMPTS; attempt += 1) {
    const behind = await deliveredMeanwhile(ports, send);
    if (behind === undefined) break;
    // The last record says where the message is: the end repeats what stands.
    const again = await behind.claim.append({ ...record, delivery: behind.event });
    if (again.ok) return { ok: true, value: result };
    if (again.error.kind !== 'fenced') break;
  }
  return refused('ledger_unavailable', 'the receipt could not be recorded; send the same message again', true);
};

/** A recipient may acknowledge a message before its send is over. Behind any other record there is another router. */
const deliveredMeanwhile = async (
  { ledger }: Pick<Ports, 'ledger'>,
  { key }: Outgoing,
): Promise<{ readonly claim: LedgerClaim; readonly event: DeliveryEvent } | undefined> => {
  const read = await ledger.read(key);
  const last = read.ok ? read.value?.records.at(-1) : undefined;
  if (!read.ok || read.value === undefined || last?.type !== 'delivery') return undefined;
  if (foldExecution(read.value.records).ended !== undefined) return undefined;
  return { claim: ledger.resume(key, read.value), event: last.event };
};

const answerAgain = async (
  ports: Ports,
  send: Outgoing,
  fingerprint: string,
  history: OperationHistory,
): Promise<Reply<DeliveryResult>> => {
  const { envelope } = send;
  const state = foldExecution(history.records);
  const replayed = replayAnswer(state, { fingerprint, requestSequence: 0 });
  const refuse = async (result: DeliveryResult): Promise<Reply<DeliveryResult>> => {
    await recordRefused(ports, send, result);
    return { ok: true, value: result };
  };
  if (replayed.answer === 'stored') {
    invariant('messageId' in replayed.ended.result, 'the end of a send holds a receipt');
    return { ok: true, value: replayed.ended.result };
  }
  if (replayed.answer === 'conflict') return refuse(denied(ports, envelope, 'replay_conflict'));
  if (replayed.answer === 'expired') return refuse(failed(ports, envelope, 'replay_expired'));
  const heardOf = instantOf(history.records.at(-1)?.at ?? '') ?? 0;
  if (ports.clock() - heardOf < ports.sendLeaseMs) return refuse(failed(ports, envelope, 'replay_pending', true));
  // Its router must be gone. Decided anew and brought again, the message is handed over once all the same.
  const claim = ports.ledger.resume(send.key, history);
  const last = history.records.at(-1);
  // It had arrived, or its route was closed after it was sent: its sender was to hear that it was accepted.
  if (last?.type === 'delivery') return finish(ports, send, claim, { result: accepted(ports, envelope), event: last.event });
  const anew = { ...send, turnId: ports.ids() };
  return carryOut(ports, anew, claim, lookAhead(ports, anew, false));
};
