import { type Roots, type StoredMessage, isRoot } from '@sharedos/bus';
import {
  type AccessContext,
  type Address,
  type Instant,
  Path,
  type ProtocolError,
  type Result,
  SCHEMA_HEADER,
  TurnRequest,
  addressPath,
  decodeBody,
  err,
  instantOf,
  ok,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';
import { requestFreshness } from '@sharedos/kernel';

/** A request that may become a turn, with the trusted context made of who sent it and what it asks. */
export interface AcceptedRequest {
  readonly requester: Address;
  readonly request: TurnRequest;
  readonly context: AccessContext;
  /** Whether it may still become a turn. One that was taken in time is finished and answered however late that is. */
  readonly isFresh: boolean;
  /** Why it may not become a turn, although it is fresh. */
  readonly refusal?: ProtocolError;
  /** A message started it: whoever sent that hears what it comes to. */
  readonly fromMessage?: true;
}

export interface RefusedRequest {
  readonly executionId?: string;
  readonly error: ProtocolError;
  /** Of a request that could be read: what it would have run under. Its refusal is recorded; a body that is no request is not. */
  readonly context?: AccessContext;
}

export interface AcceptanceRules {
  /** Tool namespaces that the operator switched on; a request may only narrow them. */
  readonly toolNamespaces: readonly string[];
  /** How old a request may be: the ledger remembers an execution id at least that long. */
  readonly horizonMs: number;
  readonly skewMs: number;
  /** Service principals that may state the whole context of a turn; none when absent. */
  readonly trustedHosts?: Roots;
}

/**
 * Reads a turn request. The caller is who the broker let publish on the subject; a body can only agree with that.
 *
 * @see spec/turns.md §2, and docs/architecture.md "Names and trust on the wire"
 */
export const acceptRequest = (
  message: Pick<StoredMessage, 'data' | 'header'>,
  from: { readonly namespaceId: string; readonly requester: Address },
  now: Instant,
  rules: AcceptanceRules,
): Result<AcceptedRequest, RefusedRequest> => {
  const schema = message.header(SCHEMA_HEADER);
  // Absent is what a plain `nats` command line sends; another schema's body must not be read as this one's.
  if (schema !== undefined && schema !== TurnRequest.name) {
    return err({ error: { code: 'invalid_request', message: `expected a ${TurnRequest.name}`, retryable: false } });
  }
  const decoded = decodeBody(TurnRequest, message.data);
  if (!decoded.ok) return err({ error: decoded.error });
  const request = decoded.value;
  const wanted = request.toolNamespaces;
  const isHost = from.requester.kind === 'service' && isRoot(rules.trustedHosts ?? {}, from.namespaceId, from.requester);
  const stated = isHost ? request.context : undefined;
  const context: AccessContext = {
    namespaceId: from.namespaceId,
    ...(stated ?? {
      actor: request.agent,
      authority: from.requester,
      owner: request.owner ?? from.requester,
      purpose: request.message.purpose,
      traceId: request.message.traceId,
    }),
    enabledToolNamespaces: rules.toolNamespaces.filter((namespace) => wanted === undefined || wanted.includes(namespace)),
    now: timestampOf(now),
  };
  const refuse = (code: string, message: string): Result<never, RefusedRequest> =>
    err({ executionId: request.executionId, context, error: { code, message, retryable: false } });

  if (request.context !== undefined && !isHost) {
    return refuse('not_a_trusted_host', 'a request states no context: who sent it is its authority');
  }
  // Whoever may say under whose authority a turn runs may say from whom the message is.
  if (stated === undefined && !sameAddress(request.message.sender, from.requester)) {
    return refuse('identity_mismatch', 'the message names a sender other than the principal that published the request');
  }
  // No grant can name it, and a record of the refusal by the authorizer could not hold its path either.
  if (!Path.safeParse(addressPath(request.agent)).success) {
    return refuse('invalid_request', 'the id of the agent cannot be a segment of a path');
  }
  const isFresh = requestFreshness(instantOf(request.requestedAt) ?? NaN, now, rules) === 'ok';
  return ok({ requester: from.requester, request, context, isFresh });
};
