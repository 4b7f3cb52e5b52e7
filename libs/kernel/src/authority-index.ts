import type { CapabilityRequirement } from '@sharedos/contracts';
import type { HeldAuthority } from './authority.ts';
import { unfitness } from './decide.ts';
import { ANY_ACTION, ownersAgree } from './matching.ts';
import { NOWHERE, type Place, SegmentTrie } from './segment-trie.ts';

/** What of one resource namespace is held, by action. */
interface NamespacePlaces {
  readonly byAction: Map<string, SegmentTrie>;
  /** Of the capabilities that list {@link ANY_ACTION}. */
  readonly any: SegmentTrie | undefined;
}

/**
 * Finds the grants of an authority that may answer a request, by resource namespace, action and path segments. What cannot
 * change within a turn is judged once: a grant outside its window at admission or of another purpose, and a capability over
 * another owner's resources, are not in it, because the owner of every request that is decided at all is the context's.
 */
export class AuthorityIndex {
  readonly #namespaces = new Map<string, NamespacePlaces>();

  constructor({ context, admittedAt, grants }: HeldAuthority) {
    if (admittedAt === undefined) return;
    const listed = new Map<string, Map<string, Place[]>>();
    const atAdmission = { admittedAt, now: admittedAt };
    grants.forEach((held, ordinal) => {
      if (unfitness(held, atAdmission, context) !== undefined) return;
      for (const { resource, scope, actions } of held.grant.capabilities) {
        if (!ownersAgree(resource.owner, undefined, context)) continue;
        const byAction = listed.get(resource.namespace) ?? new Map<string, Place[]>();
        listed.set(resource.namespace, byAction);
        const place: Place = { path: resource.path, scope, ordinal };
        // What lists every action is found under that alone, however many more it lists.
        for (const action of actions.includes(ANY_ACTION) ? [ANY_ACTION] : actions) {
          const places = byAction.get(action);
          if (places === undefined) byAction.set(action, [place]);
          // An action may be listed twice.
          else if (places.at(-1) !== place) places.push(place);
        }
      }
    });
    for (const [namespace, byAction] of listed) {
      const tries = new Map(Array.from(byAction, ([action, places]) => [action, new SegmentTrie(places)]));
      this.#namespaces.set(namespace, { byAction: tries, any: tries.get(ANY_ACTION) });
    }
  }

  /** The place, in the order of the walk, of the first grant that covers a request, or {@link NOWHERE}. The request's owner is the context's. */
  first({ resource: { namespace, path }, action }: CapabilityRequirement, mode: 'execute' | 'discover'): number {
    const held = this.#namespaces.get(namespace);
    if (held === undefined) return NOWHERE;
    const listing = held.byAction.get(action);
    const { any } = held;
    if (mode === 'execute') {
      const first = listing === undefined ? NOWHERE : listing.firstCovering(path);
      return any === undefined || any === listing ? first : Math.min(first, any.firstCovering(path));
    }
    const first = listing === undefined ? NOWHERE : listing.firstReaching(path);
    return any === undefined || any === listing ? first : Math.min(first, any.firstReaching(path));
  }

  /** The places of all grants that cover a request, each once, in the order of the walk. */
  all({ resource: { namespace, path }, action }: CapabilityRequirement, mode: 'execute' | 'discover'): readonly number[] {
    const held = this.#namespaces.get(namespace);
    if (held === undefined) return [];
    const found = new Set<number>();
    for (const trie of new Set([held.byAction.get(action), held.any]))
      for (const ordinal of (mode === 'execute' ? trie?.covering(path) : trie?.reaching(path)) ?? []) found.add(ordinal);
    return [...found].sort((a, b) => a - b);
  }
}
