import type { AccessContext, CapabilityGrant } from '@sharedos/contracts';
import { invariant } from './decider.ts';
import type { ParsedGrant } from './parsed-grant.ts';

/** What a rule needs to know of the world. Rules ask by yielding; whoever drives them answers. */
export type Ask = UseAsk | AncestorAsk | VerifyAsk | RevocationAsk;

/** How often a bounded grant may be used: its `maxUses`. */
export interface Budget {
  readonly grantId: string;
  readonly max: number;
}

/**
 * Is a use of a bounded grant left, and when consuming: take one. `above` are bounded ancestors whose budgets it shares: a use of
 * each is taken in the same step, or none of any.
 */
export interface UseAsk extends Budget {
  readonly ask: 'use';
  readonly namespaceId: string;
  readonly consume: boolean;
  readonly above?: readonly Budget[];
}

/** All that one use is counted in, nearest first. */
export const budgetsOf = ({ grantId, max, above = [] }: Pick<UseAsk, 'grantId' | 'max' | 'above'>): readonly [Budget, ...Budget[]] => [
  { grantId, max },
  ...above,
];

/** The question about a use of these budgets. */
export const useOf = ([first, ...above]: readonly [Budget, ...Budget[]]): Budget & Pick<UseAsk, 'above'> => ({
  ...first,
  ...(above.length === 0 ? {} : { above }),
});

/** The grant with this id in this namespace, from the authoritative store alone. */
export interface AncestorAsk {
  readonly ask: 'ancestor';
  readonly namespaceId: string;
  readonly grantId: string;
}

/** Does the host's own check of grants accept this one. Asked only where the host installed such a check. */
export interface VerifyAsk {
  readonly ask: 'verify';
  readonly grant: CapabilityGrant;
  readonly context: AccessContext;
}

/** Which of these grants, a candidate and its whole chain, are revoked by now: one consistent read. Asked only where installed. */
export interface RevocationAsk {
  readonly ask: 'revocation';
  readonly namespaceId: string;
  readonly grantIds: readonly string[];
}

/** `unavailable`: we could not find out. `missing_port`: nothing is installed that could. */
export type UseAnswer = 'granted' | 'exhausted' | 'unavailable' | 'missing_port';

/** `failed`: the store could not be asked, or what it returned is no grant. */
export type AncestorAnswer = { readonly found: ParsedGrant } | 'not_found' | 'failed' | 'missing_port';

/** What cannot be found out is not verified. */
export type VerifyAnswer = 'verified' | 'rejected';

/** `unavailable`: the source could not be read, so nothing can be decided. */
export type RevocationAnswer = { readonly revision: string; readonly revokedGrantIds: readonly string[] } | 'unavailable';

export type Answer = UseAnswer | AncestorAnswer | VerifyAnswer | RevocationAnswer;

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
    (typeof answer === 'object' && 'found' in answer) || answer === 'not_found' || answer === 'failed' || answer === 'missing_port',
    'an ancestor is answered as one',
  );
  return answer;
}

export function* askVerify(ask: Omit<VerifyAsk, 'ask'>): Asking<boolean> {
  const answer = yield { ask: 'verify', ...ask };
  invariant(answer === 'verified' || answer === 'rejected', 'a grant is verified or rejected');
  return answer === 'verified';
}

export function* askRevocation(ask: Omit<RevocationAsk, 'ask'>): Asking<RevocationAnswer> {
  const answer = yield { ask: 'revocation', ...ask };
  invariant((typeof answer === 'object' && 'revokedGrantIds' in answer) || answer === 'unavailable', 'a revocation is answered as one');
  return answer;
}

/** Ports that answer at once. A port left out is not installed. Ports answer in values and do not throw. */
export interface World {
  use?(ask: UseAsk): UseAnswer;
  ancestor?(ask: AncestorAsk): AncestorAnswer;
  verify?(ask: VerifyAsk): VerifyAnswer;
  revocation?(ask: RevocationAsk): RevocationAnswer;
}

/** Ports that may take their time. Each brings its own deadline: the rule waits for the answer. */
export interface AsyncWorld {
  use?(ask: UseAsk): UseAnswer | Promise<UseAnswer>;
  ancestor?(ask: AncestorAsk): AncestorAnswer | Promise<AncestorAnswer>;
  verify?(ask: VerifyAsk): VerifyAnswer | Promise<VerifyAnswer>;
  revocation?(ask: RevocationAsk): RevocationAnswer | Promise<RevocationAnswer>;
}

/**
 * Runs a rule to its end against ports that answer at once.
 *
 * @throws Defect when a port answers a question with something that is no answer to it.
 */
export const decideSync = <T>(rule: Asking<T>, world: World): T => {
  let step = rule.next();
  while (step.done !== true) {
    step = rule.next(answered(step.value, world));
  }
  return step.value;
};

/** Runs a rule to its end, one question at a time and in the rule's order: the walk is never made parallel. */
export const decideWith = async <T>(rule: Asking<T>, world: AsyncWorld): Promise<T> => {
  let step = rule.next();
  while (step.done !== true) {
    step = rule.next(await answered(step.value, world));
  }
  return step.value;
};

function answered(ask: Ask, world: World): Answer;
function answered(ask: Ask, world: AsyncWorld): Answer | Promise<Answer>;
function answered(ask: Ask, world: AsyncWorld): Answer | Promise<Answer> {
  switch (ask.ask) {
    case 'use':
      return world.use?.(ask) ?? 'missing_port';
    case 'ancestor':
      return world.ancestor?.(ask) ?? 'missing_port';
    // A rule asks these two only when told that somebody can answer, so a world without them answers nothing away.
    case 'verify':
      return world.verify?.(ask) ?? 'rejected';
    case 'revocation':
      return world.revocation?.(ask) ?? 'unavailable';
  }
}
