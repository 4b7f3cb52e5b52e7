import { reportDistrust } from '@sharedos/bus';
import {
  type AuditEvent,
  type DeliveryResult,
  type EndedRecord,
  type Reply,
  type UseTaken,
  addressPath,
  hashOf,
  refused,
  timestampOf,
} from '@sharedos/contracts';
import { authorizationChecked, decidedWithoutAuthority, foldExecution, invariant, pathFault, replayAnswer } from '@sharedos/kernel';
import type { LedgerClaim, OperationHistory } from '@sharedos/ledger';
import { dispatch } from './dispatch.ts';
import { type Place, findPlace } from './find-place.ts';
import { type Outgoing, denied, envelopeFault, failed, markOf, recordRefused, sentRecord } from './outgoing.ts';
import type { Ports } from './ports.ts';
import { askedBy, replyFault } from './replies.ts';

/** A send is one operation and soon over; its token need not outlive it by more. */
const VALID_FOR_MS = 30_000;
/** An operation this old has lost its router. Whether its message was delivered is then unknown, and stays so. */
const ABANDONED_AFTER_MS = 60_000;

/** Claims the one operation that a message is, and carries it out; or answers from what its record says. */
export const sendOnce = async (ports: Ports, send: Outgoing): Promise<Reply<DeliveryResult>> => {
  const { now: _, ...frame } = send.context;
  const { expiresAt, envelope } = send;
  const fingerprint = hashOf({ context: frame, envelope, ...(expiresAt === undefined ? {} : { expiresAt }) });
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
  });
  if (claimed.ok) return carryOut(ports, send, claimed.value);
  if (claimed.error.kind === 'exists') return answerAgain(ports, send, fingerprint, claimed.error.history);
  return refused('ledger_unavailable', 'the send could not be recorded; send the same message again', true);
};

const carryOut = async (ports: Ports, send: Outgoing, claim: LedgerClaim): Promise<Reply<DeliveryResult>> => {
  const { envelope } = send;
  const asked = await askedBy(ports, send.context.namespaceId, envelope);
  if (asked === 'unavailable')
    return refused('ledger_unavailable', 'what is answered could not be read; send the same message again', true);
  const fault = envelopeFault(send) ?? pathFault(envelope) ?? replyFault(envelope, asked);
  if (fault !== undefined) return finish(ports, send, claim, denied(ports, envelope, fault), []);
  // Where it would go is found out while it is decided whether it may.
  const place = findPlace(ports, send, asked);
  return send.callId === undefined ? authorizeAndDeliver(ports, send, claim, place) : deliver(ports, send, claim, place);
};

/** Open, decide, spend, admit, deliver, settle. */
const authorizeAndDeliver = async (
  ports: Ports,
  send: Outgoing,
  claim: LedgerClaim,
  place: Promise<Place>,
): Promise<Reply<DeliveryResult>> => {
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
    const decision = authorizationChecked(markOf(ports, send), { request, decided, consume: true, operationId: envelope.id });
    return finish(ports, send, claim, denied(ports, envelope, 'authority_unavailable'), [decision]);
  }
  const { status, code, decision, use, above, audit } = verdict.value;
  if (status !== 'allowed') return finish(ports, send, claim, denied(ports, envelope, code), audit);
  if (use !== undefined && !(await spend(ports, send, [use, ...(above ?? [])]))) {
    const unclaimed = { decision: { allowed: false, reasonCode: 'usage_store_unavailable' } };
    const event = authorizationChecked(markOf(ports, send), { request, decided: unclaimed, consume: true, operationId: envelope.id });
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
  return deliver(ports, send, claim, place, decision?.matchedGrantId);
};

const deliver = async (
  ports: Ports,
  send: Outgoing,
  claim: LedgerClaim,
  place: Promise<Place>,
  grantId?: string,
): Promise<Reply<DeliveryResult>> => {
  const receipt = await dispatch(ports, send, await place);
  // Nobody can tell whether it arrived. The send stays open, and asking again says pending and in the end interrupted.
  if (receipt === undefined)
    return refused('delivery_unknown', 'the inbox did not say whether it has the message; ask again with the same message', true);
  return finish(ports, send, claim, receipt, [], grantId);
};

/** Writes the receipt and its record. A receipt that could not be written is not told: the sender asks again and hears what stands. */
const finish = async (
  ports: Ports,
  send: Outgoing,
  claim: LedgerClaim,
  result: DeliveryResult,
  decisions: readonly AuditEvent[],
  grantId?: string,
): Promise<Reply<DeliveryResult>> => {
  const record: EndedRecord = {
    type: 'ended',
    at: timestampOf(ports.clock()),
    by: 'owner',
    result,
    audit: [...decisions, sentRecord(ports, send, result, grantId)],
  };
  const written = await claim.append(record);
  return written.ok
    ? { ok: true, value: result }
    : refused('ledger_unavailable', 'the receipt could not be recorded; send the same message again', true);
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
  if (replayed.answer === 'stored') {
    invariant('messageId' in replayed.ended.result, 'the end of a send holds a receipt');
    return { ok: true, value: replayed.ended.result };
  }
  if (replayed.answer === 'conflict') {
    const conflict = denied(ports, envelope, 'replay_conflict');
    await recordRefused(ports, send, conflict);
    return { ok: true, value: conflict };
  }
  const claimedAt = Date.parse(state.claimed?.at ?? '');
  if (ports.clock() - claimedAt < ABANDONED_AFTER_MS) {
    const pending = failed(ports, envelope, 'replay_pending', true);
    await recordRefused(ports, send, pending);
    return { ok: true, value: pending };
  }
  const claim = ports.ledger.resume(send.key, history);
  // What a turn may send is admitted on the turn's own record, so here the claim alone may have been followed by a delivery.
  const mayHaveRun = send.callId !== undefined || state.openCalls.length > 0;
  if (!mayHaveRun) return carryOut(ports, { ...send, turnId: ports.ids() }, claim);
  return finish(ports, send, claim, failed(ports, envelope, 'replay_interrupted'), []);
};

/** Makes uses that were handed out really spent: all of them, or nothing may run. */
const spend = async (
  { ledger, bus, clock }: Ports,
  { context, operation, turnId }: Outgoing,
  uses: readonly UseTaken[],
): Promise<boolean> => {
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
