import { type AuthorityDecide, type AuthorityQuestion, type Instant, type Reply, type Verdict } from '@sharedos/contracts';
import {
  type AuditMark,
  type RecordedDecision,
  TOOL_CALL_WITHOUT_AUTHORITY,
  type ToolCallDecided,
  authorizationChecked,
  decideToolCall,
  decideWith,
  decidedWithoutAuthority,
} from '@sharedos/kernel';
import { ATTRIBUTE, SPAN, withSpan } from '@sharedos/telemetry';
import { askedTurn } from './asked-turn.ts';
import type { Ports } from './ports.ts';
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
  (ports: Ports, turns: TurnAuthorities) =>
  async ({ token, context, question, auditIds }: AuthorityDecide): Promise<Reply<Verdict>> => {
    const asked = await askedTurn(ports, turns, { token, context });
    if (!asked.ok) return asked;
    const { turnId, turn, now } = asked.value;
    const uses: UsesSeen = { seen: {} };
    const decided = await withSpan(SPAN.authorize, {}, async (span) => {
      const outcome = await answer(question, turn, now, worldOf(ports.fold, ports.usage, turn, question.operation, uses));
      span.setAttributes({ [ATTRIBUTE.outcome]: outcome.status, [ATTRIBUTE.reasonCode]: outcome.cause ?? outcome.code });
      return outcome;
    });

    const { revision, authority } = turn;
    const place = { revision, turnId, ...(Object.keys(uses.seen).length === 0 ? {} : { usage: uses.seen }) };
    const authorityHash = authority.ok ? authority.value.held.snapshot.hash : undefined;
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
    ? await decideWith(authority.value.decide(request, { now, consume, mode: 'execute' }), world)
    : decidedWithoutAuthority(authority.error);
  const { allowed, reasonCode } = decided.decision;
  return { status: allowed ? 'allowed' : 'denied', code: reasonCode, ...of(request), recorded: [{ request, decided, consume }] };
};

const of = ({ resource, action }: RecordedDecision['request']) => ({ resource, action });
