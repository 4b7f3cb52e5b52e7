import { type QueuedDelivery, reportDistrust } from '@sharedos/bus';
import { type LedgerRecord, type Result, err, timestampOf } from '@sharedos/contracts';
import { MESSAGE_REQUEST_TOOL_NAME, executionFingerprint, foldExecution, operationKeyHash } from '@sharedos/kernel';
import type { ClaimRefusal, LedgerClaim, OperationKey } from '@sharedos/ledger';
import { TurnLost, limitsInForce } from '@sharedos/runtime';
import { SPAN, withSpan } from '@sharedos/telemetry';
import { ToolRegistry } from '@sharedos/tools';
import { type AcceptedRequest, type RefusedRequest, acceptRequest } from './accept-request.ts';
import { keepQuestion } from './keep-question.ts';
import { messageRequestTool } from './message-request.ts';
import { acceptRecipientTurn, answerRecipient } from './recipient-turn.ts';
import { registryFor } from './context-tools.ts';
import { LedgerTurn } from './ledger-turn.ts';
import { turnOverLimit } from './namespace-limits.ts';
import type { Ports } from './ports.ts';
import { ASK_AGAIN_MS, acknowledge, refuseRequest } from './refuse-request.ts';
import { replayTurn } from './replay-turn.ts';
import { releaseReserved } from './reserved-uses.ts';
import { type Requester, answerOf, publishEvent, publishResult } from './turn-answers.ts';
import { countTurn } from './turn-metrics.ts';
import { TurnWrites } from './turn-writes.ts';

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
    if (!accepted.ok) return refuseRequest(ports, delivery, from, accepted.error as RefusedRequest);
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
        return replayTurn(ports, delivery, from, accepted.value, key, fingerprint, claimed.error.history);
      case 'full': {
        const error = { code: 'ledger_full', message: 'no new turns are taken until there is room for their records', retryable: true };
        return refuseRequest(ports, delivery, from, {
          executionId: accepted.value.request.executionId,
          context: accepted.value.context,
          error,
        });
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

/**
 * A request whose time is over, or which may not become a turn, starts nothing. If it was taken in time, whoever took it may be dead:
 * the turn still gets its end.
 */
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
    return replayTurn(ports, delivery, from, accepted, key, fingerprint, history.value);
  }
  const { context, request, refusal } = accepted;
  const expired = { code: 'replay_expired', message: 'requestedAt lies outside the time in which a request may be sent', retryable: false };
  const error = refusal ?? expired;
  return refuseRequest(ports, delivery, from, { executionId: request.executionId, context, error });
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
