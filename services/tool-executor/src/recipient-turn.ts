import type { Bus, QueuedDelivery } from '@sharedos/bus';
import {
  type AccessContext,
  MessageAnswer,
  MessageAnswerReply,
  type MessageEnvelope,
  MessageTake,
  MessageTakeReply,
  type ProtocolError,
  RecipientTurn,
  SCHEMA_HEADER,
  decodeOwnBody,
  err,
  instantOf,
  namespaceSubject,
  ok,
  type ExecutionResult,
  type Result,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';
import { requestFreshness } from '@sharedos/kernel';
import type { AcceptedRequest, RefusedRequest } from './accept-request.ts';
import type { Ports } from './ports.ts';
import type { Requester } from './turn-answers.ts';

const ANSWER_MS = 15_000;
const TAKE_MS = 5_000;

/**
 * Reads a request that a message made. Nothing of its sender's authority is in it: the turn is the recipient's, under the authority
 * and over the resources that its registration names at this moment, and it is decided on its own grants like any other.
 *
 * @returns `unavailable` when the registration could not be read: then nothing is decided.
 * @see spec/messaging.md §6
 */
export const acceptRecipientTurn = async (
  { authority, bus, clock, rules }: Pick<Ports, 'authority' | 'bus' | 'clock' | 'rules'>,
  message: Pick<QueuedDelivery, 'data' | 'header'>,
  { namespaceId, requester: agent }: Requester,
): Promise<Result<AcceptedRequest, RefusedRequest | 'unavailable'>> => {
  const decoded = decodeOwnBody(RecipientTurn, message.data);
  if (message.header(SCHEMA_HEADER) !== RecipientTurn.name || !decoded.ok || agent.kind !== 'agent')
    return err({ error: { code: 'invalid_request', message: `expected a ${RecipientTurn.name}`, retryable: false } });
  const { version, executionId, message: envelope, requestedAt, lease } = decoded.value;
  if (!sameAddress(envelope.receiver, agent))
    return err({ error: { code: 'receiver_mismatch', message: 'the message is for another agent', retryable: false } });
  const facts = await authority.namespace(namespaceId, agent.agentId);
  if (!facts.ok) return err('unavailable');
  const registered = facts.value.agent;
  const refusal = registered?.status === 'active' ? await untaken(bus, namespaceId, envelope, lease) : ok(NOT_REGISTERED);
  if (!refusal.ok) return refusal;
  const context: AccessContext = {
    namespaceId,
    actor: agent,
    authority: registered?.terms.authority ?? agent,
    owner: registered?.terms.owner ?? agent,
    purpose: envelope.purpose,
    traceId: envelope.traceId,
    enabledToolNamespaces: [...rules.toolNamespaces],
    now: timestampOf(clock()),
  };
  return ok({
    requester: agent,
    request: { version, executionId, agent, message: envelope, requestedAt },
    context,
    isFresh: requestFreshness(instantOf(requestedAt) ?? NaN, clock(), rules) === 'ok',
    ...(refusal.value === undefined ? {} : { refusal: refusal.value }),
    fromMessage: true,
  });
};

/** Takes the message from the router, where its agent has a route: that may have been closed since. @returns Why it is not to be had. */
const untaken = async (
  bus: Pick<Bus, 'request'>,
  namespaceId: string,
  { sender, receiver, id }: MessageEnvelope,
  lease: number | undefined,
): Promise<Result<ProtocolError | undefined, 'unavailable'>> => {
  if (lease === undefined) return ok(undefined);
  const subject = namespaceSubject('message.take', namespaceId);
  const asked = await bus.request(subject, MessageTake, { sender, receiver, id, lease }, MessageTakeReply, { timeoutMs: TAKE_MS });
  if (!asked.ok || !asked.value.ok) return err('unavailable');
  const { taken, code = 'delivery_over' } = asked.value.value;
  return ok(taken ? undefined : { code, message: 'the message is not to be had any more', retryable: false });
};

const NOT_REGISTERED = { code: 'recipient_not_registered', message: 'the agent is not registered any more', retryable: false } as const;

/**
 * Sends back what a turn that a message started came to, where it succeeded; any other ending says nothing to whoever asked.
 *
 * @returns Whether that is settled. If not, it is done again: the reply is the same message however often it is asked for.
 */
export const answerRecipient = async (
  { bus }: Pick<Ports, 'bus'>,
  { namespaceId }: Requester,
  { fromMessage, request }: AcceptedRequest,
  result: unknown,
): Promise<boolean> => {
  const ended = result as ExecutionResult;
  if (fromMessage !== true || ended.status !== 'succeeded' || request.message.replyTo !== undefined) return true;
  const body: MessageAnswer = {
    executionId: request.executionId,
    message: request.message,
    output: ended.output,
    completedAt: ended.completedAt,
  };
  const subject = namespaceSubject('message.answer', namespaceId);
  const answer = await bus.request(subject, MessageAnswer, body, MessageAnswerReply, { timeoutMs: ANSWER_MS });
  if (!answer.ok) return false;
  if (!answer.value.ok) return answer.value.error.retryable !== true;
  return answer.value.value.status !== 'failed' || answer.value.value.error.retryable !== true;
};
