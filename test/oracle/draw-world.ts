import type {
  AccessContext,
  Address,
  Capability,
  CapabilityConstraints,
  CapabilityGrant,
  CapabilityRequirement,
} from '@sharedos/contracts';
import type { Draw } from './draw.ts';
import type { SmallCeiling, SmallWorld } from './small-world.ts';

// Small worlds whose names collide: prefixes (`cell-3`, `cell-30`), one id in several kinds, owners missing on either side, bounds
// exactly on the instant, ids shared by what is held and what is stored.

const agentA: Address = { kind: 'agent', agentId: 'a' };
const humanA: Address = { kind: 'human', userId: 'a' };
const humanB: Address = { kind: 'human', userId: 'b' };
const agentB: Address = { kind: 'agent', agentId: 'b' };
const serviceA: Address = { kind: 'service', serviceId: 'a' };

/** Who passed authority down to whom: each issued to the one before. The first is the actor, the second its authority. */
const LINE: readonly Address[] = [agentA, humanA, humanB, agentB, serviceA];
const inLine = (place: number): Address => LINE[place % LINE.length] as Address;

const DAY = '2026-03-01';
const EARLY = `${DAY}T08:00:00Z`;
const ADMITTED = `${DAY}T10:00:00.000Z`;
const JUST_BEFORE = `${DAY}T09:59:59.999Z`;
const JUST_AFTER = `${DAY}T10:00:00.001Z`;
/** The instant of admission in other words: another offset, and digits that are dropped. */
const ADMITTED_ELSEWHERE = `${DAY}T11:30:00+01:30`;
const ADMITTED_FINER = `${DAY}T10:00:00.0009Z`;
const LATER = `${DAY}T10:05:00Z`;
const JUST_BEFORE_LATER = `${DAY}T10:04:59.999Z`;
const JUST_AFTER_LATER = `${DAY}T10:05:00.001Z`;
const MUCH_LATER = '2026-12-31T23:59:59Z';
const NEVER = '2026-02-29T10:00:00Z';

const NOWS = [ADMITTED, ADMITTED, LATER, LATER, JUST_BEFORE_LATER, JUST_AFTER_LATER, EARLY, ADMITTED_ELSEWHERE];
const STARTS = [EARLY, ADMITTED, ADMITTED_ELSEWHERE, JUST_AFTER, JUST_BEFORE, ADMITTED_FINER, LATER];
const ENDS = [MUCH_LATER, LATER, ADMITTED, ADMITTED_FINER, JUST_AFTER, JUST_AFTER_LATER, JUST_BEFORE_LATER, JUST_BEFORE];

const PATHS: readonly (readonly string[])[] = [['cell-3'], [], ['cell-30'], ['cell-3', 'x'], ['cell-3', 'cell-30'], ['Cell-3']];
const NAMESPACES = ['files', 'files', 'files', 'files', 'files.x'];
const ACTIONS = ['read', 'read', 'read', 'list', 'read:*', '*'];

/** Grants, by default `n` of them, that can collide by id with what is stored. */
const HELD_IDS = ['g1', 'g2', 'g3', 'r1', 'g1'];

export interface DrawnCase {
  readonly world: SmallWorld;
  readonly requests: readonly CapabilityRequirement[];
}

export const drawCase = (draw: Draw): DrawnCase => {
  const { world, grants } = drawWorldOf(draw);
  return { world, requests: [drawRequestNear(draw, grants), drawRequestNear(draw, grants)] };
};

export const drawWorld = (draw: Draw): SmallWorld => drawWorldOf(draw).world;

/** A world, and the grants that its source would have returned had nothing gone wrong. */
const drawWorldOf = (draw: Draw): { readonly world: SmallWorld; readonly grants: readonly CapabilityGrant[] } => {
  const context = drawContext(draw);
  const tower = draw.rarely(12);
  const held = Array.from({ length: 1 + draw.below(4) }, (_, place) => drawHeld(draw, HELD_IDS[place] as string, tower));
  const ids = held.map(({ id }) => id);
  const above = tower ? drawTower(draw) : drawAncestors(draw);
  const used: Record<string, number> = {};
  for (const id of ids) if (draw.rarely(3)) used[id] = 1 + draw.below(2);
  const verifier = draw.rarely(8) ? { verifierRejects: draw.some(ids, 3) } : {};
  const ceiling = draw.rarely(4) ? { ceiling: drawCeiling(draw, ids) } : {};
  const live = draw.rarely(8) ? { revokedNow: drawRevoked(draw, [...ids, 'r1', 'r2']) } : {};
  const world: SmallWorld = {
    context,
    now: draw.rarely(24) ? NEVER : draw.one(NOWS),
    held: spoiled(draw, held),
    grantLimit: draw.rarely(16) ? 2 : 256,
    stored: [...above, ...held],
    resolver: draw.rarely(5) ? draw.one(['missing', 'failing', 'leaky', 'lying', 'leaky']) : 'sound',
    ancestorsMax: tower ? 16 : draw.one([16, 16, 16, 2, 1]),
    usage: draw.rarely(6) ? draw.one(['missing', 'failing']) : 'sound',
    used,
    ...verifier,
    ...ceiling,
    ...live,
  };
  return { world, grants: held };
};

const drawContext = (draw: Draw): AccessContext => {
  const context: AccessContext = {
    namespaceId: 'w1',
    actor: agentA,
    authority: humanA,
    owner: draw.one([humanA, humanA, humanB]),
    purpose: draw.one(['p1', 'p1', 'p1', 'p10', ' p1 ']),
    traceId: 't1',
    enabledToolNamespaces: [],
    now: draw.one([ADMITTED, ADMITTED, ADMITTED_ELSEWHERE]),
  };
  if (!draw.rarely(24)) return context;
  return draw.one<AccessContext>([
    { ...context, now: NEVER },
    { ...context, purpose: ' ' },
    { ...context, traceId: '' },
    { ...context, enabledToolNamespaces: ['a', 'a '] },
  ]);
};

const drawRevoked = (draw: Draw, ids: readonly string[]): readonly string[] | 'unreadable' =>
  draw.rarely(4) ? 'unreadable' : draw.some(ids, 2);

const drawCeiling = (draw: Draw, ids: readonly string[]): SmallCeiling => ({
  policy: draw.one(['absent', 'loaded', 'loaded', 'unavailable']),
  refuses: draw.some(ids, 2),
  breaks: draw.some(ids, 6),
});

export const drawCapability = (draw: Draw, paths: readonly (readonly string[])[] = PATHS): Capability => {
  const owner = draw.one([undefined, undefined, undefined, undefined, undefined, humanA, humanB, agentA]);
  return {
    resource: { namespace: draw.one(NAMESPACES), path: [...draw.one(paths)], ...(owner === undefined ? {} : { owner }) },
    actions: [draw.one(ACTIONS), ...(draw.rarely(3) ? [draw.one(ACTIONS)] : [])],
    scope: draw.one(['descendants', 'descendants', 'exact']),
  };
};

/** Every bound is left out by default, and placed around the instants of the world where it is not. */
export const drawConstraints = (draw: Draw): CapabilityConstraints => {
  const constraints: CapabilityConstraints = {};
  if (draw.rarely(5)) constraints.purposes = draw.one([['p1'], ['p10'], ['p1', 'p10'], ['p10', ' p1']]);
  if (draw.rarely(5)) constraints.notBefore = draw.one(STARTS);
  if (draw.rarely(4)) constraints.expiresAt = draw.one(ENDS);
  if (draw.rarely(3)) constraints.maxUses = 1 + draw.below(2);
  if (draw.rarely(4)) constraints.delegationDepth = draw.below(3);
  return constraints;
};

const drawHeld = (draw: Draw, id: string, tower: boolean): CapabilityGrant => {
  const derived = tower ? !draw.rarely(2) : draw.rarely(3) || draw.rarely(3);
  const grant: CapabilityGrant = {
    id,
    namespaceId: 'w1',
    subject: inLine(0),
    issuer: inLine(1),
    capabilities: tower && draw.rarely(2) ? EVERYTHING : [drawCapability(draw), ...(draw.rarely(3) ? [drawCapability(draw)] : [])],
    constraints: drawConstraints(draw),
    issuedAt: draw.rarely(8) ? draw.one(STARTS) : EARLY,
  };
  if (draw.rarely(10)) grant.revokedAt = draw.one([ADMITTED, JUST_BEFORE, JUST_AFTER, LATER, EARLY]);
  if (derived) {
    grant.parentGrantId = draw.rarely(10) ? draw.one(['g2', 'lost', 'r2']) : id === 'r1' ? 'r2' : 'r1';
    if (draw.rarely(2)) grant.constraints = { delegationDepth: draw.below(2) };
  }
  return grant;
};

/** A line of ancestors that permits everything, spoiled here and there. */
const drawAncestors = (draw: Draw): CapabilityGrant[] => {
  const height = 1 + draw.below(3);
  return Array.from({ length: height }, (_, index) => {
    const place = index + 1;
    const closing = draw.rarely(3) ? draw.one(['g1', 'r1', 'lost']) : undefined;
    const ancestor = permissive(place, place === height ? closing : `r${place + 1}`);
    if (!draw.rarely(3)) return ancestor;
    return draw.one<(grant: CapabilityGrant) => CapabilityGrant>([
      (grant) => grant,
      (grant) => ({ ...grant, constraints: { ...grant.constraints, ...drawConstraints(draw) } }),
      (grant) => ({ ...grant, capabilities: [drawCapability(draw), drawCapability(draw)] }),
      (grant) => ({ ...grant, issuedAt: draw.one(STARTS) }),
      (grant) => ({ ...grant, revokedAt: draw.one([ADMITTED, JUST_AFTER, LATER]) }),
      (grant) => ({ ...grant, subject: agentB }),
      (grant) => ({ ...grant, namespaceId: 'w2' }),
      (grant) => ({ ...grant, namespaceId: 'w2' }),
      ({ constraints: { delegationDepth: _, ...rest }, ...grant }) => ({ ...grant, constraints: rest }),
      (grant) => ({ ...grant, constraints: { ...grant.constraints, delegationDepth: draw.below(3) } }),
      (grant) => ({ ...grant, constraints: { ...grant.constraints, maxUses: 5 } }),
    ])(ancestor);
  });
};

/** Fifteen to seventeen ancestors: around the number that a chain may have. */
const drawTower = (draw: Draw): CapabilityGrant[] => {
  const height = 15 + draw.below(3);
  return Array.from({ length: height }, (_, index) => permissive(index + 1, index + 1 === height ? undefined : `r${index + 2}`));
};

const EVERYTHING: CapabilityGrant['capabilities'] = ['files', 'files.x'].map((namespace) => ({
  resource: { namespace, path: [] },
  actions: ['*'],
  scope: 'descendants',
}));

const permissive = (place: number, parentGrantId: string | undefined): CapabilityGrant => ({
  id: `r${place}`,
  namespaceId: 'w1',
  subject: inLine(place),
  issuer: inLine(place + 1),
  capabilities: EVERYTHING,
  constraints: { delegationDepth: place + 1 },
  issuedAt: '2026-03-01T07:00:00Z',
  ...(parentGrantId === undefined ? {} : { parentGrantId }),
});

/** Now and then, what a grant source must not return. */
const spoiled = (draw: Draw, held: readonly CapabilityGrant[]): unknown => {
  if (!draw.rarely(10)) return held;
  const [first, ...rest] = held as [CapabilityGrant, ...CapabilityGrant[]];
  const place = draw.below(2);
  const put = (grant: unknown): unknown[] => (place === 0 ? [grant, ...rest] : [...rest, grant]);
  return draw.one<() => unknown>([
    () => [],
    () => ({ length: 0 }),
    () => undefined,
    () => [first, ...rest, first],
    () => put({ ...first, namespaceId: 'w2' }),
    () => put({ ...first, subject: humanA }),
    () => put({ ...first, issuer: agentA }),
    () => put({ ...first, extra: 1 }),
    () => put({ ...first, issuedAt: NEVER }),
    () => put({ ...first, revokedAt: '2026-03-01T10:00Z' }),
    () => put({ ...first, parentGrantId: first.id }),
    () => put({ ...first, constraints: { notBefore: LATER, expiresAt: JUST_BEFORE_LATER } }),
    () => put({ ...first, constraints: { notBefore: LATER, expiresAt: LATER } }),
    () => put({ ...first, constraints: { maxUses: 0 } }),
    () => put({ ...first, constraints: { delegationDepth: -1 } }),
    () => put({ ...first, capabilities: [] }),
    () => put({ ...first, capabilities: [{ resource: { namespace: 'files', path: ['..'] }, actions: ['*'], scope: 'descendants' }] }),
    () => put({ ...first, capabilities: [{ resource: { namespace: 'files', path: ['cell-3 '] }, actions: ['*'], scope: 'exact' }] }),
    () => put({ ...first, capabilities: [{ resource: { namespace: ' files ', path: [] }, actions: [' read '], scope: 'descendants' }] }),
    () => put({ ...first, metadata: undefined }),
    () => put(null),
  ])();
};

const REQUEST_PATHS: readonly (readonly string[])[] = [...PATHS, ['cell-3', 'x', 'deep'], ['x']];

export const drawRequest = (draw: Draw): CapabilityRequirement => {
  const owner = draw.one([undefined, undefined, undefined, humanA, humanB]);
  const request: CapabilityRequirement = {
    resource: { namespace: draw.one(NAMESPACES), path: [...draw.one(REQUEST_PATHS)], ...(owner === undefined ? {} : { owner }) },
    action: draw.one(ACTIONS),
  };
  if (!draw.rarely(16)) return request;
  return draw.one<CapabilityRequirement>([
    { ...request, action: ' read ' },
    { ...request, action: '' },
    { ...request, resource: { namespace: ' ', path: [] } },
    { ...request, resource: { namespace: 'files', path: ['..'] } },
    { ...request, resource: { namespace: 'files', path: ['cell-3 '] } },
    { ...request, resource: { namespace: 'files', path: Array.from({ length: 65 }, () => 'd') } },
    { ...request, resource: { namespace: 'files', path: [], owner: agentA } },
  ]);
};

/** Mostly something that one of these grants is about: chance alone would hardly ever ask for what was granted. */
export const drawRequestNear = (draw: Draw, grants: readonly CapabilityGrant[]): CapabilityRequirement => {
  if (grants.length === 0 || draw.rarely(3)) return drawRequest(draw);
  const { resource, actions } = draw.one(draw.one(grants).capabilities);
  const below = draw.one([[], [], ['x'], ['cell-3'], ['cell-30']]);
  const owner = draw.rarely(4) ? { owner: draw.one([humanA, humanB]) } : {};
  return { resource: { namespace: resource.namespace, path: [...resource.path, ...below], ...owner }, action: draw.one(actions) };
};
