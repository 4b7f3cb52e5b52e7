import type { Bus } from '@sharedos/bus';
import {
  type Address,
  type PrincipalRequestVerb,
  REQUEST_BYTES_MAX,
  type Reply,
  type Result,
  type WireMessage,
  err,
  ok,
  parseValue,
  principalSubject,
  unavailable,
} from '@sharedos/contracts';
import { CLIENT_CODES, type ClientError, refused } from './client-error.ts';

/** One connection, as one principal of one namespace. */
export interface Session {
  readonly bus: Bus;
  readonly namespaceId: string;
  readonly principal: Address;
  readonly requestTimeoutMs: number;
}

/** A body that the schema accepts and the broker will carry; the same refusals as a service would give, without the journey. */
export const checkedBody = <Q>(message: WireMessage<Q>, body: Q): Result<Q, ClientError> => {
  const parsed = parseValue(message, body);
  if (!parsed.ok) return err({ kind: 'refused', error: parsed.error });
  const bytes = Buffer.byteLength(JSON.stringify(parsed.value));
  if (bytes <= REQUEST_BYTES_MAX) return parsed;
  return refused(
    CLIENT_CODES.tooLarge,
    `the request is ${bytes} bytes, and at most ${REQUEST_BYTES_MAX} are taken: pass larger content by reference`,
    false,
  );
};

/**
 * Asks a service as this principal, and waits for its one answer until the deadline of the session.
 *
 * @param options `waitMs`: how long the service was asked to wait before it answers.
 */
export const ask = async <Q, A>(
  session: Session,
  verb: PrincipalRequestVerb,
  message: WireMessage<Q>,
  body: Q,
  reply: WireMessage<Reply<A>>,
  { waitMs = 0 }: { readonly waitMs?: number } = {},
): Promise<Result<A, ClientError>> => {
  const checked = checkedBody(message, body);
  if (!checked.ok) return checked;
  const natsSubject = principalSubject(verb, session.namespaceId, session.principal);
  const answer = await session.bus.request(natsSubject, message, checked.value, reply, { timeoutMs: session.requestTimeoutMs + waitMs });
  if (!answer.ok) return unavailable(answer.error.reason);
  return answer.value.ok ? ok(answer.value.value) : err({ kind: 'refused', error: answer.value.error });
};
