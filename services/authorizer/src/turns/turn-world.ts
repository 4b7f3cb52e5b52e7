import { type UseTaken, canonicalJson } from '@sharedos/contracts';
import {
  type AncestorAnswer,
  type AncestorAsk,
  type Asking,
  type AsyncWorld,
  type UseAnswer,
  type UseAsk,
  budgetsOf,
} from '@sharedos/kernel';
import type { Budgets, Reservation, UsageStore } from '@sharedos/usage';
import type { AuthorityFold } from '../fold/authority-fold.ts';
import type { TurnAuthority } from './turn-authorities.ts';

/** Uses seen and taken while one question was answered; they go into its record and its answer. */
export interface UsesSeen {
  readonly seen: Record<string, number>;
  /** Of the grant that allowed and of each bounded ancestor, nearest first. */
  taken?: readonly UseTaken[];
}

/** The consuming question that a decision is about to ask, as far as that can be told without asking it. */
export interface Consuming {
  readonly by: Reservation;
  /** Starts the decision over, for looking ahead. It has no effect of its own. */
  readonly rule: () => Asking<unknown>;
}

/**
 * The world a rule asks: ancestors from the fold at the turn's own position, uses from the counters.
 *
 * A tool call asks for a use twice: to discover the tool, and to spend. Where the second question is known to be about the same
 * budgets once the first is granted, the use is taken at the first, so that a decision is one step of the counters.
 *
 * @param consuming Absent for what spends nothing.
 */
export const worldOf = (
  fold: Pick<AuthorityFold, 'index'>,
  usage: UsageStore,
  turn: TurnAuthority,
  uses: UsesSeen,
  consuming?: Consuming,
): AsyncWorld => {
  const ancestor = ({ namespaceId, grantId }: AncestorAsk): AncestorAnswer => {
    const found = fold.index.grantAt(namespaceId, grantId, turn.position, turn.admittedAt);
    return found === undefined ? 'not_found' : { found };
  };

  /** A count that was seen before says nothing of an answer that was not had. */
  const unavailable = (budgets: Budgets): UseAnswer => {
    for (const { grantId } of budgets) delete uses.seen[grantId];
    return 'unavailable';
  };

  const count = async (budgets: Budgets): Promise<UseAnswer> => {
    const counts = await usage.count(budgets);
    if (!counts.ok) return unavailable(budgets);
    for (const [at, { grantId }] of budgets.entries()) uses.seen[grantId] = counts.value[at] ?? 0;
    return budgets.every(({ max }, at) => (counts.value[at] ?? max) < max) ? 'granted' : 'exhausted';
  };

  const take = async (budgets: Budgets, by: Reservation): Promise<UseAnswer> => {
    const taken = await usage.take(budgets, by);
    if (!taken.ok) return unavailable(budgets);
    if (taken.value.kind === 'exhausted') {
      const { grantId } = taken.value;
      for (const budget of budgets) if (budget.grantId === grantId) uses.seen[grantId] = budget.max;
      return 'exhausted';
    }
    for (const { grantId, ordinal } of taken.value.uses) uses.seen[grantId] = ordinal - 1;
    uses.taken = taken.value.uses;
    return 'granted';
  };

  let ahead: { readonly name: string | undefined } | undefined;
  let early: { readonly name: string; readonly answer: UseAnswer } | undefined;
  return {
    ancestor,
    use: async (ask) => {
      const budgets = budgetsIn(ask);
      const name = canonicalJson(budgets);
      if (early?.name === name) return early.answer;
      if (ask.consume) return consuming === undefined ? 'unavailable' : take(budgets, consuming.by);
      if (consuming === undefined) return count(budgets);
      ahead ??= { name: firstTaken(consuming.rule(), ancestor) };
      if (ahead.name !== name) return count(budgets);
      early = { name, answer: await take(budgets, consuming.by) };
      return early.answer;
    },
  };
};

const budgetsIn = (ask: UseAsk): Budgets => {
  const [first, ...above] = budgetsOf(ask).map((budget) => ({ namespaceId: ask.namespaceId, ...budget }));
  return [first as Budgets[0], ...above];
};

/** What the rule would spend first if every budget had a use left; `undefined` where that takes more to know than ancestors. */
const firstTaken = (rule: Asking<unknown>, ancestor: (ask: AncestorAsk) => AncestorAnswer): string | undefined => {
  for (let step = rule.next(); step.done !== true;) {
    const ask = step.value;
    if (ask.ask === 'ancestor') step = rule.next(ancestor(ask));
    else if (ask.ask !== 'use') return undefined;
    else if (ask.consume) return canonicalJson(budgetsIn(ask));
    else step = rule.next('granted');
  }
  return undefined;
};
