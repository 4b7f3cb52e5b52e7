import type { Bus } from '@sharedos/bus';
import {
  AuthorityLineage,
  AuthorityLineageReply,
  AuthorityRecompute,
  AuthorityRecomputeReply,
  AuthorityRetrace,
  AuthorityRetraceReply,
  type InternalRequestVerb,
  type Lineage,
  type ProtocolError,
  type Recomputed,
  type Reply,
  type Result,
  type Retraced,
  type WireMessage,
  namespaceSubject,
  refused,
} from '@sharedos/contracts';

/** What an authorizer finds out in the log of authority, which nobody else may read. */
export interface LogQuestions {
  recompute(namespaceId: string, body: AuthorityRecompute): Promise<Result<{ readonly answers: readonly Recomputed[] }, ProtocolError>>;
  retrace(namespaceId: string, body: AuthorityRetrace): Promise<Result<Retraced, ProtocolError>>;
  lineage(namespaceId: string, body: AuthorityLineage): Promise<Result<Lineage, ProtocolError>>;
}

/** @param timeoutMs Of one question. The first may be answered `log_unavailable`, retryable, while the log is being folded. */
export const logQuestions = (bus: Bus, timeoutMs: number): LogQuestions => {
  const ask = async <Q, A>(
    verb: InternalRequestVerb,
    namespaceId: string,
    message: WireMessage<Q>,
    body: Q,
    reply: WireMessage<Reply<A>>,
  ): Promise<Result<A, ProtocolError>> => {
    const answer = await bus.request(namespaceSubject(verb, namespaceId), message, body, reply, { timeoutMs });
    return answer.ok ? answer.value : refused('log_unavailable', 'no authorizer answered; try again', true);
  };
  return {
    recompute: (namespaceId, body) => ask('authority.recompute', namespaceId, AuthorityRecompute, body, AuthorityRecomputeReply),
    retrace: (namespaceId, body) => ask('authority.retrace', namespaceId, AuthorityRetrace, body, AuthorityRetraceReply),
    lineage: (namespaceId, body) => ask('authority.lineage', namespaceId, AuthorityLineage, body, AuthorityLineageReply),
  };
};
