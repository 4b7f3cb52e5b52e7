import {
  type AccessContext,
  AuthorityDecide,
  AuthorityDecideReply,
  AuthorityOpen,
  AuthorityOpenReply,
  type AuthorityQuestion,
  AuthorityReach,
  AuthorityReachReply,
  type CapabilityRequirement,
  type InternalRequestVerb,
  type OpenedAuthority,
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

/** No decision could be had. Either code is fail-closed: nothing runs. `reason` is for operators. */
export interface AuthorityFailure {
  readonly code: 'authority_unavailable' | 'audit_unavailable';
  readonly reason: string;
}

/**
 * Asks whichever authorizer answers. Silence, disconnection and refusals alike are a failure and never an allow.
 */
export class AuthorityClient {
  readonly #bus: Bus;
  readonly #timeoutMs: number;

  constructor(bus: Bus, timeoutMs: number) {
    this.#bus = bus;
    this.#timeoutMs = timeoutMs;
  }

  open(body: AuthorityOpen): Promise<Result<OpenedAuthority, AuthorityFailure>> {
    return this.#ask('authority.open', body.context, AuthorityOpen, body, AuthorityOpenReply);
  }

  decide(token: string, context: AccessContext, question: AuthorityQuestion, auditIds: [string, string]): Promise<Result<Verdict, AuthorityFailure>> {
    return this.#ask('authority.decide', context, AuthorityDecide, { token, context, question, auditIds }, AuthorityDecideReply);
  }

  reach(token: string, context: AccessContext, ceilings: CapabilityRequirement[]): Promise<Result<ReachAndDiscovery, AuthorityFailure>> {
    return this.#ask('authority.reach', context, AuthorityReach, { token, context, ceilings }, AuthorityReachReply);
  }

  async #ask<Q, A>(
    verb: InternalRequestVerb,
    context: AccessContext,
    message: WireMessage<Q>,
    body: Q,
    reply: WireMessage<Reply<A>>,
  ): Promise<Result<A, AuthorityFailure>> {
    const subject = namespaceSubject(verb, context.namespaceId);
    const answer = await this.#bus.request(subject, message, body, reply, { timeoutMs: this.#timeoutMs });
    if (!answer.ok) return err({ code: 'authority_unavailable', reason: answer.error.reason });
    if (answer.value.ok) return ok(answer.value.value);
    const { code, message: reason } = answer.value.error;
    return err({ code: code === 'audit_unavailable' ? code : 'authority_unavailable', reason: `${code}: ${reason}` });
  }
}
