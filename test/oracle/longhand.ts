import type { CapabilityGrant, CapabilityRequirement } from '@sharedos/contracts';
import { addressText, clock, readContext, readGrant, readRequirement } from './longhand-reading.ts';
import type { Question, SmallWorld } from './small-world.ts';

// The decision rule of spec/authorization.md once more, as its text has it: grants are judged one by one and in full, and only then
// is an answer picked. It is slow and shares no code with the kernel, so that a fault in the kernel cannot be a fault here too.

export interface LonghandVerdict {
  readonly code: string;
  /** The grant that allowed, or that the ceiling overrode. */
  readonly grantId?: string | undefined;
  readonly rejections: readonly { readonly grantId: string; readonly reason: string }[];
  readonly delegation?: ChainFault['at'];
  readonly missing?: 'usageStore' | 'delegationResolver';
  /** The grant of which a use is taken. */
  readonly spends?: string | undefined;
  /** Whether the caller is told what would have been enough. */
  readonly describesNeed: boolean;
  /** Why authority was not loaded, where it was not. */
  readonly unloaded?: string;
}

interface ChainFault {
  readonly is: 'unverified' | 'invalid';
  readonly at: { readonly code: string; readonly grantId: string };
}

/** What one grant says, taken alone. `stop` ends the walk; so does `allows`. */
type Finding =
  | { readonly is: 'allows'; readonly grantId: string; readonly bounded: boolean }
  | { readonly is: 'stop'; readonly code: string; readonly missing?: 'usageStore' }
  | { readonly is: 'overridden'; readonly grantId: string }
  | { readonly is: 'rejected'; readonly grantId: string; readonly reason: string; readonly fault?: ChainFault };

export const longhandDecide = (world: SmallWorld, asked: CapabilityRequirement, { mode, consume }: Question): LonghandVerdict => {
  const loaded = longhandLoad(world);
  if (typeof loaded === 'string') return { code: 'authority_unavailable', rejections: [], describesNeed: false, unloaded: loaded };

  const context = readContext(world.context);
  if (context === undefined || Number.isNaN(clock(world.now))) return plain('invalid_context');
  const request = readRequirement(asked);
  if (request === undefined) return plain('invalid_request');
  if (request.resource.owner !== undefined && addressText(request.resource.owner) !== addressText(context.owner))
    return plain('invalid_request');

  const all = loaded.map((grant) => finding(world, grant, request, mode));
  const last = all.findIndex(({ is }) => is === 'allows' || is === 'stop');
  const walked = last === -1 ? all : all.slice(0, last + 1);
  const rejected = walked.filter((each) => each.is === 'rejected');
  const rejections = rejected.map(({ grantId, reason }) => ({ grantId, reason }));

  const ending = walked.at(-1);
  if (ending?.is === 'allows') {
    const spends = ending.bounded && consume && mode === 'execute' ? ending.grantId : undefined;
    return { code: 'allowed', grantId: ending.grantId, rejections, spends, describesNeed: false };
  }
  if (ending?.is === 'stop') {
    const { code, missing } = ending;
    return { code, rejections, describesNeed: false, ...(missing === undefined ? {} : { missing }) };
  }

  const faults = rejected.flatMap(({ fault }) => (fault === undefined ? [] : [fault]));
  const unverified = faults.find(({ is }) => is === 'unverified');
  if (unverified !== undefined) {
    const missing = unverified.at.code === 'resolver_unavailable' ? { missing: 'delegationResolver' as const } : {};
    return { code: 'delegation_chain_unverified', rejections, delegation: unverified.at, describesNeed: false, ...missing };
  }
  const invalid = faults[0];
  if (invalid !== undefined) return { code: 'delegation_chain_invalid', rejections, delegation: invalid.at, describesNeed: false };
  const overridden = walked.find((each) => each.is === 'overridden');
  if (overridden !== undefined) return { code: 'host_policy_denied', grantId: overridden.grantId, rejections, describesNeed: false };
  if (rejected.some(({ reason }) => reason === 'exhausted')) return { code: 'grant_exhausted', rejections, describesNeed: false };
  return { code: 'no_matching_grant', rejections, describesNeed: mode === 'execute' };
};

const plain = (code: string): LonghandVerdict => ({ code, rejections: [], describesNeed: false });

/** The grants held, or why they cannot be trusted. */
export const longhandLoad = (world: SmallWorld): readonly CapabilityGrant[] | string => {
  if (!Array.isArray(world.held)) return 'invalid_grant_material';
  if (world.held.length > world.grantLimit) return 'grant_limit_exceeded';
  const grants: CapabilityGrant[] = [];
  for (const entry of world.held as unknown[]) {
    const grant = readGrant(entry);
    if (grant === undefined) return 'invalid_grant_material';
    if (grants.some(({ id }) => id === grant.id)) return 'invalid_grant_material';
    const { namespaceId, actor, authority } = readContext(world.context) ?? world.context;
    if (grant.namespaceId !== namespaceId) return `grant_scope_mismatch ${grant.id} namespace`;
    if (addressText(grant.subject) !== addressText(actor)) return `grant_scope_mismatch ${grant.id} subject`;
    if (addressText(grant.issuer) !== addressText(authority)) return `grant_scope_mismatch ${grant.id} issuer`;
    grants.push(grant);
  }
  return grants;
};

const finding = (world: SmallWorld, grant: CapabilityGrant, request: CapabilityRequirement, mode: Question['mode']): Finding => {
  const { id } = grant;
  const rejected = (reason: string): Finding => ({ is: 'rejected', grantId: id, reason });
  const unfit = unfitness(world, grant);
  if (unfit !== undefined) return rejected(unfit);
  const matches = grant.capabilities.some((capability) => covers(world, capability, request, mode));
  if (!matches) return rejected('capability');
  const live = chainNow(world, grant);
  if (live === 'unreadable') return { is: 'stop', code: 'authority_unavailable' };
  if (live === 'revoked') return rejected('window');
  if (live !== 'sound') return { is: 'rejected', grantId: id, reason: 'delegation', fault: live };
  if (world.ceiling !== undefined) {
    const { policy, refuses, breaks } = world.ceiling;
    if (policy === 'unavailable' || breaks.includes(id)) return { is: 'stop', code: 'host_policy_unavailable' };
    if (refuses.includes(id)) return { is: 'overridden', grantId: id };
  }
  const left = usesLeft(world, grant);
  if (left === 'missing') return { is: 'stop', code: 'usage_store_unavailable', missing: 'usageStore' };
  if (left === 'failing') return { is: 'stop', code: 'usage_store_unavailable' };
  if (left === 0) return rejected('exhausted');
  return { is: 'allows', grantId: id, bounded: grant.constraints.maxUses !== undefined };
};

const unfitness = (world: SmallWorld, grant: CapabilityGrant): string | undefined => {
  if (!isOpen(world, grant)) return 'window';
  if (!serves(grant, world.context.purpose.trim())) return 'purpose';
  if (world.verifierRejects?.includes(grant.id) === true) return 'verifier';
  return undefined;
};

/** Every reason to be closed, and none of them may hold. Only an expiry is looked at with the later clock. */
const isOpen = (world: SmallWorld, { issuedAt, revokedAt, constraints }: CapabilityGrant): boolean => {
  const [admitted, operation] = [clock(world.context.now), clock(world.now)];
  const latest = Math.max(admitted, operation);
  const notYetIssued = clock(issuedAt) > admitted;
  const notYetBegun = constraints.notBefore !== undefined && clock(constraints.notBefore) > admitted;
  const over = constraints.expiresAt !== undefined && clock(constraints.expiresAt) <= latest;
  const gone = revokedAt !== undefined && clock(revokedAt) <= admitted;
  return ![notYetIssued, notYetBegun, over, gone].includes(true);
};

const serves = ({ constraints: { purposes } }: CapabilityGrant, purpose: string): boolean =>
  purposes === undefined || purposes.some((each) => each === purpose);

const usesLeft = (world: SmallWorld, { id, constraints: { maxUses } }: CapabilityGrant): number | 'missing' | 'failing' => {
  if (maxUses === undefined) return Infinity;
  if (world.usage !== 'sound') return world.usage;
  return Math.max(0, maxUses - (world.used[id] ?? 0));
};

// ── what a capability covers

type Capability = CapabilityGrant['capabilities'][number];

const trail = (path: readonly string[]): string => `/${path.map((segment) => `${segment}/`).join('')}`;
const startsAt = (longer: readonly string[], shorter: readonly string[]): boolean => trail(longer).startsWith(trail(shorter));
const ownerIn = (world: SmallWorld, { owner }: { readonly owner?: Capability['resource']['owner'] }): string =>
  addressText(owner ?? world.context.owner);

const covers = (world: SmallWorld, capability: Capability, request: CapabilityRequirement, mode: Question['mode']): boolean => {
  const mine = capability.resource;
  const theirs = request.resource;
  if (mine.namespace !== theirs.namespace) return false;
  if (!capability.actions.some((action) => action === '*' || action === request.action)) return false;
  if (ownerIn(world, mine) !== ownerIn(world, theirs)) return false;
  const [exact, below] = [trail(mine.path) === trail(theirs.path), startsAt(theirs.path, mine.path)];
  if (mode === 'execute') return capability.scope === 'exact' ? exact : below;
  return startsAt(mine.path, theirs.path) || (capability.scope === 'descendants' && below);
};

const isInside = (world: SmallWorld, inner: Capability, outer: Capability): boolean => {
  if (inner.resource.namespace !== outer.resource.namespace) return false;
  if (ownerIn(world, inner.resource) !== ownerIn(world, outer.resource)) return false;
  const heldActions = new Set(outer.actions);
  if (!heldActions.has('*') && inner.actions.some((action) => !heldActions.has(action))) return false;
  if (outer.scope === 'descendants') return startsAt(inner.resource.path, outer.resource.path);
  return inner.scope === 'exact' && trail(inner.resource.path) === trail(outer.resource.path);
};

// ── the chain above a grant

const chainNow = (world: SmallWorld, grant: CapabilityGrant): 'sound' | 'revoked' | 'unreadable' | ChainFault => {
  const above: string[] = [];
  const fault = chainFault(world, grant, grant.id, above);
  if (fault !== undefined) return fault;
  const { revokedNow } = world;
  if (revokedNow === undefined) return 'sound';
  if (revokedNow === 'unreadable') return 'unreadable';
  if (revokedNow.includes(grant.id)) return 'revoked';
  const ancestor = above.find((id) => revokedNow.includes(id));
  return ancestor === undefined ? 'sound' : { is: 'invalid', at: { code: 'parent_inactive', grantId: ancestor } };
};

const chainFault = (world: SmallWorld, child: CapabilityGrant, first: string, above: string[]): ChainFault | undefined => {
  const wanted = child.parentGrantId;
  if (wanted === undefined) return undefined;
  const unverified = (code: string): ChainFault => ({ is: 'unverified', at: { code, grantId: child.id } });
  if (world.resolver === 'missing') return unverified('resolver_unavailable');
  if (above.length >= world.ancestorsMax) return { is: 'invalid', at: { code: 'chain_too_long', grantId: child.id } };
  if (world.resolver === 'failing' || world.resolver === 'lying') return unverified('resolver_failed');
  const answer = world.stored.find(
    ({ id, namespaceId }) => id === wanted && (world.resolver === 'leaky' || namespaceId === child.namespaceId),
  );
  if (answer === undefined) return unverified('parent_not_found');
  const parent = readGrant(answer);
  if (parent === undefined) return unverified('resolver_failed');
  const code = [first, ...above].includes(wanted) ? 'chain_cycle' : linkFault(world, child, parent);
  if (code !== undefined) return { is: 'invalid', at: { code, grantId: wanted } };
  above.push(wanted);
  return chainFault(world, parent, first, above);
};

const linkFault = (world: SmallWorld, child: CapabilityGrant, parent: CapabilityGrant): string | undefined => {
  const parentDepth = parent.constraints.delegationDepth;
  const childDepth = child.constraints.delegationDepth ?? 0;
  const broken: readonly (readonly [code: string, isBroken: boolean])[] = [
    ['namespace_mismatch', parent.namespaceId !== child.namespaceId],
    ['issuer_not_parent_subject', addressText(parent.subject) !== addressText(child.issuer)],
    ['parent_inactive', !isOpen(world, parent) || !serves(parent, world.context.purpose.trim())],
    ['delegation_not_permitted', parentDepth === undefined || parentDepth === 0],
    ['delegation_depth_exceeded', childDepth >= (parentDepth ?? 0)],
    ['bounded_parent_not_delegable', parent.constraints.maxUses !== undefined],
    ['capability_widened', child.capabilities.some((mine) => parent.capabilities.every((theirs) => !isInside(world, mine, theirs)))],
    ['constraints_widened', isWidened(child, parent)],
  ];
  return broken.find(([, isBroken]) => isBroken)?.[0];
};

const isWidened = (child: CapabilityGrant, parent: CapabilityGrant): boolean => {
  const [mine, theirs] = [child.constraints, parent.constraints];
  if (clock(child.issuedAt) < clock(parent.issuedAt)) return true;
  if (theirs.notBefore !== undefined && clock(mine.notBefore ?? child.issuedAt) < clock(theirs.notBefore)) return true;
  if (theirs.expiresAt !== undefined && (mine.expiresAt === undefined || clock(mine.expiresAt) > clock(theirs.expiresAt))) return true;
  const { purposes } = theirs;
  return purposes !== undefined && (mine.purposes === undefined || mine.purposes.some((purpose) => !purposes.includes(purpose)));
};

// ── reach

export interface LonghandReach {
  readonly unavailable?: string;
  readonly entries: readonly LonghandEntry[];
}

export interface LonghandEntry {
  readonly namespace: string;
  readonly path: readonly string[];
  readonly scope: 'exact' | 'descendants';
  readonly actions: readonly string[];
}

/** Where loaded authority works now: all of it or, when a budget or revocation cannot be read, nothing. */
export const longhandReach = (world: SmallWorld): LonghandReach => {
  const loaded = longhandLoad(world);
  if (typeof loaded === 'string') return { unavailable: 'authority_unavailable', entries: [] };
  const context = readContext(world.context);
  if (context === undefined || Number.isNaN(clock(world.now))) return { entries: [] };
  const entries = new Map<string, LonghandEntry>();
  for (const grant of loaded) {
    if (unfitness(world, grant) !== undefined) continue;
    const live = chainNow(world, grant);
    if (live === 'unreadable') return { unavailable: 'authority_unavailable', entries: [] };
    if (live !== 'sound') continue;
    const left = usesLeft(world, grant);
    if (typeof left === 'string') return { unavailable: 'usage_store_unavailable', entries: [] };
    if (left === 0) continue;
    for (const { resource, actions, scope } of grant.capabilities) {
      if (ownerIn(world, resource) !== addressText(context.owner)) continue;
      const entry = { namespace: resource.namespace, path: resource.path, scope, actions: [...new Set(actions)].toSorted() };
      entries.set(entryText(entry), entry);
    }
  }
  return { entries: [...entries.keys()].toSorted().map((key) => entries.get(key) as LonghandEntry) };
};

const entryText = ({ namespace, path, scope, actions }: LonghandEntry): string => JSON.stringify([namespace, path, scope, actions]);

/** Whether an entry of reach covers a request, over the owner of the context. */
export const reachCovers = (entry: LonghandEntry, { resource, action }: CapabilityRequirement): boolean =>
  entry.namespace === resource.namespace &&
  (entry.actions.includes('*') || entry.actions.includes(action)) &&
  (entry.scope === 'exact' ? trail(entry.path) === trail(resource.path) : startsAt(resource.path, entry.path));
