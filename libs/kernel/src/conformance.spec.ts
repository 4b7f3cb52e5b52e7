import { readFileSync, readdirSync } from 'node:fs';
import {
  type AccessContext,
  type Address,
  type AuditEvent,
  type Capability,
  type CapabilityConstraints,
  type CapabilityGrant,
  type CapabilityRequest,
  type CapabilityRequirement,
  type JsonObj,
  type Path,
  type Result,
  err,
  instantOf,
  sameAddress,
  sameJson,
} from '@sharedos/contracts';
import { afterAll, describe, expect, it } from 'vitest';
import {
  type AncestorAnswer,
  type AncestorAsk,
  type Asking,
  type UseAnswer,
  type UseAsk,
  type World,
  decideSync,
  decideWith,
} from './asking.ts';
import { authorityResolved, authorizationChecked } from './audit.ts';
import { type AuthorityFailure, type PolicyResolution, type ResolvedAuthority, loadAuthority } from './authority.ts';
import type { HostCeiling } from './ceiling.ts';
import { validateChain } from './chain.ts';
import { constraintEnvelopeViolation, tightestConstraints } from './constraints.ts';
import { type Decided, decide, decidedWithoutAuthority } from './decide.ts';
import { type DeriveRequest, capabilityIsWithin, deriveGrant } from './delegation.ts';
import { isAtOrBelow } from './paths.ts';
import { parseGrant } from './parsed-grant.ts';
import { publicDecision } from './public-decision.ts';
import { computeReach } from './reach.ts';
import { mintCapabilityRequest } from './required-authority.ts';

// The cases are data, written for any implementation. This runs those that ask for rules alone; what needs handlers, turns or
// transports is counted as left and runs in test/conformance.

type Bag = Record<string, unknown>;
type Step = { id: string; op: string; turn?: string; as?: Bag; input?: Bag };
type Case = { id: string; title: string; profile?: string; world: Bag; steps: Step[]; expect: (Bag & { step: string })[] };

const CASES = new URL('../../../test/conformance/cases/', import.meta.url);
const files = readdirSync(CASES)
  .filter((name) => name.endsWith('.json'))
  .sort();
const cases = files.flatMap((name) => (JSON.parse(readFileSync(new URL(name, CASES), 'utf8')) as { cases: Case[] }).cases);

const OPS = new Set([
  ...['authorize', 'discover', 'derive', 'validateChain', 'constraintViolation', 'constraintMeet', 'capabilityWithin', 'resolveAuthority'],
  ...['reach', 'mintRequest', 'setClock', 'revoke', 'remove', 'issue', 'openTurn', 'closeTurn', 'setOutage', 'setPolicy'],
]);
const isOurs = ({ profile, steps }: Case): boolean => profile === undefined && steps.every(({ op }) => OPS.has(op));

interface Policy {
  mode: 'static' | 'loaded' | 'source-only';
  version?: string;
  deny?: { namespace?: string; under?: Path; actions?: string[]; grantIds?: string[]; actors?: Address[]; metadata?: JsonObj }[];
  behaviour?: 'throws' | 'returns-nothing' | 'returns-promise' | 'names-other-grant' | 'foreign-code';
}

interface Held {
  readonly context: AccessContext;
  readonly authority: Result<ResolvedAuthority, AuthorityFailure>;
}

/** What one step gave: what its caller receives, and what was recorded while it ran. */
interface Observed {
  readonly received: Bag;
  readonly audit: readonly AuditEvent[];
  readonly hash?: string | undefined;
  readonly requestId?: string | undefined;
}

const grantsOf = ({ grants, grantsRepeat }: Bag): Bag[] => {
  const repeat = grantsRepeat as { count: number; template: Bag } | undefined;
  const copies = Array.from({ length: repeat?.count ?? 0 }, (_, index) => ({
    ...repeat?.template,
    id: `${String(repeat?.template['id'])}-${index}`,
  }));
  return [...(grants as Bag[]), ...copies];
};

const reported = ({ authority }: Held): Bag => (authority.ok ? { status: 'resolved' } : { status: 'unavailable', ...authority.error });

class Stage {
  clock: string;
  grants: Bag[];
  readonly parents: Bag[];
  readonly usage: Map<string, number>;
  readonly outages: Set<string>;
  readonly missing: ReadonlySet<string>;
  readonly turns = new Map<string, Held>();
  policy: Policy | undefined;
  audit: AuditEvent[] = [];
  counts = { grantLoads: 0, policyLoads: 0, ceilingCalls: 0 };
  private readonly world: Bag;
  private readonly run: <T>(rule: Asking<T>, world: World) => T | Promise<T>;

  constructor(world: Bag, run: <T>(rule: Asking<T>, world: World) => T | Promise<T>) {
    this.world = world;
    this.run = run;
    this.clock = world['clock'] as string;
    this.grants = grantsOf(world);
    this.parents = (world['parents'] as Bag[] | undefined) ?? [];
    const spent = (world['usage'] as Record<string, number> | undefined) ?? {};
    this.usage = new Map(Object.entries(spent).map(([grantId, count]) => [this.counter(grantId), count]));
    this.outages = new Set((world['outages'] as string[] | undefined) ?? []);
    this.missing = new Set((world['missing'] as string[] | undefined) ?? []);
    this.policy = world['hostPolicy'] as Policy | undefined;
  }

  contextOf({ as = {} }: Step): AccessContext {
    const { enabledNamespaces, ...fields } = as;
    const enabledToolNamespaces = enabledNamespaces ?? this.world['enabledNamespaces'];
    return { ...(this.world['context'] as Bag), enabledToolNamespaces, now: this.clock, ...fields } as unknown as AccessContext;
  }

  load(context: AccessContext): Held {
    const policy = this.loadPolicy();
    const authority = this.loadGrants(context, policy);
    const mark = { id: `audit-${this.audit.length}`, at: this.now, context };
    const ports = { hostCeiling: this.ceiling === undefined ? ('absent' as const) : ('installed' as const), policy };
    this.audit.push(authorityResolved(mark, authority.ok ? { authority: authority.value } : { failure: authority.error }, ports));
    return { context, authority };
  }

  private loadGrants(context: AccessContext, policy: PolicyResolution | undefined): Result<ResolvedAuthority, AuthorityFailure> {
    this.counts.grantLoads += 1;
    if (this.outages.has('grantSource')) return err({ code: 'grant_source_failed' });
    const asked = (grant: Bag): boolean =>
      grant['namespaceId'] === context.namespaceId &&
      sameJson(grant['subject'], context.actor) &&
      sameJson(grant['issuer'], context.authority);
    const material = this.world['store'] === 'verbatim' ? this.grants : this.grants.filter(asked);
    return loadAuthority(context, structuredClone(material), policy === undefined ? {} : { policy });
  }

  private loadPolicy(): PolicyResolution | undefined {
    if (this.policy === undefined || this.policy.mode === 'static') return undefined;
    this.counts.policyLoads += 1;
    const { version } = this.policy;
    if (this.outages.has('policySource') || version === undefined) return { status: 'unavailable' };
    return { status: 'loaded', policy: structuredClone(this.policy), version };
  }

  get now(): number {
    return instantOf(this.clock) as number;
  }

  get ports(): World {
    return {
      ...(this.missing.has('usageStore') ? {} : { use: (ask: UseAsk) => this.use(ask) }),
      ...(this.missing.has('delegationResolver') ? {} : { ancestor: (ask: AncestorAsk) => this.ancestor(ask) }),
    };
  }

  /** The key of a grant's counter, in the world's own namespace unless another is named. */
  counter(grantId: string, namespaceId: unknown = (this.world['context'] as Bag)['namespaceId']): string {
    return JSON.stringify([namespaceId, grantId]);
  }

  private use({ namespaceId, grantId, max, consume }: UseAsk): UseAnswer {
    if (this.outages.has('usageStore')) return 'unavailable';
    const counter = this.counter(grantId, namespaceId);
    const seen = this.usage.get(counter) ?? 0;
    if (seen >= max) return 'exhausted';
    if (consume) this.usage.set(counter, seen + 1);
    return 'granted';
  }

  private ancestor({ namespaceId, grantId }: AncestorAsk): AncestorAnswer {
    if (this.outages.has('delegationResolver')) return 'failed';
    const inScope = (grant: Bag): boolean => this.world['resolverIgnoresNamespace'] === true || grant['namespaceId'] === namespaceId;
    const material = [...this.grants, ...this.parents].find((grant) => grant['id'] === grantId && inScope(grant));
    if (material === undefined) return 'not_found';
    const found = parseGrant(structuredClone(material));
    return found.ok ? { found: found.value } : 'failed';
  }

  get ceiling(): HostCeiling | undefined {
    if (this.policy === undefined || this.policy.mode === 'source-only') return undefined;
    const installed = this.policy;
    return (allowed, request, context, loaded) => {
      this.counts.ceilingCalls += 1;
      const policy = installed.mode === 'loaded' ? (loaded as Policy) : installed;
      if (policy.behaviour === 'throws') throw new Error('the ceiling fell');
      if (policy.behaviour === 'returns-nothing') return undefined;
      if (policy.behaviour === 'returns-promise') return Promise.resolve(allowed);
      if (policy.behaviour === 'names-other-grant') return { ...allowed, matchedGrantId: 'g-of-nobody' };
      const rule = (policy.deny ?? []).find(
        ({ namespace, under, actions, grantIds, actors }) =>
          (namespace === undefined || namespace === request.resource.namespace) &&
          (under === undefined || isAtOrBelow(request.resource.path, under)) &&
          (actions === undefined || actions.includes(request.action)) &&
          (grantIds === undefined || grantIds.includes(allowed.matchedGrantId as string)) &&
          (actors === undefined || actors.some((actor) => sameAddress(actor, context.actor))),
      );
      if (rule === undefined) return allowed;
      const reasonCode = policy.behaviour === 'foreign-code' ? 'no_matching_grant' : 'host_policy_denied';
      return { allowed: false, reasonCode, ...(rule.metadata === undefined ? {} : { metadata: rule.metadata }) };
    };
  }

  async perform(step: Step): Promise<Observed> {
    this.audit = [];
    const received = await this.answer(step);
    const request = (received['requiredAuthority'] ?? received['request']) as CapabilityRequest | undefined | null;
    const hash = this.audit.findLast(({ authorityHash }) => authorityHash !== undefined)?.authorityHash;
    return { received, audit: this.audit, hash, requestId: request?.id };
  }

  private async answer(step: Step): Promise<Bag> {
    const input = step.input ?? {};
    const context = this.contextOf(step);
    switch (step.op) {
      case 'authorize':
      case 'discover':
        return this.decideOn(step, context, input);
      case 'resolveAuthority':
        return reported(this.load(context));
      case 'reach': {
        const { authority } = this.held(step, context);
        if (!authority.ok) return { status: 'unavailable', reasonCode: 'authority_unavailable' };
        return {
          ...(await this.run(computeReach(authority.value, { now: instantOf(context.now) ?? NaN, verify: this.verifier }), this.ports)),
        };
      }
      case 'derive':
        return this.derive(input);
      case 'validateChain': {
        const presented = parseGrant(this.stored(input['grantId']));
        if (!presented.ok) throw new Error('the case presents no grant');
        const verdict = await this.run(validateChain(presented.value, { context, admittedAt: this.now, now: this.now }), this.ports);
        return { ...verdict, ...('grantId' in verdict ? { atGrant: verdict.grantId } : {}) };
      }
      case 'constraintViolation':
        return {
          value: constraintEnvelopeViolation(input['inner'] as CapabilityConstraints, input['outer'] as CapabilityConstraints) ?? null,
        };
      case 'constraintMeet':
        return { value: tightestConstraints(input['sets'] as CapabilityConstraints[]) ?? null };
      case 'capabilityWithin':
        return {
          value: capabilityIsWithin(input['capability'] as Capability, input['ancestor'] as Capability, {
            owner: input['owner'] as Address,
          }),
        };
      case 'mintRequest': {
        const minted = mintCapabilityRequest(context, input);
        return { request: minted.ok ? minted.value : null };
      }
      case 'setClock':
        this.clock = input['to'] as string;
        return {};
      case 'revoke':
        this.stored(input['grantId'])['revokedAt'] = input['at'] ?? this.clock;
        return {};
      case 'remove':
        this.grants = this.grants.filter((grant) => grant['id'] !== input['grantId']);
        return {};
      case 'issue':
        this.grants.push(input['grant'] as Bag);
        return {};
      case 'openTurn': {
        const held = this.load(context);
        this.turns.set(input['turn'] as string, held);
        return reported(held);
      }
      case 'closeTurn':
        this.turns.delete(input['turn'] as string);
        return {};
      case 'setOutage':
        if (input['down'] === true) this.outages.add(input['port'] as string);
        else this.outages.delete(input['port'] as string);
        return {};
      case 'setPolicy':
        this.policy = { ...(this.policy as Policy), ...input };
        return {};
      default:
        throw new Error(`no such step: ${step.op}`);
    }
  }

  private held(step: Step, context: AccessContext): Held {
    if (step.turn === undefined) return this.load(context);
    const held = this.turns.get(step.turn);
    if (held === undefined) throw new Error('the case names no open turn');
    return held;
  }

  private stored(id: unknown): Bag {
    const grant = [...this.grants, ...this.parents].find((candidate) => candidate['id'] === id);
    if (grant === undefined) throw new Error(`the case has no grant ${String(id)}`);
    return grant;
  }

  private derive({ parentId, request, store }: Bag): Bag {
    const derived = deriveGrant(this.stored(parentId) as unknown as CapabilityGrant, request as DeriveRequest);
    if (!derived.ok) return { ok: false, reason: derived.error.code };
    if (store === true) this.grants.push(structuredClone(derived.value));
    return { ok: true, grant: derived.value };
  }

  private get verifier(): ((grant: CapabilityGrant) => boolean) | undefined {
    const rules = this.world['grantVerifier'] as { rejects?: string[]; throwsOn?: string[] } | undefined;
    if (rules === undefined) return undefined;
    return ({ id }) => {
      if (rules.throwsOn?.includes(id) === true) throw new Error('the verifier fell');
      return rules.rejects?.includes(id) !== true;
    };
  }

  private async decideOn(step: Step, context: AccessContext, { resource, action, consume }: Bag): Promise<Bag> {
    const { authority } = this.held(step, context);
    const request = { resource, action } as CapabilityRequirement;
    const mode = step.op === 'discover' ? 'discover' : 'execute';
    const options = {
      now: instantOf(context.now) ?? NaN,
      consume: consume === true,
      mode,
      verify: this.verifier,
      ceiling: this.ceiling,
    } as const;
    const decided: Decided = authority.ok
      ? await this.run(decide(authority.value, request, options), this.ports)
      : decidedWithoutAuthority(authority.error);
    const authorityHash = authority.ok ? authority.value.snapshot.hash : undefined;
    const mark = { id: `audit-${this.audit.length}`, at: this.now, context };
    this.audit.push(authorizationChecked(mark, { request, decided, consume: options.consume, authorityHash }));
    return { ...decided.decision };
  }
}

/** A wanted object matches if each key it lists is there and matches; a wanted list must have the same length. */
const matches = (wanted: unknown, found: unknown): boolean => {
  if (Array.isArray(wanted))
    return Array.isArray(found) && wanted.length === found.length && wanted.every((item, index) => matches(item, found[index]));
  if (typeof wanted !== 'object' || wanted === null) return wanted === found;
  return typeof found === 'object' && found !== null && Object.entries(wanted).every(([key, value]) => matches(value, (found as Bag)[key]));
};

const OWN_FIELDS = new Set(['type', 'outcome', 'reason', 'grantId', 'operationId', 'tool']);
const recordMatches = (pattern: Bag, event: AuditEvent): boolean =>
  Object.entries(pattern).every(([key, wanted]) => {
    if (key === 'authorityCode') return event.metadata?.['authority'] === wanted;
    return matches(wanted, OWN_FIELDS.has(key) ? (event as unknown as Bag)[key] : event.metadata?.[key]);
  });

const sortedReach = (reach: unknown): unknown =>
  (reach as { namespace: string; path: string[]; scope: string; actions: string[] }[])
    .map(({ namespace, path, scope, actions }) => JSON.stringify([namespace, path, scope, [...new Set(actions)].sort()]))
    .sort();

/** What is wrong with an expectation, field by field. An unknown field is itself wrong: a check that is not made must not pass. */
const violations = (wanted: Bag, step: string, seen: ReadonlyMap<string, Observed>, stage: Stage): string[] => {
  const { received, audit, hash, requestId } = seen.get(step) as Observed;
  const other = (id: unknown): Observed => seen.get(id as string) as Observed;
  const said = JSON.stringify('reasonCode' in received && 'allowed' in received ? publicDecision(received as never) : received);
  const holds = (field: string, want: unknown): boolean => {
    switch (field) {
      case 'step':
      case 'note':
        return true;
      case 'allowed':
      case 'reasonCode':
      case 'status':
      case 'code':
      case 'atGrant':
      case 'ok':
      case 'reason':
        return received[field] === want;
      case 'value':
        return sameJson(received['value'], want);
      case 'grantId':
        return received['matchedGrantId'] === want;
      case 'grantIdIn':
        return (want as unknown[]).includes(received['matchedGrantId']);
      case 'metadata':
      case 'grant':
      case 'request':
      case 'detail':
      case 'chain':
        return matches(want, received[field]);
      case 'metadataLacks':
        return (want as string[]).every((key) => (received['metadata'] as Bag | undefined)?.[key] === undefined);
      case 'requiredAuthority': {
        const described = received['requiredAuthority'];
        if (want === 'absent') return described === undefined;
        return want === 'present' ? described !== undefined : matches(want, described);
      }
      case 'reach':
        return sameJson(sortedReach(received['reach']), sortedReach(want));
      case 'sameReachAs':
        return sameJson(received['reach'], other(want).received['reach']);
      case 'textLacks':
        return (want as string[]).every((text) => !said.includes(text));
      case 'sameAuthorityAs':
        return hash !== undefined && hash === other(want).hash;
      case 'differentAuthorityFrom':
        return hash !== undefined && hash !== other(want).hash;
      case 'sameRequestIdAs':
        return requestId !== undefined && requestId === other(want).requestId;
      case 'differentRequestIdFrom':
        return requestId !== undefined && requestId !== other(want).requestId;
      case 'usage':
        return Object.entries(want as Record<string, number>).every(([id, count]) => (stage.usage.get(stage.counter(id)) ?? 0) === count);
      case 'grantLoads':
      case 'policyLoads':
      case 'ceilingCalls':
        return stage.counts[field] === want;
      case 'audit': {
        const { has = [], lacks = [], counts = {}, ...unknown } = want as { has?: Bag[]; lacks?: Bag[]; counts?: Record<string, number> };
        return (
          Object.keys(unknown).length === 0 &&
          has.every((pattern) => audit.some((event) => recordMatches(pattern, event))) &&
          !lacks.some((pattern) => audit.some((event) => recordMatches(pattern, event))) &&
          Object.entries(counts).every(([type, count]) => audit.filter((event) => event.type === type).length === count)
        );
      }
      case 'auditIdsDifferFrom':
        return true; // Ids are the runner's own here: the rules are given theirs.
      default:
        throw new Error(`this runner does not know the field ${field}`);
    }
  };
  return Object.entries(wanted)
    .filter(([field, want]) => !holds(field, want))
    .map(([field, want]) => `${step}.${field}: wanted ${JSON.stringify(want)}, came ${JSON.stringify({ received, audit })}`);
};

const DRIVERS = {
  decideSync: <T>(rule: Asking<T>, world: World): T => decideSync(rule, world),
  decideWith: <T>(rule: Asking<T>, world: World): Promise<T> => decideWith(rule, world),
};

describe.each(Object.entries(DRIVERS))('the conformance cases that ask for rules alone, driven by %s', (_, run) => {
  it.each(cases.filter(isOurs).map((one) => [one.id, one.title, one] as const))(
    '%s: %s',
    async (_id, _title, { world, steps, expect: wanted }) => {
      const stage = new Stage(structuredClone(world), run);
      const seen = new Map<string, Observed>();
      const wrong: string[] = [];
      for (const step of steps) {
        seen.set(step.id, await stage.perform(step));
        for (const { step: id, anyOf, ...fields } of wanted.filter(({ step: id }) => id === step.id)) {
          const alternatives = (anyOf as Bag[] | undefined) ?? [fields];
          const faults = alternatives.map((alternative) =>
            'throws' in alternative ? ['throws'] : violations(alternative, id, seen, stage),
          );
          if (!faults.some((found) => found.length === 0)) wrong.push(...faults.flat());
        }
      }
      expect(wrong).toEqual([]);
    },
  );
});

describe('the runner', () => {
  it('runs most of the cases of the rule files', () => expect(cases.filter(isOurs).length).toBeGreaterThanOrEqual(130));
  afterAll(() => {
    const left = cases.filter((one) => !isOurs(one)).map(({ id }) => id);
    console.log(`kernel conformance: ${cases.length - left.length} cases run, ${left.length} left to test/conformance: ${left.join(' ')}`);
  });
});
