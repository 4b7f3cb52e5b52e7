import { type AuditEvent, type DecisionMade, canonicalJson, positionOf } from '@sharedos/contracts';
import {
  type AncestorAnswer,
  type AncestorAsk,
  type Asking,
  type Decided,
  type World,
  budgetsOf,
  decideSync,
  decidedWithoutAuthority,
} from '@sharedos/kernel';
import type { DecisionBasis } from './decision-basis.ts';
import type { FoldView } from './supposed-log.ts';
import type { TurnAuthorities, TurnAuthority } from '../turns/turn-authorities.ts';

type GrantLookup = Pick<FoldView['index'], 'grantAt'>;

/** The rule that a recorded decision is computed by: the one that decides. */
export type DecisionRule = (turn: TurnAuthority, basis: DecisionBasis) => Asking<Decided>;

export const ruleInForce: DecisionRule = (turn, { request, now, mode, consume, isOfTurn, fitsCall }) => {
  const { authority, held } = turn;
  if (!authority.ok) return answered(decidedWithoutAuthority(authority.error));
  const checks = isOfTurn ? { checks: held.checks } : {};
  return authority.value.decide(request, { now, consume, mode, ...checks, ceiling: held.ceiling, fitsCall });
};

// oxlint-disable-next-line require-yield -- A rule that asks nothing is a rule.
function* answered(decided: Decided): Asking<Decided> {
  return decided;
}

/** Authority as a recorded turn had it. */
export const turnOf = (turns: Pick<TurnAuthorities, 'frozen'>, { revision, position, admittedAt, context }: DecisionBasis): TurnAuthority =>
  turns.frozen(revision, position, admittedAt, context);

/**
 * What the world answered when the decision was made: ancestors from the log at its revision, uses as they were counted then, and
 * revocations as they stood where live revocation was read. What was not counted or read then could not be had.
 *
 * @param whenNotCounted What else to take a use for that the record does not count, where a decision is only supposed.
 */
export const worldThen = (
  index: GrantLookup,
  basis: DecisionBasis,
  storeId: string,
  whenNotCounted: 'unavailable' | 'granted' = 'unavailable',
): World => ({
  ancestor: ancestorIn(index, basis),
  ...(basis.isOfTurn
    ? {
        use: (ask) => {
          const budgets = budgetsOf(ask);
          const spent = budgets.some(({ grantId, max }) => (basis.usage[grantId] ?? 0) >= max);
          if (spent) return 'exhausted';
          return budgets.every(({ grantId }) => grantId in basis.usage) ? 'granted' : whenNotCounted;
        },
      }
    : {}),
  revocation: ({ namespaceId, grantIds }) => {
    const revision = basis.revocationsAt.get(grantIds[0] ?? '');
    const position = revision === undefined ? undefined : positionOf(revision, storeId);
    if (revision === undefined || position === undefined) return 'unavailable';
    const isRevoked = (id: string): boolean => index.grantAt(namespaceId, id, position, Infinity)?.grant.revokedAt !== undefined;
    return { revision, revokedGrantIds: grantIds.filter(isRevoked) };
  },
});

const ancestorIn =
  (index: GrantLookup, { position, admittedAt }: DecisionBasis) =>
  ({ namespaceId, grantId }: AncestorAsk): AncestorAnswer => {
    const found = index.grantAt(namespaceId, grantId, position, admittedAt);
    return found === undefined ? 'not_found' : { found };
  };

/** Computes one decision from its basis, its turn's authority and what the world said. */
export const recompute = (basis: DecisionBasis, turn: TurnAuthority, world: World, rule: DecisionRule = ruleInForce): Decided =>
  decideSync(rule(turn, basis), world);

export const madeOf = ({ decision }: Decided, { authority }: TurnAuthority): DecisionMade => ({
  outcome: decision.allowed ? 'allowed' : 'denied',
  ...(decision.allowed ? {} : { reason: decision.reasonCode }),
  ...(decision.matchedGrantId === undefined ? {} : { grantId: decision.matchedGrantId }),
  ...(authority.ok ? { authorityHash: authority.value.held.snapshot.hash } : {}),
});

/** In what a decision computed again is not the recorded one. */
export const differencesOf = (event: AuditEvent, decided: Decided, made: DecisionMade): readonly string[] => {
  const explanation = decided.decision.allowed ? undefined : decided.explanation;
  const { metadata = {} } = event;
  const compared: readonly (readonly [string, unknown, unknown])[] = [
    ['outcome', event.outcome, made.outcome],
    ['reason', event.reason, made.reason],
    ['grant', event.grantId, made.grantId],
    // A decision outside a turn names no authority.
    ['authority', event.authorityHash, event.authorityHash === undefined ? undefined : made.authorityHash],
    ['rejectedGrants', metadata['rejectedGrants'], explanation?.rejections.map(({ grantId, reason }) => ({ grantId, reason }))],
  ];
  return compared.filter(([, was, is]) => canonicalJson([was ?? null]) !== canonicalJson([is ?? null])).map(([field]) => field);
};
