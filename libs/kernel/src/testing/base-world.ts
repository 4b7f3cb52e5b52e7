import {
  type AccessContext,
  type AgentAddress,
  type Address,
  type Capability,
  type CapabilityConstraints,
  type CapabilityGrant,
  type CapabilityRequirement,
  instantOf,
} from '@sharedos/contracts';
import { type World, decideSync } from '../asking.ts';
import { type LoadOptions, type ResolvedAuthority, loadAuthority } from '../authority.ts';
import { invariant } from '../decider.ts';
import { type Decided, type DecideOptions, decide } from '../decide.ts';
import { type ParsedGrant, parseGrant } from '../parsed-grant.ts';

// The base world of the worked examples: spec/authorization.md §14. Alice grants Bob, an agent, reading below Work.

export const alice: Address = { kind: 'human', userId: 'alice' };
export const carol: Address = { kind: 'human', userId: 'carol' };
export const bob: AgentAddress = { kind: 'agent', agentId: 'bob' };
export const dave: AgentAddress = { kind: 'agent', agentId: 'dave' };

export const at = (time: string): string => `2026-01-01T${time}Z`;
export const instant = (time: string): number => {
  const read = instantOf(at(time));
  invariant(read !== undefined, `${time} is a time of day`);
  return read;
};
export const NOW = instant('10:00:00.000');

export const context = (changes: Partial<AccessContext> = {}): AccessContext => ({
  namespaceId: 'w1',
  actor: bob,
  authority: alice,
  owner: alice,
  purpose: 'p1',
  traceId: 'trace-1',
  enabledToolNamespaces: [],
  now: at('10:00:00.000'),
  ...changes,
});

export const capability = (
  path: readonly string[],
  changes: Partial<Omit<Capability, 'resource'>> & { owner?: Address; namespace?: string } = {},
): Capability => {
  const { owner, namespace = 'files', ...rest } = changes;
  return {
    resource: { namespace, path: [...path], ...(owner === undefined ? {} : { owner }) },
    actions: ['read'],
    scope: 'descendants',
    ...rest,
  };
};

export const grantOf = (id = 'g', changes: Partial<CapabilityGrant> & CapabilityConstraints = {}): CapabilityGrant => {
  const { purposes, notBefore, expiresAt, maxUses, delegationDepth, ...rest } = changes;
  const constraints = Object.fromEntries(
    Object.entries({ purposes, notBefore, expiresAt, maxUses, delegationDepth }).filter(([, bound]) => bound !== undefined),
  ) as CapabilityConstraints;
  return {
    id,
    namespaceId: 'w1',
    subject: bob,
    issuer: alice,
    capabilities: [capability(['Work'])],
    constraints,
    issuedAt: at('09:00:00'),
    ...rest,
  };
};

export const read = (
  path: readonly string[],
  changes: { action?: string; namespace?: string; owner?: Address } = {},
): CapabilityRequirement => {
  const { action = 'read', namespace = 'files', owner } = changes;
  return { resource: { namespace, path: [...path], ...(owner === undefined ? {} : { owner }) }, action };
};

export const parsedGrant = (grant: CapabilityGrant): ParsedGrant => {
  const parsed = parseGrant(grant);
  invariant(parsed.ok, `${grant.id} meets the grant contract`);
  return parsed.value;
};

export const authorityOf = (
  grants: readonly CapabilityGrant[],
  inContext: AccessContext = context(),
  options: LoadOptions = {},
): ResolvedAuthority => {
  const loaded = loadAuthority(inContext, grants, options);
  invariant(loaded.ok, 'the grants of this test can be loaded');
  return loaded.value;
};

/** A store of uses and ancestors. Everything asked is kept, in order. */
export const worldOf = ({ ancestors = [], uses = {} }: { ancestors?: readonly CapabilityGrant[]; uses?: Record<string, number> } = {}) => {
  const counters = new Map(Object.entries(uses));
  const asked: string[] = [];
  const world = {
    use: ({ grantId, max, consume }) => {
      asked.push(`${consume ? 'take' : 'peek'} ${grantId}`);
      const seen = counters.get(grantId) ?? 0;
      if (seen >= max) return 'exhausted';
      if (consume) counters.set(grantId, seen + 1);
      return 'granted';
    },
    ancestor: ({ namespaceId, grantId }) => {
      asked.push(`ancestor ${grantId}`);
      const found = ancestors.find((grant) => grant.id === grantId && grant.namespaceId === namespaceId);
      return found === undefined ? 'not_found' : { found: parsedGrant(found) };
    },
  } satisfies World;
  return { world, asked, used: (grantId: string): number => counters.get(grantId) ?? 0 };
};

export const EXECUTE: DecideOptions = { now: NOW, consume: false, mode: 'execute' };
export const CONSUME: DecideOptions = { ...EXECUTE, consume: true };
export const DISCOVER: DecideOptions = { ...EXECUTE, mode: 'discover' };

export const decided = (
  grants: readonly CapabilityGrant[],
  request: CapabilityRequirement,
  options: Partial<DecideOptions> & { context?: AccessContext; load?: LoadOptions; world?: World } = {},
): Decided => {
  const { context: inContext, load, world = worldOf().world, ...rest } = options;
  return decideSync(decide(authorityOf(grants, inContext, load), request, { ...EXECUTE, ...rest }), world);
};

/** The code of a decision, and the grant when it allowed. */
export const answer = (...asked: Parameters<typeof decided>): string => {
  const { allowed, reasonCode, matchedGrantId } = decided(...asked).decision;
  return allowed ? `allowed ${matchedGrantId}` : reasonCode;
};
