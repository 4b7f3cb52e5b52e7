import { type QueuedDelivery, reportDistrust } from '@sharedos/bus';
import {
  ExecutionControl,
  ExecutionControlReply,
  namespaceSubject,
  timestampOf,
  type LedgerRecord,
  type Result,
  err,
} from '@sharedos/contracts';
import {
  MESSAGE_REQUEST_TOOL_NAME,
  executionFingerprint,
  foldExecution,
  operationKeyHash,
  replayAnswer,
  turnEnded,
} from '@sharedos/kernel';
import type { ClaimRefusal, LedgerClaim, OperationHistory, OperationKey } from '@sharedos/ledger';
import { TurnLost, limitsInForce } from '@sharedos/runtime';
import { SPAN, withSpan } from '@sharedos/telemetry';
import { ToolRegistry } from '@sharedos/tools';
import { type AcceptedRequest, type RefusedRequest, acceptRequest } from './accept-request.ts';
import { keepQuestion } from './keep-question.ts';
import { messageRequestTool } from './message-request.ts';
import { acceptRecipientTurn, answerRecipient } from './recipient-turn.ts';
import { registryFor } from './context-tools.ts';
import { interruptTurn } from './interrupt-turn.ts';
import { LedgerTurn } from './ledger-turn.ts';
import { turnOverLimit } from './namespace-limits.ts';
import type { Ports } from './ports.ts';
import { countRefusal, countTurn } from './turn-metrics.ts';
import { releaseReserved } from './reserved-uses.ts';
import { type Requester, answerOf, isAnswered, publishEvent, publishRefusal, publishResult } from './turn-answers.ts';
import { TurnWrites } from './turn-writes.ts';

const OWNER_ANSWER_MS = 2_000;
const ASK_AGAIN_MS = 1_000;
/** Tools that one turn may be offered. */
const CATALOG_TOOLS_MAX = 512;

/**
 * Takes one turn request from the queue: accept, claim, run, answer, acknowledge, in this order.
 *
 * Whatever is delivered again finds the claim. The same message: its owner is asked, and if it is silent the turn is interrupted,
 * never run a second time. Another message of the same request: it is answered from the record, or by the owner when it is done.
 *
 * @see docs/architecture.md, "The work queue"
 */
export const takeTurn =
  (ports: Ports) =>
  async (delivery: QueuedDelivery): Promise<void> => {
    const from = requesterOf(delivery);
    if (from === undefined) return delivery.term('not the subject of a turn request');
    const accepted = await acceptedOf(ports, delivery, from);
    if (!accepted.ok && accepted.error === 'unavailable') return delivery.nak(ASK_AGAIN_MS);
    if (!accepted.ok) return refuse(ports, delivery, from, accepted.error as RefusedRequest);
    const key = executionKey(from, accepted.value.request.executionId);
    const fingerprint = fingerprintOf(ports, accepted.value);
    const refusal = accepted.value.refusal ?? (accepted.value.isFresh ? await turnOverLimit(ports, delivery) : undefined);
    if (!accepted.value.isFresh || refusal !== undefined) {
      const refused = refusal === undefined ? accepted.value : { ...accepted.value, refusal };
      return tooLate(ports, delivery, from, refused, key, fingerprint);
    }
    const turnId = ports.ids();
    const claimed = await withSpan(SPAN.ledgerClaim, {}, () =>
      claimOrFind(ports, key, {
        type: 'claimed',
        at: timestampOf(ports.clock()),
        ownerId: ports.instance,
        turnId,
        fingerprint,
        requester: from.requester,
        operationId: accepted.value.request.executionId,
        traceId: accepted.value.context.traceId,
        agent: accepted.value.request.agent,
        requestSequence: delivery.sequence,
      }),
    );
    if (claimed.ok) return runClaimed(ports, delivery, from, accepted.value, claimed.value, turnId);
    switch (claimed.error.kind) {
      case 'exists':
        return replay(ports, delivery, from, accepted.value, key, fingerprint, claimed.error.history);
      case 'full': {
        const error = { code: 'ledger_full', message: 'no new turns are taken until there is room for their records', retryable: true };
        return refuse(ports, delivery, from, { executionId: accepted.value.request.executionId, context: accepted.value.context, error });
      }
      default:
        return delivery.nak(ASK_AGAIN_MS);
    }
  };

/** A request of a principal, or one that a message made for its recipient. */
const acceptedOf = async (ports: Ports, delivery: QueuedDelivery, from: Requester): ReturnType<typeof acceptRecipientTurn> =>
  delivery.parsed?.verb === 'turn.recipient'
    ? acceptRecipientTurn(ports, delivery, from)
    : acceptRequest(delivery, from, ports.clock(), ports.rules);

/** While the ledger keeps its last room for turns that have begun, no new one is claimed, and those on record are answered. */
const claimOrFind = async (
  { ledger, ledgerRoom }: Ports,
  key: OperationKey,
  record: LedgerRecord,
): Promise<Result<LedgerClaim, ClaimRefusal>> => {
  if (!ledgerRoom.isShort) return ledger.claim(key, record);
  const found = await ledger.read(key);
  if (!found.ok) return found;
  return err(found.value === undefined ? { kind: 'full' } : { kind: 'exists', history: found.value });
};

/** A request whose time is over, or which may not become a turn, starts nothing. If it was taken in time, whoever took it may be dead: the turn still gets its end. */
const tooLate = async (
  ports: Ports,
  delivery: QueuedDelivery,
  from: Requester,
  accepted: AcceptedRequest,
  key: OperationKey,
  fingerprint: string,
): Promise<void> => {
  const history = await ports.ledger.read(key);
  if (!history.ok) return delivery.nak(ASK_AGAIN_MS);
  const { claimed } = foldExecution(history.value?.records ?? []);
  if (history.value !== undefined && claimed?.requestSequence === delivery.sequence) {
    return replay(ports, delivery, from, accepted, key, fingerprint, history.value);
  }
  const { context, request, refusal } = accepted;
  const expired = { code: 'replay_expired', message: 'requestedAt lies outside the time in which a request may be sent', retryable: false };
  const error = refusal ?? expired;
  return refuse(ports, delivery, from, { executionId: request.executionId, context, error });
};

export const requesterOf = ({ parsed }: Pick<QueuedDelivery, 'parsed'>): Requester | undefined =>
  (parsed?.verb === 'turn.request' || parsed?.verb === 'turn.recipient') && parsed.principal !== undefined && parsed.rest.length === 0
    ? { namespaceId: parsed.namespaceId, requester: parsed.principal }
    : undefined;

export const executionKey = ({ namespaceId, requester }: Requester, executionId: string): OperationKey => ({
  namespaceId,
  kind: 'execution',
  requester,
  id: executionId,
});

export const fingerprintOf = ({ envelope, defaults }: Ports, { context, request }: AcceptedRequest): string => {
  const { agent, message, tools, state, options, metadata } = request;
  return executionFingerprint({
    context,
    agent,
    message,
    tools,
    state,
    options,
    metadata,
    runtime: envelope.manifest,
    limits: { ...defaults },
  });
};

/** Owns the turn to its end: one terminal record, its answer published, then the request acknowledged. */
const runClaimed = async (
  ports: Ports,
  delivery: QueuedDelivery,
  from: Requester,
  accepted: AcceptedRequest,
  claim: LedgerClaim,
  turnId: string,
): Promise<void> => {
  const { request, context, fromMessage } = accepted;
  const { executionId, agent, message, state, options, metadata } = request;
  const { requester } = from;
  const began = performance.now();
  const cancel = new AbortController();
  // From here on this process answers for the turn, also while it is found out which tools there are.
  ports.running.begin({ turnId, cancel: () => cancel.abort() });
  const known = await registryFor(ports, context);
  const registry = known.ok ? known.value : new ToolRegistry();
  if (!registry.has(MESSAGE_REQUEST_TOOL_NAME))
    registry.register(messageRequestTool(ports, { turnId, executionId, requester, ...(fromMessage === true ? { cause: message } : {}) }));
  const wanted = request.tools;
  const registered = registry.definitions();
  const tools = wanted === undefined ? registered : registered.filter(({ name }) => wanted.includes(name));
  // A turn whose owner has more than a catalogue may hold names those that it wants: none is left out for it.
  const isListable = known.ok && tools.length <= CATALOG_TOOLS_MAX;
  const { runtimeOf } = ports;
  const limits = limitsInForce(options, { ...ports.defaults });
  const writes = new TurnWrites(ports.ledger, claim, () => cancel.abort());
  const kernel = new LedgerTurn(
    {
      ...ports,
      registry,
      isListable,
      keepQuestion: keepQuestion(ports.bus),
      distrust: (namespaceId, epoch) => reportDistrust(ports.bus, namespaceId, epoch),
    },
    writes,
    {
      turnId,
      operation: operationKeyHash(from.namespaceId, 'execution', from.requester, executionId),
      executionId,
      validForMs: limits.timeoutMs + ports.defaults.drainGraceMs,
    },
  );
  try {
    const result = await ports.envelope.run(
      {
        version: request.version,
        executionId,
        agent,
        context,
        message,
        tools: isListable ? [...tools] : [],
        ...(state === undefined ? {} : { state }),
        ...(options === undefined ? {} : { options }),
        ...(metadata === undefined ? {} : { metadata }),
      },
      {
        kernel,
        ...(runtimeOf === undefined ? {} : { chooseRuntime: () => runtimeOf(kernel.runtimeChoice) }),
        signal: AbortSignal.any([cancel.signal, delivery.signal]),
        // Whoever watches hears of nothing that the records may yet deny.
        onEvent: (event) => writes.afterwards(() => publishEvent(ports.bus, from, event, agent)),
      },
    );
    const answered =
      (await publishResult(ports.bus, from, answerOf(result, kernel.revision), agent)) &&
      (await answerRecipient(ports, from, accepted, result));
    countTurn(result.status, performance.now() - began);
    const settled = answered && (!kernel.mayReserve || (await releaseOf(ports, claim.key)));
    if (settled) await acknowledge(delivery);
    else delivery.nak(ASK_AGAIN_MS);
  } catch (error) {
    // Another process ended this turn and answers for it, or will once this one is silent: nothing more is said from here.
    if (!(error instanceof TurnLost)) throw error;
    // Whoever ended it may have looked for reserved uses before this process took its last.
    if (kernel.mayReserve) await releaseOf(ports, claim.key);
    delivery.nak(ASK_AGAIN_MS);
  } finally {
    ports.running.end(turnId);
  }
};

/** Gives back what the turn was handed out and its records, read again, do not admit. `false`: not yet, or not all of it. */
const releaseOf = async (ports: Ports, key: OperationKey): Promise<boolean> => {
  const history = await ports.ledger.read(key);
  return history.ok && history.value !== undefined && releaseReserved(ports, key.namespaceId, history.value.records);
};

const CONFLICT = { code: 'replay_conflict', message: 'this execution id was used for another request', retryable: false };
const EXPIRED = {
  code: 'replay_expired',
  message: 'a turn of this execution id ended so long ago that its answer is gone',
  retryable: false,
};

/** Answers a request that the ledger knows. */
const replay = async (
  ports: Ports,
  delivery: QueuedDelivery,
  from: Requester,
  accepted: AcceptedRequest,
  key: OperationKey,
  fingerprint: string,
  history: OperationHistory,
): Promise<void> => {
  const state = foldExecution(history.records);
  const replayed = replayAnswer(state, { fingerprint, requestSequence: delivery.sequence });
  switch (replayed.answer) {
    case 'stored':
      // Delivered again, and not asked again: whoever ended the turn has answered, unless it died before that.
      if (state.claimed?.requestSequence === delivery.sequence) {
        const answered =
          (await isAnswered(ports.bus, from, accepted.request.executionId)) ||
          (await publishResult(ports.bus, from, replayed.ended, accepted.request.agent));
        // It may also have died before it gave back what the turn never used.
        return answered &&
          (await answerRecipient(ports, from, accepted, replayed.ended.result)) &&
          (await releaseReserved(ports, from.namespaceId, history.records))
          ? acknowledge(delivery)
          : delivery.nak(ASK_AGAIN_MS);
      }
      return (await publishResult(ports.bus, from, replayed.ended, accepted.request.agent))
        ? acknowledge(delivery)
        : delivery.nak(ASK_AGAIN_MS);
    case 'conflict':
    case 'expired':
      return refuse(ports, delivery, from, {
        executionId: accepted.request.executionId,
        context: accepted.context,
        error: replayed.answer === 'conflict' ? CONFLICT : EXPIRED,
      });
    case 'duplicate_while_running':
      return acknowledge(delivery);
    case 'redelivery_of_running': {
      if (await ownerLives(ports, from.namespaceId, replayed.claimed)) return delivery.nak(ASK_AGAIN_MS);
      const interrupted = await interruptTurn(ports, key, history, accepted, 'recovery');
      // Somebody wrote in between, or the ledger takes nothing: what stands is read again, and not as fast as it can be.
      if (!interrupted.ok) return delivery.nak(ASK_AGAIN_MS);
      const ended = [...history.records, interrupted.value];
      return (await publishResult(ports.bus, from, interrupted.value, accepted.request.agent)) &&
        (await releaseReserved(ports, from.namespaceId, ended))
        ? acknowledge(delivery)
        : delivery.nak(ASK_AGAIN_MS);
    }
    case 'run':
      return delivery.nak(ASK_AGAIN_MS);
  }
};

/** Refuses a request that never becomes a turn: on record, if it could be read at all, and then told to who sent it. */
const refuse = async (
  ports: Ports,
  delivery: QueuedDelivery,
  from: Requester,
  { executionId, context, error }: RefusedRequest,
): Promise<void> => {
  countRefusal(from.namespaceId, error.code);
  if (context !== undefined && executionId !== undefined) {
    const mark = { id: ports.ids(), at: ports.clock(), context };
    const recorded = await ports.audit(turnEnded(mark, { executionId, status: 'denied', code: error.code }));
    if (!recorded.ok) return delivery.nak(ASK_AGAIN_MS);
  }
  const told = await publishRefusal(ports.bus, from, {
    sequence: delivery.sequence,
    error,
    ...(executionId === undefined ? {} : { executionId }),
  });
  return told ? acknowledge(delivery) : delivery.nak(ASK_AGAIN_MS);
};

/** Safety is the fence and not this answer: an owner that only seemed dead finds its next write refused. */
const ownerLives = async (
  { bus, running, instance }: Ports,
  namespaceId: string,
  { ownerId, turnId }: { ownerId: string; turnId: string },
): Promise<boolean> => {
  if (ownerId === instance) return running.has(turnId);
  const subject = namespaceSubject('execution.control', namespaceId, ownerId);
  const answer = await bus.request(subject, ExecutionControl, { turnId, ask: 'alive' }, ExecutionControlReply, {
    timeoutMs: OWNER_ANSWER_MS,
  });
  return answer.ok && answer.value.ok && answer.value.value.running;
};

/** An acknowledgement that was lost brings the message again, and then it is answered from the record. */
const acknowledge = async (delivery: QueuedDelivery): Promise<void> => {
  await delivery.ack();
};
