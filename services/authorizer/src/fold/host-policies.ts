import type { PolicyState } from '@sharedos/contracts';
import type { Position } from '@sharedos/event-store';
import { type PolicyInForce, type PolicyLanguage, type PolicyResolution, policyInForce, rulesLanguage } from '@sharedos/kernel';
import type { AuthorityFold } from './authority-fold.ts';

/** The policy of a namespace at a revision, ready to be asked. Each is compiled once, when it is first needed. */
export class HostPolicies {
  readonly #fold: Pick<AuthorityFold, 'namespaces'>;
  readonly languages: readonly PolicyLanguage[];
  readonly #compiled = new WeakMap<PolicyState, PolicyResolution<PolicyInForce>>();

  /** @param languages In which policies may be written; only the rules of this project when absent. */
  constructor(fold: Pick<AuthorityFold, 'namespaces'>, languages: readonly PolicyLanguage[] = [rulesLanguage]) {
    this.#fold = fold;
    this.languages = languages;
  }

  /** @returns `undefined` where nothing was ever set, and so there is no ceiling. */
  at(namespaceId: string, position: Position): PolicyResolution<PolicyInForce> | undefined {
    const state = this.#fold.namespaces.policyAt(namespaceId, position);
    if (state.version === 0) return undefined;
    const known = this.#compiled.get(state);
    if (known !== undefined) return known;
    const compiled = policyInForce(state, this.languages);
    this.#compiled.set(state, compiled);
    return compiled;
  }
}
