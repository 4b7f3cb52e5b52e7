import {
  type AccessContext,
  type Address,
  type CapabilityRequirement,
  type DailyWindow,
  type ForbidRule,
  type FreezeRule,
  type Path,
  type PolicyRule,
  RULES_LANGUAGE,
  RulesDocument,
  type Result,
  addressId,
  err,
  instantOf,
  ok,
} from '@sharedos/contracts';
import type { CompiledPolicy, Forbidden, PolicyLanguage } from './policy-language.ts';

/** What a freeze of everybody leaves open, so that operators can look into it and end it. */
export const isOperatorsResource = ({ resource: { namespace, path } }: CapabilityRequirement): boolean =>
  namespace === 'sharedos.admin' || (namespace === 'sharedos' && path[0] === 'audit');

/** Declarative rules that only forbid. */
export const rulesLanguage: PolicyLanguage = {
  speaks: (language) => language === RULES_LANGUAGE,
  compile: (document) => {
    const parsed = RulesDocument.safeParse(document);
    return parsed.success ? compileRules(parsed.data.rules) : err('the document is not one of this language');
  },
};

/**
 * Compiles rules. A request looks at those of its own resource namespace, action and path alone, and of each at most four sets of
 * `path` + 1 places, so that it costs no more with many rules than with few, unless they are about the same place.
 *
 * Where several forbid, the first in the document is named.
 */
const compileRules = (rules: readonly PolicyRule[]): Result<CompiledPolicy, string> => {
  const repeated = repeatedId(rules);
  if (repeated !== undefined) return err(`two rules have the id ${repeated}`);
  const places = rules.reduce((sum, rule) => sum + (rule.effect === 'forbid' ? placesOf(rule) : 1), 0);
  if (places > PLACES_MAX) return err(`its rules name ${places} pairs of namespace and action, more than ${PLACES_MAX}`);
  const frozen = new Map<string, FreezeRule>();
  let everybody: FreezeRule | undefined;
  const forbidding = new ForbidIndex();
  rules.forEach((rule, place) => {
    if (rule.effect === 'forbid') forbidding.add(rule, place);
    else if (rule.actor === undefined) everybody ??= rule;
    else if (!frozen.has(actorKey(rule.actor))) frozen.set(actorKey(rule.actor), rule);
  });
  return ok((request, context) => {
    const actor = actorKey(context.actor);
    const freeze = frozen.get(actor) ?? (everybody !== undefined && !isOperatorsResource(request) ? everybody : undefined);
    if (freeze !== undefined) return forbiddenBy(freeze);
    const rule = forbidding.first(request, context, actor);
    return rule === undefined ? undefined : forbiddenBy(rule);
  });
};

/** Pairs of resource namespace and action in one document: each is a place in memory, for as long as a turn may ask about it. */
const PLACES_MAX = 65_536;
const placesOf = ({ namespaces, actions }: ForbidRule): number => (namespaces?.length ?? 1) * (actions?.length ?? 1);

const forbiddenBy = ({ id, reason }: PolicyRule): Forbidden => ({ rule: id, reason });

/** One text for an address; a kind holds no space. */
const actorKey = (address: Address): string => `${address.kind} ${addressId(address)}`;

const repeatedId = (rules: readonly PolicyRule[]): string | undefined => {
  const seen = new Set<string>();
  for (const { id } of rules) {
    if (seen.has(id)) return id;
    seen.add(id);
  }
  return undefined;
};

/** A rule with what it asks of a request that was found at its place. */
interface Placed {
  readonly rule: ForbidRule;
  readonly place: number;
  readonly actors: ReadonlySet<string> | undefined;
  readonly purposes: ReadonlySet<string> | undefined;
  readonly daily: readonly [from: number, to: number] | undefined;
}

/** Rules by path, as one text. A segment holds no slash, so two paths never share one. */
interface ByPath {
  readonly rules: Map<string, Placed[]>;
  deepest: number;
}

const ANY = Symbol('any');
type Named = string | typeof ANY;
const EVERYTHING: readonly Named[] = [ANY];

class ForbidIndex {
  readonly #places = new Map<Named, Map<Named, ByPath>>();

  add(rule: ForbidRule, place: number): void {
    const placed: Placed = {
      rule,
      place,
      actors: rule.actors && new Set(rule.actors.map(actorKey)),
      purposes: rule.purposes && new Set(rule.purposes),
      daily: rule.daily && minutesOf(rule.daily),
    };
    const path = rule.path ?? [];
    const key = path.map((segment) => `/${segment}`).join('');
    for (const namespace of new Set<Named>(rule.namespaces ?? EVERYTHING)) {
      const actions = entry(this.#places, namespace, () => new Map<Named, ByPath>());
      // A rule about the action `*` is about every action, as a capability is.
      const named: readonly Named[] = rule.actions === undefined || rule.actions.includes('*') ? EVERYTHING : rule.actions;
      for (const action of new Set<Named>(named)) {
        const byPath = entry(actions, action, (): ByPath => ({ rules: new Map(), deepest: 0 }));
        byPath.deepest = Math.max(byPath.deepest, path.length);
        entry(byPath.rules, key, (): Placed[] => []).push(placed);
      }
    }
  }

  first({ resource, action }: CapabilityRequirement, context: AccessContext, actor: string): ForbidRule | undefined {
    let found: Placed | undefined;
    for (const namespace of [resource.namespace, ANY] as const) {
      const actions = this.#places.get(namespace);
      if (actions === undefined) continue;
      // Whoever asks for `*` asks for every action, the forbidden one too.
      const places = action === '*' ? [...actions.values()] : [actions.get(action), actions.get(ANY)];
      for (const byPath of places) {
        if (byPath !== undefined) found = firstAlong(resource.path, byPath, context, actor, found);
      }
    }
    return found?.rule;
  }
}

const entry = <Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value => {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
};

const firstAlong = (
  path: Path,
  { rules, deepest }: ByPath,
  context: AccessContext,
  actor: string,
  before: Placed | undefined,
): Placed | undefined => {
  let found = before;
  let key = '';
  for (let depth = 0; ; depth += 1) {
    for (const placed of rules.get(key) ?? []) {
      if (found !== undefined && found.place <= placed.place) break;
      if (applies(placed, context, actor)) found = placed;
    }
    if (depth >= path.length || depth >= deepest) return found;
    key += `/${path[depth]}`;
  }
};

const applies = ({ actors, purposes, daily }: Placed, context: AccessContext, actor: string): boolean =>
  (actors === undefined || actors.has(actor)) &&
  (purposes === undefined || purposes.has(context.purpose)) &&
  (daily === undefined || isWithin(daily, context.now));

const minuteOf = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));
const minutesOf = ({ from, to }: DailyWindow): readonly [number, number] => [minuteOf(from), minuteOf(to)];

/** A window that does not end after it starts goes past midnight; one that ends as it starts is the whole day. */
const isWithin = ([from, to]: readonly [number, number], now: string): boolean => {
  const instant = instantOf(now);
  // Nothing is known to lie outside a window at an instant that cannot be read.
  if (instant === undefined) return true;
  const minute = Math.floor(instant / 60_000) % 1_440;
  const inDay = minute < 0 ? minute + 1_440 : minute;
  return from < to ? inDay >= from && inDay < to : inDay >= from || inDay < to;
};
