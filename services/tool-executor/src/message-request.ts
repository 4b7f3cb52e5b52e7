import type { Bus } from '@sharedos/bus';
import {
  type AccessContext,
  type Address,
  type AuthorizationRequest,
  MessageDeliver,
  MessageDeliverReply,
  MessageEnvelope,
  MessageRequestArguments,
  PROTOCOL_VERSION,
  type ToolCall,
  type ToolResult,
  hashOf,
  namespaceSubject,
} from '@sharedos/contracts';
import {
  MESSAGE_REQUEST_TOOL_DEFINITION,
  RecipientScopedMessageCapabilityResolver,
  answersMessage,
  contractValue,
  operationKeyHash,
  provenanceOf,
  sealed,
} from '@sharedos/kernel';
import type { ToolHandler } from '@sharedos/tools';
import type { Replies } from './await-reply.ts';
import { operationOf } from './operation-names.ts';

/** The turn that asks, and the message that started it, where one did. */
export interface AskingTurn {
  readonly turnId: string;
  readonly executionId: string;
  readonly requester: Address;
  readonly cause?: MessageEnvelope;
}

export interface MessagePorts {
  readonly bus: Pick<Bus, 'request'>;
  readonly replies: Replies;
}

const DELIVERED_MS = 10_000;
const resolver = new RecipientScopedMessageCapabilityResolver();

interface Prepared {
  readonly envelope: MessageEnvelope;
  readonly request: AuthorizationRequest;
}

/**
 * The tool `messages.request` of one turn: it asks one recipient and waits for its reply, no longer than the turn lasts. The turn
 * decides and spends once, as for every call; the router delivers on that, and the reply is data.
 *
 * The envelope is kept by the call object and not by the call's id: two calls may share an id, and must not swap recipients.
 *
 * @see spec/messaging.md §5
 */
export const messageRequestTool = (ports: MessagePorts, turn: AskingTurn): ToolHandler => {
  const prepared = new WeakMap<ToolCall, Prepared>();
  return {
    definition: MESSAGE_REQUEST_TOOL_DEFINITION,
    parseArguments: (raw) => MessageRequestArguments.parse(raw),
    resolveRequirement: (context, call) => {
      const envelope = sealed(envelopeOf(context, call, turn));
      const request = resolver.resolve(context, envelope);
      prepared.set(call, { envelope, request });
      return request;
    },
    invoke: async (context, call, signal) => {
      const made = prepared.get(call);
      if (made === undefined) return failed(context, call, 'message_request_not_prepared');
      prepared.delete(call);
      return ask(ports, turn, context, call, made.envelope, signal);
    },
  };
};

/** The id follows from the call, so that a request that is delivered again is found to be the same. */
const envelopeOf = (context: AccessContext, call: ToolCall, { executionId, requester, cause }: AskingTurn): MessageEnvelope => {
  const { recipient, payload } = MessageRequestArguments.parse(call.arguments);
  const { namespaceId, actor, purpose, traceId, now } = context;
  return {
    version: PROTOCOL_VERSION,
    id: `request-${hashOf({ namespaceId, requester, executionId, actor, callId: call.id }).slice(0, 48)}`,
    sender: actor,
    receiver: recipient,
    purpose,
    payload,
    traceId,
    createdAt: now,
    provenance: provenanceOf(executionId, cause),
  };
};

const ask = async (
  { bus, replies }: MessagePorts,
  { turnId, executionId, requester }: AskingTurn,
  context: AccessContext,
  call: ToolCall,
  envelope: MessageEnvelope,
  signal: AbortSignal,
): Promise<ToolResult> => {
  const listening = replies.listen(context.namespaceId, envelope);
  try {
    const subject = namespaceSubject('message.deliver', context.namespaceId);
    const operation = operationOf(operationKeyHash(context.namespaceId, 'execution', requester, executionId), 'call', call.id);
    const body: MessageDeliver = { context: { ...context }, envelope, callId: call.id, turnId, operation };
    const delivered = await bus.request(subject, MessageDeliver, body, MessageDeliverReply, { timeoutMs: DELIVERED_MS });
    signal.throwIfAborted();
    const status = delivered.ok && delivered.value.ok ? delivered.value.value.status : 'failed';
    if (status !== 'accepted' && status !== 'delivered') return failed(context, call, 'message_request_not_accepted');
    const reply = contractValue(MessageEnvelope, await listening.wait(signal));
    if (!reply.ok || !answersMessage(reply.value, envelope)) return failed(context, call, 'invalid_message_reply');
    return { status: 'succeeded', callId: call.id, tool: call.tool, completedAt: context.now, output: reply.value.payload };
  } finally {
    listening.done();
  }
};

const failed = ({ now }: AccessContext, { id, tool }: ToolCall, code: string): ToolResult => ({
  status: 'failed',
  callId: id,
  tool,
  completedAt: now,
  error: { code, message: `The call failed: ${code}.`, retryable: false },
});
