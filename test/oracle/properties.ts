import { deepStrictEqual, ok } from 'node:assert';
import type { AuthorizationDecision, CapabilityConstraints, CapabilityGrant, CapabilityRequirement } from '@sharedos/contracts';
import { type DeriveGrantRequest, decideSync, decideToolCall, deriveGrant, publicDecision } from '@sharedos/kernel';
import type { Draw } from './draw.ts';
import { drawCapability, drawCase, drawConstraints, drawRequest, drawRequestNear, drawWorld } from './draw-world.ts';
import {
  type KernelAnswer,
  compiledDecide,
  hostCeilingOf,
  kernelDecide,
  kernelOptions,
  kernelReach,
  loadedAuthority,
  portsOf,
} from './kernel-world.ts';
import { type LonghandVerdict, longhandDecide, longhandLoad, longhandReach, reachCovers } from './longhand.ts';
import { readRequirement } from './longhand-reading.ts';
import type { Question, SmallWorld } from './small-world.ts';

/**
 * A rule that holds in every small world. `check` draws a world, throws where the rule does not hold in it, and says which
 * premises it met: one that is never met was never tried, and fails the run.
 */
export interface Property {
  readonly name: string;
  readonly premises: readonly string[];
  check(draw: Draw, met: (premise: string) => void): void;
}

const EXECUTE: Question = { mode: 'execute', consume: false };
const CONSUME: Question = { mode: 'execute', consume: true };
const DISCOVER: Question = { mode: 'discover', consume: false };
const QUESTIONS: readonly Question[] = [EXECUTE, CONSUME, DISCOVER, { mode: 'discover', consume: true }];

/** "We could not find out": the answers that end a walk at once, whatever another grant would have said. */
const COULD_NOT_FIND_OUT = ['authority_unavailable', 'usage_store_unavailable', 'host_policy_unavailable'];

const codeOf = (world: SmallWorld, request: CapabilityRequirement, question: Question): string =>
  kernelDecide(world, request, question).decided.decision.reasonCode;

/** An answer of the kernel in the terms of the longhand rule. */
const saidBy = ({ decided: { decision, explanation, usageTaken }, taken, unloaded }: KernelAnswer) => ({
  code: decision.reasonCode,
  allowed: decision.allowed,
  grantId: decision.matchedGrantId,
  rejections: explanation?.rejections ?? [],
  delegation: decision.metadata?.['delegation'],
  missing: explanation?.missingDependency,
  taken,
  said: usageTaken?.grantId,
  describesNeed: decision.requiredAuthority !== undefined,
  unloaded,
});

const whatMustBeSaid = ({ code, grantId, rejections, delegation, missing, spends, describesNeed, unloaded }: LonghandVerdict) => ({
  code,
  allowed: code === 'allowed',
  grantId,
  rejections,
  delegation,
  missing,
  taken: spends === undefined ? [] : [spends],
  said: spends,
  describesNeed,
  unloaded,
});

const agreement: Property = {
  name: 'the kernel answers as the longhand rule does, compiled or not',
  premises: [
    ...['allowed', 'invalid_context', 'invalid_request', 'no_matching_grant', 'grant_exhausted', 'delegation_chain_invalid'],
    ...['delegation_chain_unverified', 'usage_store_unavailable', 'host_policy_denied', 'host_policy_unavailable', 'authority_unavailable'],
    ...['window', 'purpose', 'verifier', 'capability', 'delegation', 'exhausted'].map((reason) => `rejected: ${reason}`),
    ...['chain_too_long', 'chain_cycle', 'namespace_mismatch', 'issuer_not_parent_subject', 'parent_inactive', 'capability_widened'],
    ...['delegation_not_permitted', 'delegation_depth_exceeded', 'bounded_parent_not_delegable', 'constraints_widened'],
    ...['resolver_unavailable', 'resolver_failed', 'parent_not_found'],
    ...['invalid_grant_material', 'grant_limit_exceeded', 'grant_scope_mismatch'],
    ...['a use is taken', 'allowed through a chain', 'allowed at the foot of a tower', 'allowed past a rejected grant'],
    ...['a usage store is missing', 'a resolver is missing'],
  ],
  check: (draw, met) => {
    const { world, requests } = drawCase(draw);
    const compiled = compiledDecide(world);
    for (const request of requests) {
      for (const question of QUESTIONS) {
        const expected = longhandDecide(world, request, question);
        for (const answer of [kernelDecide(world, request, question), compiled(request, question)])
          deepStrictEqual(saidBy(answer), whatMustBeSaid(expected));
        met(expected.code);
        for (const { reason } of expected.rejections) met(`rejected: ${reason}`);
        if (expected.delegation !== undefined) met(expected.delegation.code);
        if (expected.unloaded !== undefined) met(expected.unloaded.split(' ')[0] as string);
        if (expected.spends !== undefined) met('a use is taken');
        if (expected.missing === 'usageStore') met('a usage store is missing');
        if (expected.missing === 'delegationResolver') met('a resolver is missing');
        if (expected.code === 'allowed') {
          const matched = (world.held as CapabilityGrant[]).find(({ id }) => id.trim() === expected.grantId);
          if (expected.rejections.length > 0) met('allowed past a rejected grant');
          if (matched?.parentGrantId !== undefined) met('allowed through a chain');
          if (matched?.parentGrantId === 'r1' && world.stored.some(({ id }) => id === 'r16')) met('allowed at the foot of a tower');
        }
      }
    }
  },
};

const derivedWithinParent: Property = {
  name: 'what was derived never allows more than its parent',
  premises: ['derived', 'derived again', 'allowed', 'allowed two below', 'refused at issue', 'would have been allowed wider'],
  check: (draw, met) => {
    const root: CapabilityGrant = {
      id: 'root',
      namespaceId: 'w1',
      subject: HOLDERS[0],
      issuer: { kind: 'service', serviceId: 'root' },
      capabilities: [drawCapability(draw), drawCapability(draw)],
      constraints: { ...(draw.rarely(2) ? drawConstraints(draw) : {}), delegationDepth: 1 + draw.below(2) },
      issuedAt: '2026-03-01T08:00:00Z',
    };
    const line = [root];
    for (let place = 1; place <= 2; place += 1) {
      const parent = line[place - 1] as CapabilityGrant;
      const derived = deriveGrant(parent, drawDerivation(draw, parent, place));
      if (!derived.ok) {
        met('refused at issue');
        break;
      }
      line.push(derived.grant);
      met(place === 1 ? 'derived' : 'derived again');
    }
    if (line.length < 2) return;
    const leaf = line.at(-1) as CapabilityGrant;
    const { context, now, used } = drawWorld(draw);
    for (let each = 0; each < 3; each += 1) {
      const request = drawRequestNear(draw, [leaf, root]);
      const asHolderOf = (grant: CapabilityGrant): SmallWorld => ({
        context: { ...context, actor: grant.subject, authority: grant.issuer },
        now,
        held: [grant],
        grantLimit: 256,
        stored: line,
        resolver: 'sound',
        ancestorsMax: 16,
        usage: 'sound',
        used,
      });
      const allowed = kernelDecide(asHolderOf(leaf), request, EXECUTE).decided.decision.allowed;
      const everyAncestor = line.slice(0, -1).map((grant) => longhandDecide(asHolderOf(grant), request, EXECUTE).code);
      if (allowed) {
        met(line.length === 2 ? 'allowed' : 'allowed two below');
        deepStrictEqual(
          everyAncestor,
          everyAncestor.map(() => 'allowed'),
        );
      } else if (everyAncestor.includes('allowed')) met('would have been allowed wider');
    }
  },
};

const HOLDERS = [
  { kind: 'human', userId: 'a' },
  { kind: 'agent', agentId: 'a' },
  { kind: 'agent', agentId: 'b' },
] as const;

/** Half of the time what the parent has, so that enough can be derived at all. */
const drawDerivation = (draw: Draw, parent: CapabilityGrant, place: number): DeriveGrantRequest => {
  const held = draw.one(parent.capabilities);
  const narrowed = { ...held, resource: { ...held.resource, path: [...held.resource.path, 'x'] } };
  const constraints: CapabilityConstraints = draw.rarely(3) ? drawConstraints(draw) : {};
  return {
    id: `derived-${place}`,
    subject: HOLDERS[place] as (typeof HOLDERS)[number],
    capabilities: draw.one([[held], [held], [narrowed], [narrowed], [held, drawCapability(draw)], [drawCapability(draw)], []]),
    issuedAt: draw.rarely(8) ? draw.one(['2026-03-01T07:59:59Z', '2026-03-01T10:00:00Z']) : '2026-03-01T08:00:00Z',
    constraints,
  };
};

const heldOf = (world: SmallWorld): readonly CapabilityGrant[] | undefined => {
  const loaded = longhandLoad(world);
  return typeof loaded === 'string' ? undefined : loaded;
};

const orderOfUnrelated: Property = {
  name: 'the order of unrelated grants never changes allow or deny',
  premises: [
    'in another order: allowed',
    'in another order: denied',
    'an unrelated grant moved past an outage',
    'an unrelated grant left out',
  ],
  check: (draw, met) => {
    const { world, requests } = drawCase(draw);
    const held = heldOf(world);
    if (held === undefined) return;
    const shuffled = held.map((grant) => ({ grant, place: draw.below(256) })).toSorted((a, b) => a.place - b.place);
    const inAnotherOrder: SmallWorld = { ...world, held: shuffled.map(({ grant }) => grant) };
    for (const request of requests) {
      const { decision, explanation } = kernelDecide(world, request, EXECUTE).decided;
      const reordered = codeOf(inAnotherOrder, request, EXECUTE);
      // An outage ends the walk where it stands, so only there can the order of two usable grants be seen.
      if (![decision.reasonCode, reordered].some((code) => COULD_NOT_FIND_OUT.includes(code))) {
        deepStrictEqual(reordered, decision.reasonCode);
        met(`in another order: ${decision.allowed ? 'allowed' : 'denied'}`);
      }
      const unrelated = explanation?.rejections.find(({ reason }) => ['window', 'purpose', 'capability'].includes(reason));
      if (unrelated === undefined || Array.isArray(world.revokedNow)) continue;
      const others: readonly CapabilityGrant[] = held.filter(({ id }) => id !== unrelated.grantId);
      const moved: readonly CapabilityGrant[] = [...others, ...held.filter(({ id }) => id === unrelated.grantId)];
      for (const changed of [moved, others]) {
        const other: AuthorizationDecision = kernelDecide({ ...world, held: changed }, request, EXECUTE).decided.decision;
        deepStrictEqual(publicDecision(other), publicDecision(decision));
      }
      met('an unrelated grant left out');
      if (COULD_NOT_FIND_OUT.includes(decision.reasonCode)) met('an unrelated grant moved past an outage');
    }
  },
};

/** In order, and written alike, so that their texts sort as they do. */
const INSTANTS = ['09:00:00.000', '10:00:00.000', '10:00:00.001', '10:04:59.999', '10:05:00.000', '10:05:00.001', '23:59:59.999'].map(
  (time) => `2026-03-01T${time}Z`,
);

const expiryOnlyTakesAway: Property = {
  name: 'a later operation instant only takes away',
  premises: ['allowed at both', 'expired in between'],
  check: (draw, met) => {
    const { world, requests } = drawCase(draw);
    const held = heldOf(world);
    if (held === undefined) return;
    const [earlier, later] = [draw.one(INSTANTS), draw.one(INSTANTS)].toSorted();
    for (const request of requests) {
      const at = (now: string | undefined, grants: readonly CapabilityGrant[] = held) =>
        kernelDecide({ ...world, held: grants, now: now as string }, request, EXECUTE).decided.decision;
      const [before, after] = [at(earlier), at(later)];
      if (after.allowed) {
        // The grant that allows later would, alone, have allowed earlier too.
        ok(
          at(
            earlier,
            held.filter(({ id }) => id === after.matchedGrantId),
          ).allowed,
        );
        ok(before.allowed || COULD_NOT_FIND_OUT.includes(before.reasonCode), before.reasonCode);
        met('allowed at both');
      } else if (before.allowed) met('expired in between');
      // A clock that goes back behind admission changes nothing.
      deepStrictEqual(at('2026-03-01T09:00:00Z'), at(world.context.now));
    }
  },
};

const discoveryHidesNothing: Property = {
  name: 'discovery never hides what execution would allow for some argument',
  premises: ['seen and allowed', 'seen, and this call denied', 'hidden, and this call denied', 'hidden by an outage'],
  check: (draw, met) => {
    const drawn = drawWorld(draw);
    const world: SmallWorld = draw.rarely(3) ? { ...drawn, usage: 'failing' } : drawn;
    const near = drawRequestNear(draw, heldOf(world) ?? []);
    // Often the whole namespace, as tools declare it: then several grants can be seen through one ceiling.
    const ceiling = draw.rarely(2) ? { ...near, resource: { ...near.resource, path: [] } } : near;
    const below = draw.one([[], ['x'], ['cell-3'], ['cell-30'], near.resource.path]);
    const { owner } = world.context;
    const path = [...ceiling.resource.path, ...below];
    // A tool has one owner: what its ceiling leaves out a call may name, and never another.
    const stated = ceiling.resource.owner === undefined && draw.rarely(4) ? { owner } : {};
    const call: CapabilityRequirement = { action: ceiling.action, resource: { ...ceiling.resource, path, ...stated } };
    const seen = codeOf(world, ceiling, DISCOVER);
    const allowed = codeOf(world, call, EXECUTE) === 'allowed';
    if (seen === 'allowed') return met(allowed ? 'seen and allowed' : 'seen, and this call denied');
    if (!allowed) return met('hidden, and this call denied');
    ok(COULD_NOT_FIND_OUT.includes(seen), `hidden by ${seen}, and yet allowed`);
    return met('hidden by an outage');
  },
};

const reachIsWhatDecideAllows: Property = {
  name: 'reach is exactly what a decision allows',
  premises: ['covered and allowed', 'not covered and denied', 'unavailable', 'an entry probed below its path'],
  check: (draw, met) => {
    const { ceiling: _, ...world } = drawWorld(draw);
    const reach = kernelReach(world);
    const expected = longhandReach(world);
    if (reach.status === 'unavailable') {
      deepStrictEqual(reach.reasonCode, expected.unavailable);
      return met('unavailable');
    }
    deepStrictEqual(
      reach.reach.map(({ namespace, path, scope, actions }) => ({ namespace, path, scope, actions })),
      [...expected.entries],
    );
    const probes: CapabilityRequirement[] = [drawRequest(draw), drawRequest(draw), drawRequest(draw)];
    for (const { namespace, path, scope, actions } of reach.reach) {
      const action = actions[0] as string;
      probes.push({ resource: { namespace, path: [...path] }, action }, { resource: { namespace, path: [...path, 'below'] }, action });
      if (scope === 'descendants') met('an entry probed below its path');
    }
    for (const request of probes) {
      const code = codeOf(world, request, EXECUTE);
      if (code === 'invalid_request' || code === 'invalid_context') continue;
      const trimmed = readRequirement(request);
      const covered = trimmed !== undefined && expected.entries.some((entry) => reachCovers(entry, trimmed));
      deepStrictEqual(code === 'allowed', covered, `${code}, and reach says ${covered}`);
      met(covered ? 'covered and allowed' : 'not covered and denied');
    }
  },
};

const consumingOnce: Property = {
  name: 'a consuming decision takes exactly one use of exactly one grant, and nothing else takes any',
  premises: [
    'taken',
    'the last one taken, then exhausted',
    'allowed without a bound',
    'denied and nothing taken',
    'seen and nothing taken',
  ],
  check: (draw, met) => {
    const { world, requests } = drawCase(draw);
    const [request] = requests as [CapabilityRequirement];
    const store = portsOf(world);
    for (const question of [EXECUTE, DISCOVER, { mode: 'discover', consume: true } as const]) {
      const { decision } = kernelDecide(world, request, question, store).decided;
      deepStrictEqual(store.taken, [], 'only a consuming execution takes');
      if (decision.allowed) met('seen and nothing taken');
    }
    let taken = 0;
    for (let turn = 0; turn < 6; turn += 1) {
      const { decided } = kernelDecide(world, request, CONSUME, store);
      const now = store.taken.length - taken;
      const { allowed, matchedGrantId, reasonCode } = decided.decision;
      const bounded = allowed && heldOf(world)?.find(({ id }) => id === matchedGrantId)?.constraints.maxUses !== undefined;
      deepStrictEqual(now, bounded ? 1 : 0);
      deepStrictEqual(decided.usageTaken?.grantId, bounded ? matchedGrantId : undefined);
      if (bounded) deepStrictEqual(store.taken.at(-1), matchedGrantId);
      if (!allowed) met('denied and nothing taken');
      else met(bounded ? 'taken' : 'allowed without a bound');
      if (reasonCode === 'grant_exhausted' && taken > 0) met('the last one taken, then exhausted');
      taken = store.taken.length;
    }
    for (const { id, constraints } of heldOf(world) ?? []) {
      const uses = store.taken.filter((each) => each === id).length;
      ok(uses <= Math.max(0, (constraints.maxUses ?? 0) - (world.used[id] ?? 0)), `${id} was taken ${uses} times`);
    }
  },
};

/** All that may be said of a denial: it follows from what was asked and the code, and from nothing else in the world. */
const denialsDiscloseNothing: Property = {
  name: "a denial discloses nothing that differs between 'absent' and 'not yours'",
  premises: [
    'nothing held, and not covered',
    'held elsewhere, and not covered',
    'a chain broke',
    'another code',
    'a tool hidden in many ways',
  ],
  check: (draw, met) => {
    const { world, requests } = drawCase(draw);
    for (const request of requests) {
      const { decision } = kernelDecide(world, request, EXECUTE).decided;
      if (decision.allowed) continue;
      const shown = publicDecision(decision);
      const { reasonCode } = decision;
      if (reasonCode === 'no_matching_grant') {
        // Nobody holds anything: the most absent that a resource can be.
        const nothing = kernelDecide({ ...world, held: [] }, request, EXECUTE).decided.decision;
        deepStrictEqual(JSON.stringify(shown), JSON.stringify(publicDecision(nothing)));
        met(Array.isArray(world.held) && world.held.length > 0 ? 'held elsewhere, and not covered' : 'nothing held, and not covered');
      } else if (reasonCode.startsWith('delegation_chain_')) {
        const { code } = longhandDecide(world, request, EXECUTE).delegation as { code: string };
        deepStrictEqual(shown, { allowed: false, reasonCode, metadata: { delegation: { code } } });
        met('a chain broke');
      } else {
        deepStrictEqual(shown, { allowed: false, reasonCode });
        met('another code');
      }
    }
    hiddenToolSaysNothing(world, requests as [CapabilityRequirement, CapabilityRequirement], met);
  },
};

const hiddenToolSaysNothing = (
  world: SmallWorld,
  [ceiling, exact]: readonly [CapabilityRequirement, CapabilityRequirement],
  met: (premise: string) => void,
): void => {
  const loaded = loadedAuthority(world);
  if (!loaded.ok) return;
  const hostCeiling = world.ceiling === undefined ? {} : { hostCeiling: hostCeilingOf(world.ceiling) };
  const question = { ceiling, exact: { requirement: exact }, ...kernelOptions(world), ...hostCeiling };
  const call = decideSync(decideToolCall(loaded.value, question), portsOf(world).ports);
  if (codeOf(world, ceiling, DISCOVER) === 'allowed') return;
  deepStrictEqual([call.status, call.code, call.resource, call.grantId], ['denied', 'tool_unavailable', undefined, undefined]);
  met('a tool hidden in many ways');
};

const needIsEnough: Property = {
  name: 'what a denial says would have been needed is enough, and is no more than what was asked',
  premises: ['granted as described', 'a neighbour stays denied'],
  check: (draw, met) => {
    const { world, requests } = drawCase(draw);
    const [request, neighbour] = requests as [CapabilityRequirement, CapabilityRequirement];
    const needed = kernelDecide(world, request, EXECUTE).decided.decision.requiredAuthority;
    if (needed === undefined) return;
    const { namespaceId, actor, authority } = world.context;
    const asDescribed: CapabilityGrant = {
      id: 'as-described',
      namespaceId,
      subject: actor,
      issuer: authority,
      capabilities: needed.capabilities,
      constraints: { purposes: [needed.purpose] },
      issuedAt: world.context.now,
    };
    const { ceiling: _, verifierRejects: __, revokedNow: ___, ...rest } = world;
    const granted: SmallWorld = { ...rest, held: [asDescribed] };
    deepStrictEqual(codeOf(granted, request, EXECUTE), 'allowed');
    met('granted as described');
    if (codeOf(granted, neighbour, EXECUTE) !== 'allowed') met('a neighbour stays denied');
    else ok(sameTarget(request, neighbour), 'more was described than was asked');
  },
};

const sameTarget = (a: CapabilityRequirement, b: CapabilityRequirement): boolean =>
  a.resource.namespace.trim() === b.resource.namespace.trim() &&
  JSON.stringify(a.resource.path) === JSON.stringify(b.resource.path) &&
  // A described `*` covers every action, because it was asked for.
  (a.action.trim() === b.action.trim() || a.action === '*');

export const PROPERTIES: readonly Property[] = [
  agreement,
  derivedWithinParent,
  orderOfUnrelated,
  expiryOnlyTakesAway,
  discoveryHidesNothing,
  reachIsWhatDecideAllows,
  consumingOnce,
  denialsDiscloseNothing,
  needIsEnough,
];
