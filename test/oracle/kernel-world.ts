import { type CapabilityGrant, type CapabilityRequirement, instantOf } from '@sharedos/contracts';
import {
  type AncestorAnswer,
  type AuthorityFailure,
  CompiledAuthority,
  type Decided,
  type HostCeiling,
  type UseAnswer,
  type World,
  computeReach,
  decide,
  decideSync,
  decidedWithoutAuthority,
  loadAuthority,
  parseGrant,
} from '@sharedos/kernel';
import type { Question, SmallCeiling, SmallWorld } from './small-world.ts';

/** The ports of a small world as the kernel asks them. `used` and `taken` move as uses are taken. */
export const portsOf = (world: SmallWorld): { readonly ports: World; readonly taken: string[] } => {
  const taken: string[] = [];
  const left = new Map(Object.entries(world.used));
  const use = ({ grantId, max, consume }: { grantId: string; max: number; consume: boolean }): UseAnswer => {
    if (world.usage === 'failing') return 'unavailable';
    const seen = left.get(grantId) ?? 0;
    if (seen >= max) return 'exhausted';
    if (consume) {
      left.set(grantId, seen + 1);
      taken.push(grantId);
    }
    return 'granted';
  };
  const ancestor = ({ namespaceId, grantId }: { namespaceId: string; grantId: string }): AncestorAnswer => {
    if (world.resolver === 'failing') return 'failed';
    if (world.resolver === 'lying') return found(LIE);
    const match = world.stored.find(({ id, namespaceId: of }) => id === grantId && (world.resolver === 'leaky' || of === namespaceId));
    return match === undefined ? 'not_found' : found(match);
  };
  const { verifierRejects, revokedNow } = world;
  const ports: World = {
    ...(world.usage === 'missing' ? {} : { use }),
    ...(world.resolver === 'missing' ? {} : { ancestor }),
    ...(verifierRejects === undefined ? {} : { verify: ({ grant }) => (verifierRejects.includes(grant.id) ? 'rejected' : 'verified') }),
    ...(revokedNow === undefined
      ? {}
      : { revocation: () => (revokedNow === 'unreadable' ? 'unavailable' : { revision: 'r@1', revokedGrantIds: revokedNow }) }),
  };
  return { ports, taken };
};

const LIE: CapabilityGrant = {
  id: 'another',
  namespaceId: 'w1',
  subject: { kind: 'human', userId: 'a' },
  issuer: { kind: 'human', userId: 'b' },
  capabilities: [{ resource: { namespace: 'files', path: [] }, actions: ['*'], scope: 'descendants' }],
  constraints: { delegationDepth: 9 },
  issuedAt: '2026-01-01T00:00:00Z',
};

const found = (grant: CapabilityGrant): AncestorAnswer => {
  const parsed = parseGrant(grant);
  return parsed.ok ? { found: parsed.value } : 'failed';
};

/** A ceiling that answers by grant id, and where it breaks, in one of the ways there are. */
const ceilingOf = ({ refuses, breaks }: SmallCeiling): HostCeiling => ({
  narrow: (allowed) => {
    const { matchedGrantId } = allowed;
    if (breaks.includes(matchedGrantId)) return BROKEN[matchedGrantId.charCodeAt(1) % BROKEN.length]?.() as typeof allowed;
    if (refuses.includes(matchedGrantId)) return { allowed: false, reasonCode: 'host_policy_denied', metadata: { rule: matchedGrantId } };
    return allowed;
  },
});
const BROKEN: readonly (() => unknown)[] = [
  () => undefined,
  () => Promise.resolve({ allowed: true }),
  () => ({ allowed: true, reasonCode: 'allowed', matchedGrantId: 'another' }),
  () => {
    throw new Error('the ceiling fell');
  },
];

const policyOf = ({ policy }: SmallCeiling) =>
  policy === 'absent'
    ? {}
    : { policy: policy === 'loaded' ? ({ status: 'loaded', policy: {}, version: '1' } as const) : ({ status: 'unavailable' } as const) };

const held = (world: SmallWorld) =>
  loadAuthority(world.context, world.held, {
    grantLimit: world.grantLimit,
    ...(world.ceiling === undefined ? {} : policyOf(world.ceiling)),
  });

const optionsOf = (world: SmallWorld) => ({
  now: instantOf(world.now) ?? NaN,
  ancestorsMax: world.ancestorsMax,
  checks: { verifier: world.verifierRejects !== undefined, liveRevocation: world.revokedNow !== undefined },
});

export interface KernelAnswer {
  readonly decided: Decided;
  /** Grants of which a use was taken from the store, in order. */
  readonly taken: readonly string[];
  readonly unloaded?: string;
}

/** What the kernel decides in a small world. `ports` may be handed in to see several decisions in one world. */
export const kernelDecide = (
  world: SmallWorld,
  request: CapabilityRequirement,
  question: Question,
  { ports, taken } = portsOf(world),
): KernelAnswer => {
  const loaded = held(world);
  if (!loaded.ok) return unloaded(loaded.error, taken);
  return { decided: decideSync(decide(loaded.value, request, askedOf(world, question)), ports), taken };
};

/**
 * The same of one authority that is compiled for the whole world and asked over and over, its ancestors pinned: what it keeps
 * from one question must not show in the answer to the next. Every question finds the uses as the world has them.
 */
export const compiledDecide = (world: SmallWorld): ((request: CapabilityRequirement, question: Question) => KernelAnswer) => {
  const loaded = held(world);
  if (!loaded.ok) return () => unloaded(loaded.error, []);
  const compiled = new CompiledAuthority(loaded.value, { ancestorsPinned: true, ancestorsMax: world.ancestorsMax });
  return (request, question) => {
    const { ports, taken } = portsOf(world);
    return { decided: decideSync(compiled.decide(request, askedOf(world, question)), ports), taken };
  };
};

const askedOf = (world: SmallWorld, question: Question) => ({
  ...optionsOf(world),
  ...question,
  ...(world.ceiling === undefined ? {} : { ceiling: ceilingOf(world.ceiling) }),
});

const unloaded = (failure: AuthorityFailure, taken: readonly string[]): KernelAnswer => {
  const { code, detail } = failure;
  return {
    decided: decidedWithoutAuthority(failure),
    taken,
    unloaded: detail === undefined ? code : `${code} ${detail.grantId} ${detail.reason}`,
  };
};

export const kernelReach = (world: SmallWorld) => {
  const loaded = held(world);
  if (!loaded.ok) return { status: 'unavailable', reasonCode: 'authority_unavailable' } as const;
  return decideSync(computeReach(loaded.value, optionsOf(world)), portsOf(world).ports);
};

export const loadedAuthority = held;
export const hostCeilingOf = ceilingOf;
export const kernelOptions = optionsOf;
