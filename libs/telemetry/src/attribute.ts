/**
 * Names of span attributes: identifiers, tool names, outcomes and sizes. There is on purpose no name for arguments, results,
 * payloads, paths, purposes, prompts, thrown texts or tokens: a span must not carry them. @see spec/runtimes.md §6
 */
export const ATTRIBUTE = {
  namespaceId: 'sharedos.namespace.id',
  /** The trace id of the contracts; it is not the trace id of OpenTelemetry. */
  traceId: 'sharedos.trace.id',
  executionId: 'sharedos.execution.id',
  turnId: 'sharedos.turn.id',
  callId: 'sharedos.call.id',
  operationId: 'sharedos.operation.id',
  messageId: 'sharedos.message.id',
  grantId: 'sharedos.grant.id',
  principalKind: 'sharedos.principal.kind',
  principalId: 'sharedos.principal.id',
  tool: 'sharedos.tool.name',
  outcome: 'sharedos.outcome',
  status: 'sharedos.status',
  reasonCode: 'sharedos.reason_code',
  consumed: 'sharedos.consumed',
  revision: 'sharedos.revision',
  epoch: 'sharedos.usage.epoch',
  method: 'sharedos.mcp.method',

  /** The conventions of OpenTelemetry for messaging, with `messaging.system` = `nats`. */
  messagingSystem: 'messaging.system',
  messagingOperationName: 'messaging.operation.name',
  messagingOperationType: 'messaging.operation.type',
  messagingDestinationName: 'messaging.destination.name',
  messagingDestinationTemplate: 'messaging.destination.template',
  messagingConsumerGroup: 'messaging.consumer.group.name',
  messagingMessageId: 'messaging.message.id',
  messagingBodySize: 'messaging.message.body.size',

  /** The conventions of OpenTelemetry for generative AI: `invoke_agent` for a turn, `execute_tool` for a call. */
  genAiOperationName: 'gen_ai.operation.name',
  genAiAgentId: 'gen_ai.agent.id',
  genAiToolName: 'gen_ai.tool.name',
  genAiToolCallId: 'gen_ai.tool.call.id',
  genAiConversationId: 'gen_ai.conversation.id',
  /** And `chat` for one question to a model. */
  genAiProviderName: 'gen_ai.provider.name',
  genAiRequestModel: 'gen_ai.request.model',
  genAiResponseModel: 'gen_ai.response.model',
  genAiFinishReasons: 'gen_ai.response.finish_reasons',
  genAiInputTokens: 'gen_ai.usage.input_tokens',
  genAiOutputTokens: 'gen_ai.usage.output_tokens',
  httpStatusCode: 'http.response.status_code',
  httpResendCount: 'http.request.resend_count',

  errorType: 'error.type',
} as const;

export type AttributeName = (typeof ATTRIBUTE)[keyof typeof ATTRIBUTE];
