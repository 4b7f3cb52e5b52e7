import type { Ask, AncestorAnswer, Answer, Asking } from './asking.ts';
import { type ChainFrame, type ChainVerdict, validateChain } from './chain.ts';
import type { ParsedGrant } from './parsed-grant.ts';

interface KnownChain {
  readonly verdict: ChainVerdict;
  /** The verdict stands for every operation before this instant: until then no ancestor it rests on has expired. */
  readonly until: number;
}

/**
 * The chains of an authority whose ancestors are read at one fixed revision. Such an ancestor is the same whenever it is read,
 * so what depends on nothing but it and the admission is judged once, and afterwards only the clock is asked. An answer that
 * was no ancestor is kept by nobody: the next decision asks again.
 */
export class PinnedChains {
  readonly #ancestorsMax: number;
  readonly #ancestors = new Map<string, AncestorAnswer & object>();
  readonly #known = new Map<ParsedGrant, KnownChain>();

  constructor(ancestorsMax: number) {
    this.#ancestorsMax = ancestorsMax;
  }

  /** @param frame Of the authority's context and admission; only its `now` may differ from one call to the next. */
  *validate(held: ParsedGrant, frame: ChainFrame): Asking<ChainVerdict> {
    const known = this.#known.get(held);
    if (known !== undefined && frame.now < known.until) return known.verdict;
    const verdict = yield* this.#answering(validateChain(held, frame, this.#ancestorsMax));
    const until = this.#standsUntil(held, verdict);
    if (verdict.status !== 'unverified' && frame.now < until) this.#known.set(held, { verdict, until });
    return verdict;
  }

  /** The instant until which a chain is known to be valid and to need no counter, or `-Infinity`. */
  validUntil(held: ParsedGrant): number {
    const known = this.#known.get(held);
    return known?.verdict.status === 'valid' && known.verdict.budgets === undefined ? known.until : -Infinity;
  }

  *#answering(rule: Asking<ChainVerdict>): Asking<ChainVerdict> {
    let step = rule.next();
    while (step.done !== true) step = rule.next(yield* this.#answer(step.value));
    return step.value;
  }

  *#answer(ask: Ask): Asking<Answer> {
    if (ask.ask !== 'ancestor') return yield ask;
    // By id alone: every ancestor that is asked for is one of the authority's own namespace, or its chain has ended before.
    const known = this.#ancestors.get(ask.grantId);
    if (known !== undefined) return known;
    const answer = yield ask;
    if (typeof answer === 'object' && 'found' in answer && answer.found.grant.id === ask.grantId) this.#ancestors.set(ask.grantId, answer);
    return answer;
  }

  /** The first expiry of the ancestors a verdict rests on, that of the failing link among them. */
  #standsUntil({ grant }: ParsedGrant, verdict: ChainVerdict): number {
    const restsOn = verdict.status === 'valid' ? verdict.chain : [...verdict.chain, verdict.grantId];
    return restsOn
      .filter((id) => id !== grant.id)
      .reduce((until, id) => Math.min(until, this.#ancestors.get(id)?.found.window.expiresAt ?? NaN), Infinity);
  }
}
