import {
  AuditRecord,
  AuthorizationDecision,
  CapabilityRequirement,
  DeliveryResult,
  ExecutionResult,
  Health,
  MessageEnvelope,
  PublishedTool,
  REQUEST_BYTES_MAX,
  ReachResult,
  RemoteExecutionRequest,
  RemoteResourceOperation,
  ResourceResult,
  STEP_ANSWER_BYTES_MAX,
  ToolCall,
  ToolResult,
  TurnSummary,
} from '@sharedos/contracts';
import { z } from 'zod';

/** A turn as its requester may look it up; `result` once it has ended. */
export const TurnView = z.strictObject({ summary: TurnSummary, result: ExecutionResult.optional() });

/** One operation of the gateway. The server is made from this table, and so is the document that describes it. */
export interface Route {
  readonly method: 'GET' | 'POST';
  /** With `:name` for each part that is read. */
  readonly path: string;
  readonly summary: string;
  readonly body?: z.ZodType;
  readonly bodyBytesMax?: number;
  /** What is answered with 200, and with the other statuses named. `events`: each event of a stream, by its name. */
  readonly answer: z.ZodType | { readonly events: Readonly<Record<string, z.ZodType>> };
  readonly also?: Readonly<Record<number, string>>;
  /** Nobody has to be known to ask. */
  readonly open?: true;
}

const ARGUMENTS_BYTES_MAX = STEP_ANSWER_BYTES_MAX - 64 * 1024;

export const ROUTES = {
  health: { method: 'GET', path: '/healthz', summary: 'Whether requests are taken.', answer: Health, open: true },
  authorize: {
    method: 'POST',
    path: '/v1/authorize',
    summary: 'How a request of the agent would be decided now. Takes no use of a grant.',
    body: CapabilityRequirement,
    bodyBytesMax: REQUEST_BYTES_MAX,
    answer: AuthorizationDecision,
  },
  listTools: {
    method: 'GET',
    path: '/v1/tools',
    summary: 'Tools that the agent may find in a turn opened now.',
    answer: z.array(PublishedTool),
  },
  reach: { method: 'GET', path: '/v1/reach', summary: 'Where the agent may operate in a turn opened now.', answer: ReachResult },
  invokeTool: {
    method: 'POST',
    path: '/v1/tools/invoke',
    summary: 'One call, as a turn of its own.',
    body: ToolCall,
    bodyBytesMax: ARGUMENTS_BYTES_MAX,
    answer: ToolResult,
  },
  invokeResource: {
    method: 'POST',
    path: '/v1/resources/invoke',
    summary: 'One operation on a resource, as a turn of its own.',
    body: RemoteResourceOperation,
    bodyBytesMax: ARGUMENTS_BYTES_MAX,
    answer: ResourceResult,
  },
  sendMessage: {
    method: 'POST',
    path: '/v1/messages',
    summary: 'Sends a message of the principal.',
    body: MessageEnvelope,
    bodyBytesMax: REQUEST_BYTES_MAX,
    answer: DeliveryResult,
    also: { 202: 'The message is accepted, and will be delivered.' },
  },
  runTurn: {
    method: 'POST',
    path: '/v1/turns',
    summary: 'Runs a turn and waits for its result. The same request again is the same turn.',
    body: RemoteExecutionRequest,
    bodyBytesMax: REQUEST_BYTES_MAX,
    answer: ExecutionResult,
  },
  getTurn: { method: 'GET', path: '/v1/turns/:executionId', summary: 'A turn of the principal as it stands.', answer: TurnView },
  turnEvents: {
    method: 'GET',
    path: '/v1/turns/:executionId/events',
    summary: 'Events of a turn as they happen, and then its result, which holds them all.',
    answer: { events: { result: ExecutionResult } },
  },
  auditRecords: {
    method: 'GET',
    path: '/v1/audit/records',
    summary: 'Records of the namespace in order, and then as they are made. Last-Event-ID continues.',
    answer: { events: { record: AuditRecord } },
  },
} as const satisfies Record<string, Route>;

export type OperationId = keyof typeof ROUTES;
