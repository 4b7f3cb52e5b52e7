import { type AuthorityDecide, type AuthorityQuestion, type Instant, type Reply, type Verdict, timestampOf } from '@sharedos/contracts';
import {
  type Asking,
  type AsyncWorld,
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
import { countDecision } from './decision-metrics.ts';
import { liveRevocation } from './live-revocation.ts';
import type { Ports } from '../ports.ts';
import type { TurnAuthorities, TurnAuthority } from './turn-authorities.ts';
import { type Consuming, type UsesSeen, worldOf } from './turn-world.ts';

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
    const revocation = liveRevocation(ports);
    const decided = await withSpan(SPAN.authorize, {}, async (span) => {
      const outcome = await answer(question, turn, now, turnId, (consuming) => ({
        ...worldOf(ports.fold, ports.usage, turn, uses, consuming),
        revocation,
      }));
      span.setAttributes({ [ATTRIBUTE.outcome]: outcome.status, [ATTRIBUTE.reasonCode]: outcome.cause ?? outcome.code });
      return outcome;
    });

    countDecision(decided.status, decided.cause ?? decided.code);
    const { revision, admittedAt, authority } = turn;
    const place = {
      revision,
      admittedAt: timestampOf(admittedAt),
      turnId,
      ...(Object.keys(uses.seen).length === 0 ? {} : { usage: uses.seen }),
    };
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
        ...usesOf(uses),
        audit,
      },
    };
  };

const answer = async (
  question: AuthorityQuestion,
  { authority, held }: TurnAuthority,
  now: Instant,
  turnId: string,
  world: (consuming?: Consuming) => AsyncWorld,
): Promise<ToolCallDecided> => {
  // A use is taken for an operation and for nothing else: without a name a retry would take a second one.
  const { operation } = question;
  const asking = <T>(rule: () => Asking<T>): Promise<T> =>
    decideWith(rule(), world(operation === undefined ? undefined : { by: { operation, turn: turnId }, rule }));
  if (question.kind === 'tool') {
    if (!authority.ok) return TOOL_CALL_WITHOUT_AUTHORITY;
    const { ceiling, exact, callDigest } = question;
    const fitsCall = callDigest === undefined ? undefined : (_: string, boundTo: string) => boundTo === callDigest;
    return asking(() => decideToolCall(authority.value, { ceiling, exact, now, checks: held.checks, hostCeiling: held.ceiling, fitsCall }));
  }
  const { request, consume } = question;
  const decided = authority.ok
    ? await asking(() => authority.value.decide(request, { now, consume, mode: 'execute', ...held }))
    : decidedWithoutAuthority(authority.error);
  const { allowed, reasonCode } = decided.decision;
  return { status: allowed ? 'allowed' : 'denied', code: reasonCode, ...of(request), recorded: [{ request, decided, consume }] };
};

const of = ({ resource, action }: RecordedDecision['request']) => ({ resource, action });

const usesOf = ({ taken }: UsesSeen): Pick<Verdict, 'use' | 'above'> => {
  const [use, ...above] = taken ?? [];
  return use === undefined ? {} : { use, ...(above.length === 0 ? {} : { above }) };
};
