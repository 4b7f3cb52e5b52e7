import { type Delivery, pause } from '@sharedos/bus';
import {
  type AuditEvent,
  type AuthorityRecompute,
  type ProtocolError,
  type Recomputed,
  type Reply,
  type Result,
  canonicalJson,
  positionOf,
  refused,
} from '@sharedos/contracts';
import { type DecisionBasis, basisOf } from './decision-basis.ts';
import { HostPolicies } from '../fold/host-policies.ts';
import type { LogHistory } from './log-history.ts';
import type { Ports } from '../ports.ts';
import { type DecisionRule, differencesOf, madeOf, recompute, ruleInForce, turnOf, worldThen } from './recompute-decision.ts';
import { type FoldView, supposing } from './supposed-log.ts';
import { TurnAuthorities, type TurnAuthority } from '../turns/turn-authorities.ts';

type HistoryPorts = Pick<Ports, 'store' | 'limits' | 'policyLanguages'>;

/** Decisions computed between two looks at what else there is to answer. */
const AT_ONCE = 50;

/** Authority of past turns, over the log or over one that supposes something. */
export const pastTurns = (fold: FoldView, { policyLanguages }: HistoryPorts): TurnAuthorities =>
  new TurnAuthorities(fold, undefined, new HostPolicies(fold, policyLanguages));

/** @returns `log_unavailable`, to be asked again, while the log is not folded up to what the records were decided at. */
export const pastUpTo = async (
  { limits }: Pick<HistoryPorts, 'limits'>,
  history: LogHistory,
  position: number,
): Promise<Result<FoldView, ProtocolError>> => {
  const folded = await history.upTo(position, limits.deadlineMs);
  return folded.ok ? folded : refused('log_unavailable', folded.error, true);
};

/** The last position that any of these decisions read. */
export const lastPosition = (bases: readonly Result<DecisionBasis, unknown>[], storeId: string): number =>
  Math.max(
    0,
    ...bases.flatMap((basis) => {
      if (!basis.ok) return [];
      const { position, revocationsAt } = basis.value;
      return [position, ...Array.from(revocationsAt.values(), (revision) => positionOf(revision, storeId) ?? 0)];
    }),
  );

/** Computes decisions again from the log, or as they would have come out under a supposition, and says which differ. */
export const recomputeDecisions =
  (ports: HistoryPorts, history: LogHistory, rule: DecisionRule = ruleInForce) =>
  async ({ decisions, suppose }: AuthorityRecompute, { namespaceId }: Delivery): Promise<Reply<{ answers: Recomputed[] }>> => {
    if (decisions.some((event) => event.type !== 'authorization.checked' || event.namespaceId !== namespaceId))
      return refused('invalid_request', 'only decisions of this namespace are computed again');
    const { storeId } = ports.store;
    const bases = decisions.map((event) => basisOf(event, storeId));
    const past = await pastUpTo(ports, history, lastPosition(bases, storeId));
    if (!past.ok) return past;
    const supposed = suppose === undefined ? past : supposing(past.value, namespaceId, suppose);
    if (!supposed.ok) return refused('invalid_request', `the grant supposed is none: ${String(supposed.error)}`);
    const again = recomputer(pastTurns(supposed.value, ports), supposed.value, { storeId, isSupposed: suppose !== undefined, rule });
    const answers: Recomputed[] = [];
    for (const [index, event] of decisions.entries()) {
      const basis = bases[index] as Result<DecisionBasis, never>;
      answers.push(basis.ok ? again(event, basis.value) : { status: 'no_basis', why: basis.error });
      if (index % AT_ONCE === AT_ONCE - 1) await pause(0);
    }
    return { ok: true, value: { answers } };
  };

/** Computes decisions one after another; those of one turn share its authority. */
const recomputer = (
  turns: TurnAuthorities,
  fold: FoldView,
  { storeId, isSupposed, rule }: { readonly storeId: string; readonly isSupposed: boolean; readonly rule: DecisionRule },
): ((event: AuditEvent, basis: DecisionBasis) => Recomputed) => {
  const known = new Map<string, TurnAuthority>();
  return (event, basis) => {
    const { context, revision } = basis;
    const name = canonicalJson([{ ...context }, revision]);
    const turn = known.get(name) ?? turnOf(turns, basis);
    known.set(name, turn);
    const decided = recompute(basis, turn, worldThen(fold.index, basis, storeId, isSupposed ? 'granted' : 'unavailable'), rule);
    const computed = madeOf(decided, turn);
    const fields = differencesOf(event, decided, computed);
    // What is supposed changes what is held, and so its name, and who was rejected: only what came of it is told.
    const told = isSupposed ? fields.filter((field) => field !== 'authority' && field !== 'rejectedGrants') : fields;
    return told.length === 0 ? { status: 'same' } : { status: 'differs', computed, fields: [...told] };
  };
};
