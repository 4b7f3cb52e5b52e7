import type { SharedOS } from '@sharedos/client';
import {
  type AuthorizationDecision,
  type CapabilityRequirement,
  type JsonObj,
  type MessageEnvelope,
  type RemoteExecutionRequest,
  type RemoteResourceOperation,
  type ResourceResult,
  type Result,
  type ToolCall,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';
import type { ClientError } from '@sharedos/client';
import { type Answer, answer, apiError, clientError } from './answers.ts';
import type { Identity } from './identities.ts';
import type { OperationId } from './routes.ts';
import type { Called } from './seat.ts';
import type { Speakers } from './speakers.ts';

/** A request whose bearer is known and whose body has been read by the schema of its route. */
export interface Asked {
  readonly identity: Identity;
  readonly body: unknown;
  readonly parameters: Readonly<Record<string, string>>;
  readonly requestId: string;
  /** Aborted when whoever asked has gone: what was begun for it alone is cancelled. */
  readonly signal: AbortSignal;
}

export type Operation = (asked: Asked) => Promise<Answer>;

/** The routes that are answered with one body. */
export const operations = (
  speakers: Speakers,
  turnWaitMs: number,
): Readonly<Record<Exclude<OperationId, 'health' | 'turnEvents' | 'auditRecords'>, Operation>> => {
  const asPrincipal =
    (use: (sharedos: SharedOS, asked: Asked) => Promise<Result<Answer, ClientError>>): Operation =>
    async (asked) => {
      const sharedos = await speakers.principal(asked.identity);
      const done = sharedos.ok ? await use(sharedos.value, asked) : sharedos;
      return done.ok ? done.value : clientError(done.error, asked.requestId);
    };

  const catalogue =
    (show: (known: { readonly tools: unknown; readonly reach: unknown }) => unknown): Operation =>
    async ({ identity, requestId, signal }) => {
      const seat = await speakers.seat(identity);
      const known = seat.ok ? await seat.value.catalogue({ signal }) : seat;
      return known.ok ? answer(show(known.value)) : clientError(known.error, requestId);
    };

  const call = async (
    { identity, signal }: Asked,
    tool: string,
    args: JsonObj,
    ids: { readonly id: string; readonly traceId?: string },
  ): Promise<Result<Called, ClientError>> => {
    const seat = await speakers.seat(identity);
    return seat.ok ? seat.value.call(tool, args, { ...ids, signal }) : seat;
  };

  return {
    authorize: asPrincipal(async (sharedos, { identity, body }) => {
      const { principal, agent, owner, purpose } = identity;
      const explained = await sharedos.grants.explain({
        actor: agent?.address ?? principal,
        authority: principal,
        ...(owner === undefined ? {} : { owner }),
        purpose,
        request: body as CapabilityRequirement,
      });
      return explained.ok ? { ok: true, value: answer(shownDecision(explained.value.decision)) } : explained;
    }),
    listTools: catalogue(({ tools }) => tools),
    reach: catalogue(({ reach }) => reach),
    invokeTool: async (asked) => {
      const { id, tool, arguments: args, traceId } = asked.body as ToolCall;
      const called = await call(asked, tool, args, { id, traceId });
      return called.ok ? answer(called.value.result) : clientError(called.error, asked.requestId);
    },
    invokeResource: async (asked) => {
      const operation = asked.body as RemoteResourceOperation;
      const { resource, action, operationId, input = {} } = operation;
      const owner = asked.identity.owner ?? asked.identity.principal;
      // A call names no owner: it is the context's.
      if (resource.owner !== undefined && !sameAddress(resource.owner, owner)) return answer(foreignOwner(operationId));
      if (typeof input !== 'object' || input === null || Array.isArray(input)) return apiError('invalid_request', asked.requestId);
      const tool = `${resource.namespace}.${action.replaceAll(':', '.')}`;
      const called = await call(asked, tool, { ...input, path: [...resource.path] } as JsonObj, { id: operationId });
      if (!called.ok) return clientError(called.error, asked.requestId);
      const { callId: _, tool: __, ...result } = called.value.result;
      return answer({ operationId, ...result } as ResourceResult);
    },
    sendMessage: asPrincipal(async (sharedos, { body }) => {
      const { version: _, provenance: __, ...message } = body as MessageEnvelope;
      const sent = await sharedos.messages.send(message);
      return sent.ok ? { ok: true, value: answer(sent.value, sent.value.status === 'accepted' ? 202 : 200) } : sent;
    }),
    runTurn: asPrincipal(async (sharedos, { identity, body, signal }) => {
      const request = body as RemoteExecutionRequest;
      const { executionId, message } = request;
      const owner = identity.owner === undefined ? {} : { owner: identity.owner };
      // The time of the message, so that the same request again is the same turn.
      const turn = { ...request, ...owner, requestedAt: message.createdAt };
      const submitted = await sharedos.turns.submit(turn, { resultTimeoutMs: turnWaitMs });
      if (!submitted.ok) return submitted;
      const cancel = (): void => void sharedos.turns.cancel(executionId);
      signal.addEventListener('abort', cancel, { once: true });
      if (signal.aborted) cancel();
      const ended = await submitted.value.result;
      signal.removeEventListener('abort', cancel);
      return ended.ok ? { ok: true, value: answer(ended.value.result) } : ended;
    }),
    getTurn: asPrincipal(async (sharedos, { parameters }) => {
      const known = await sharedos.turns.get(parameters['executionId'] ?? '');
      return known.ok ? { ok: true, value: answer(known.value) } : known;
    }),
  };
};

/** A decision as anybody outside may see it: a refusal does not tell which grants were looked at. */
const shownDecision = ({ allowed, reasonCode, matchedGrantId, requiredAuthority }: AuthorizationDecision): AuthorizationDecision => ({
  allowed,
  reasonCode,
  ...(allowed && matchedGrantId !== undefined ? { matchedGrantId } : {}),
  ...(requiredAuthority === undefined ? {} : { requiredAuthority }),
});

const foreignOwner = (operationId: string): ResourceResult => ({
  status: 'denied',
  operationId,
  completedAt: timestampOf(Date.now()),
  error: { code: 'invalid_request', message: 'The resource is of another owner.', retryable: false },
});
