import {
  type AccessContext,
  AuthorityDecide,
  AuthorityDecideReply,
  AuthorityNamespace,
  AuthorityNamespaceReply,
  AuthorityOpen,
  AuthorityOpenReply,
  type AuthorityQuestion,
  AuthorityReach,
  AuthorityReachReply,
  type CapabilityRequirement,
  type InternalRequestVerb,
  type NamespaceFacts,
  type OpenedAuthority,
  type ProtocolError,
  type ReachAndDiscovery,
  type Reply,
  type Result,
  type Verdict,
  type WireMessage,
  err,
  namespaceSubject,
  ok,
} from '@sharedos/contracts';
import type { Bus } from './bus.ts';
import { backoffMs, pause } from './waiting.ts';

/** No decision could be had. Either code is fail-closed: nothing runs. `reason` is for operators. */
export interface AuthorityFailure {
  readonly code: 'authority_unavailable' | 'audit_unavailable';
  readonly reason: string;
}

/** Longest pause between two attempts at one question. */
const ASK_AGAIN_MOST_MS = 400;

/**
 * Asks whichever authorizer answers. Silence, disconnection and refusals alike are a failure and never an allow.
 *
 * Within its deadline a question is asked again when nobody could answer yet, or another replica may: after a restart of the
 * broker an executor can be back before any authorizer is, and the turn it took would be denied for a moment's absence. Asking
 * again is safe, since a question carries the names of its records and of the operation that a use is taken for.
 *
 * What it fails with is the last thing a replica said. Silence at the end does not hide it: the last attempt has only what is
 * left of the deadline, and on a busy machine that is too little for any answer.
 */
export class AuthorityClient {
  readonly #bus: Bus;
  readonly #timeoutMs: number;

  constructor(bus: Bus, timeoutMs: number) {
    this.#bus = bus;
    this.#timeoutMs = timeoutMs;
  }

  open(body: AuthorityOpen): Promise<Result<OpenedAuthority, AuthorityFailure>> {
    return this.#ask('authority.open', body.context.namespaceId, AuthorityOpen, body, AuthorityOpenReply);
  }

  decide(
    token: string,
    context: AccessContext,
    question: AuthorityQuestion,
    auditIds: [string, string],
  ): Promise<Result<Verdict, AuthorityFailure>> {
    return this.#ask(
      'authority.decide',
      context.namespaceId,
      AuthorityDecide,
      { token, context, question, auditIds },
      AuthorityDecideReply,
    );
  }

  reach(token: string, context: AccessContext, ceilings: CapabilityRequirement[]): Promise<Result<ReachAndDiscovery, AuthorityFailure>> {
    return this.#ask('authority.reach', context.namespaceId, AuthorityReach, { token, context, ceilings }, AuthorityReachReply);
  }

  /** What the namespace is beside its grants, and how an agent of it is registered, as of everything acknowledged before the call. */
  namespace(namespaceId: string, agentId?: string): Promise<Result<NamespaceFacts, AuthorityFailure>> {
    const body = agentId === undefined ? {} : { agentId };
    return this.#ask('authority.namespace', namespaceId, AuthorityNamespace, body, AuthorityNamespaceReply);
  }

  async #ask<Q, A>(
    verb: InternalRequestVerb,
    namespaceId: string,
    message: WireMessage<Q>,
    body: Q,
    answerMessage: WireMessage<Reply<A>>,
  ): Promise<Result<A, AuthorityFailure>> {
    const subject = namespaceSubject(verb, namespaceId);
    const deadline = performance.now() + this.#timeoutMs;
    let said: ProtocolError | undefined;
    for (let attempt = 0; ; attempt += 1) {
      const answered = await this.#bus.request(subject, message, body, answerMessage, {
        timeoutMs: Math.max(1, deadline - performance.now()),
      });
      if (answered.ok && answered.value.ok) return ok(answered.value.value);
      if (answered.ok && !answered.value.ok) said = answered.value.error;
      const again = !answered.ok || said?.retryable === true;
      const pauseMs = backoffMs(attempt, ASK_AGAIN_MOST_MS);
      if (!again || performance.now() + pauseMs >= deadline) {
        return err(failureOf(said ?? { code: SILENT, message: answered.ok ? '' : answered.error.reason }));
      }
      await pause(pauseMs);
    }
  }
}

const SILENT = 'authority_unavailable';

const failureOf = ({ code, message }: ProtocolError): AuthorityFailure => ({
  code: code === 'audit_unavailable' ? code : SILENT,
  reason: code === SILENT ? message : `${code}: ${message}`,
});
