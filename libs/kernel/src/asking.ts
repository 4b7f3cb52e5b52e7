import { invariant } from './decider.ts';
import type { ParsedGrant } from './parsed-grant.ts';

/** What a rule needs to know of the world. Rules ask by yielding; whoever drives them answers. */
export type Ask = UseAsk | AncestorAsk;

/** Is a use of a bounded grant left, and when consuming: take one. `max` is the grant's `maxUses`. */
export interface UseAsk {
  readonly ask: 'use';
  readonly namespaceId: string;
  readonly grantId: string;
  readonly max: number;
  readonly consume: boolean;
}

/** The grant with this id in this namespace, from the authoritative store alone. */
export interface AncestorAsk {
  readonly ask: 'ancestor';
  readonly namespaceId: string;
  readonly grantId: string;
}

/** `unavailable`: we could not find out. `missing_port`: nothing is installed that could. */
export type UseAnswer = 'granted' | 'exhausted' | 'unavailable' | 'missing_port';

/** `failed`: the store could not be asked, or what it returned is no grant. */
export type AncestorAnswer = { readonly found: ParsedGrant } | 'not_found' | 'failed' | 'missing_port';

export type Answer = UseAnswer | AncestorAnswer;

/** A rule: asks, is answered, and returns. It is pure: the same answers give the same value. */
export type Asking<T> = Generator<Ask, T, Answer>;

export function* askUse(ask: Omit<UseAsk, 'ask'>): Asking<UseAnswer> {
  const answer = yield { ask: 'use', ...ask };
  invariant(
    answer === 'granted' || answer === 'exhausted' || answer === 'unavailable' || answer === 'missing_port',
    'a use is answered as one',
  );
  return answer;
}

export function* askAncestor(ask: Omit<AncestorAsk, 'ask'>): Asking<AncestorAnswer> {
  const answer = yield { ask: 'ancestor', ...ask };
  invariant(
    typeof answer === 'object' || answer === 'not_found' || answer === 'failed' || answer === 'missing_port',
    'an ancestor is answered as one',
  );
  return answer;
}

/** Ports that answer at once. A port left out is not installed. Ports answer in values and do not throw. */
export interface World {
  use?(ask: UseAsk): UseAnswer;
  ancestor?(ask: AncestorAsk): AncestorAnswer;
}

/** Ports that may take their time. Each brings its own deadline: the rule waits for the answer. */
export interface AsyncWorld {
  use?(ask: UseAsk): UseAnswer | Promise<UseAnswer>;
  ancestor?(ask: AncestorAsk): AncestorAnswer | Promise<AncestorAnswer>;
}

/**
 * Runs a rule to its end against ports that answer at once.
 *
 * @throws Defect when a port answers a question with something that is no answer to it.
 */
export const decideSync = <T>(rule: Asking<T>, world: World): T => {
  let step = rule.next();
  while (step.done !== true) {
    const ask = step.value;
    step = rule.next(ask.ask === 'use' ? (world.use?.(ask) ?? 'missing_port') : (world.ancestor?.(ask) ?? 'missing_port'));
  }
  return step.value;
};

/** Runs a rule to its end, one question at a time and in the rule's order: the walk is never made parallel. */
export const decideWith = async <T>(rule: Asking<T>, world: AsyncWorld): Promise<T> => {
  let step = rule.next();
  while (step.done !== true) {
    const ask = step.value;
    step = rule.next(ask.ask === 'use' ? ((await world.use?.(ask)) ?? 'missing_port') : ((await world.ancestor?.(ask)) ?? 'missing_port'));
  }
  return step.value;
};
