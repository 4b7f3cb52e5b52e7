import { type AuthorityDecide, type AuthorityQuestion, type Instant, type Reply, type Verdict, instantOf } from '@sharedos/contracts';
import {
  type AuditMark,
  type RecordedDecision,
  TOOL_CALL_WITHOUT_AUTHORITY,
  type ToolCallDecided,
  authorizationChecked,
  decide,
  decideToolCall,
  decideWith,
  decidedWithoutAuthority,
} from '@sharedos/kernel';
import { ATTRIBUTE, SPAN, withSpan } from '@sharedos/telemetry';
import { type Ports, refused } from './ports.ts';
import { type TurnAuthorities, type TurnAuthority, type UsesSeen, worldOf } from './turn-authorities.ts';

/**
 * Decides one question of an open turn, at the turn's own revision. Without its token, or after its end, nothing is decided.
 *
 * The records this makes travel back with the verdict: whoever asked writes them together with what they allow, so that no
 * effect can precede its record.
 *
 * @see spec/authorization.md §5, spec/turns.md §9
 */
export const decideAuthority =
  ({ store, fold, usage, tokens, clock, limits }: Ports, turns: TurnAuthorities) =>
  async ({ token, context, question, auditIds }: AuthorityDecide): Promise<Reply<Verdict>> => {
    const asked = Math.max(instantOf(context.now) ?? Infinity, clock());
    if (!Number.isFinite(asked)) return refused('invalid_request', 'context.now is no instant');
    const claims = tokens.verify(token, context, asked);
    if (!claims.ok) return refused('authority_unavailable', `the turn token was refused: ${claims.error}`);
    const turn = await turns.at(claims.value, context, store.storeId, limits.deadlineMs);
    if (!turn.ok) return refused('authority_unavailable', turn.error, true);

    // A turn's time only goes forward: an expiry is seen by whichever of the three clocks sees it first.
    const now = Math.max(turn.value.admittedAt, asked, clock());
    const uses: UsesSeen = { seen: {} };
    const decided = await withSpan(SPAN.authorize, {}, async (span) => {
      const outcome = await answer(question, turn.value, now, worldOf(fold, usage, turn.value, question.operation, uses));
      span.setAttributes({ [ATTRIBUTE.outcome]: outcome.status, [ATTRIBUTE.reasonCode]: outcome.cause ?? outcome.code });
      return outcome;
    });

    const { revision, authority } = turn.value;
    const place = { revision, turnId: claims.value.turnId, ...(Object.keys(uses.seen).length === 0 ? {} : { usage: uses.seen }) };
    const authorityHash = authority.ok ? authority.value.snapshot.hash : undefined;
    const audit = decided.recorded.map((recorded, index) => {
      const mark: AuditMark = { id: auditIds[index === 0 ? 0 : 1], at: now, context, place };
      return authorizationChecked(mark, { ...recorded, authorityHash, operationId: question.operationId });
    });
    const decision = decided.recorded.at(-1)?.decided.decision;
    return {
      ok: true,
      value: {
        revision,
        status: decided.status,
        code: decided.code,
        ...(decided.cause === undefined ? {} : { cause: decided.cause }),
        ...(decision === undefined ? {} : { decision }),
        ...(decided.resource === undefined ? {} : { resource: decided.resource }),
        ...(decided.action === undefined ? {} : { action: decided.action }),
        ...(uses.taken === undefined ? {} : { use: uses.taken }),
        audit,
      },
    };
  };

const answer = async (
  question: AuthorityQuestion,
  { authority }: TurnAuthority,
  now: Instant,
  world: ReturnType<typeof worldOf>,
): Promise<ToolCallDecided> => {
  if (question.kind === 'tool') {
    if (!authority.ok) return TOOL_CALL_WITHOUT_AUTHORITY;
    const { ceiling, exact } = question;
    return decideWith(decideToolCall(authority.value, { ceiling, exact, now }), world);
  }
  const { request, consume } = question;
  const decided = authority.ok
    ? await decideWith(decide(authority.value, request, { now, consume, mode: 'execute' }), world)
    : decidedWithoutAuthority(authority.error);
  const { allowed, reasonCode } = decided.decision;
  return { status: allowed ? 'allowed' : 'denied', code: reasonCode, ...of(request), recorded: [{ request, decided, consume }] };
};

const of = ({ resource, action }: RecordedDecision['request']) => ({ resource, action });
