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
import { type LoadOptions, type HeldAuthority, loadAuthority } from '../authority.ts';
import type { AllowedDecision, HostCeiling } from '../ceiling.ts';
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
): HeldAuthority => {
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

export const EXECUTE: Omit<DecideOptions, 'ceiling'> = { now: NOW, consume: false, mode: 'execute' };
export const CONSUME: Omit<DecideOptions, 'ceiling'> = { ...EXECUTE, consume: true };
export const DISCOVER: Omit<DecideOptions, 'ceiling'> = { ...EXECUTE, mode: 'discover' };

/** A host's ceiling, in the one function it is: whatever it returns, right or wrong. */
export type Narrow = (decision: AllowedDecision, request: CapabilityRequirement, context: AccessContext, policy?: unknown) => unknown;
export const ceilingOf = (narrow: Narrow): HostCeiling => ({ narrow: narrow as HostCeiling['narrow'] });

export const decided = (
  grants: readonly CapabilityGrant[],
  request: CapabilityRequirement,
  options: Omit<Partial<DecideOptions>, 'ceiling'> & {
    context?: AccessContext;
    load?: LoadOptions;
    world?: World;
    ceiling?: Narrow | undefined;
    verify?: (grant: CapabilityGrant) => boolean;
  } = {},
): Decided => {
  const { context: inContext, load, world = worldOf().world, ceiling, verify, ...rest } = options;
  const rule = decide(authorityOf(grants, inContext, load), request, {
    ...EXECUTE,
    ...(ceiling === undefined ? {} : { ceiling: ceilingOf(ceiling) }),
    ...(verify === undefined ? {} : { checks: { verifier: true } }),
    ...rest,
  });
  return decideSync(rule, verify === undefined ? world : { ...world, verify: ({ grant }) => (verify(grant) ? 'verified' : 'rejected') });
};

/** The code of a decision, and the grant when it allowed. */
export const answer = (...asked: Parameters<typeof decided>): string => {
  const { allowed, reasonCode, matchedGrantId } = decided(...asked).decision;
  return allowed ? `allowed ${matchedGrantId}` : reasonCode;
};
