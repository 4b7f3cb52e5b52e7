import {
  type Instant,
  type ReachResult,
  type ResourceReach,
  type ToolDefinition,
  byCodeUnit,
  canonicalJson,
  sameAddress,
} from '@sharedos/contracts';
import { type Asking, askUse, useOf } from './asking.ts';
import type { HeldAuthority } from './authority.ts';
import { type ChainFrame, budgetsOfChain } from './chain.ts';
import { type DecideOptions, currentChain, unfitness, verifierRejection } from './decide.ts';

/**
 * Where an authority operates now. It describes and never authorizes: nothing is spent, and neither the host's ceiling nor tool
 * namespaces apply. A grant that would not work is simply absent, but a budget that cannot be read makes the whole answer
 * unavailable: half an answer would read as a whole one.
 *
 * @see spec/authorization.md §10
 */
export function* computeReach(
  authority: HeldAuthority,
  { now, checks, ancestorsMax }: { readonly now: Instant } & Pick<DecideOptions, 'checks' | 'ancestorsMax'>,
): Asking<ReachResult> {
  const { context, admittedAt, grants, sharedBudgets } = authority;
  if (admittedAt === undefined || !Number.isFinite(now)) return { status: 'computed', reach: [] };
  const frame: ChainFrame = { context, admittedAt, now, sharedBudgets };
  const entries = new Map<string, ResourceReach>();
  for (const held of grants) {
    const unfit = unfitness(held, frame, context) ?? (yield* verifierRejection(held, context, checks));
    if (unfit !== undefined) continue;
    const live = yield* currentChain(held, frame, context, { checks, ancestorsMax });
    if (live === 'unavailable') return { status: 'unavailable', reasonCode: 'authority_unavailable' };
    if (live.chain === 'revoked' || live.chain.status !== 'valid') continue;
    const { capabilities } = held.grant;
    const [budget, ...above] = budgetsOfChain(held.grant, live.chain);
    if (budget !== undefined) {
      const use = yield* askUse({ namespaceId: context.namespaceId, ...useOf([budget, ...above]), consume: false });
      if (use === 'unavailable' || use === 'missing_port') return { status: 'unavailable', reasonCode: 'usage_store_unavailable' };
      if (use === 'exhausted') continue;
    }
    for (const { resource, actions, scope } of capabilities) {
      if (!sameAddress(resource.owner ?? context.owner, context.owner)) continue;
      const entry = { namespace: resource.namespace, path: [...resource.path], actions: [...new Set(actions)].sort(byCodeUnit), scope };
      entries.set(canonicalJson([entry.namespace, entry.path, entry.scope, entry.actions]), entry);
    }
  }
  const reach = [...entries].sort(([a], [b]) => byCodeUnit(a, b)).map(([, entry]) => entry);
  return { status: 'computed', reach };
}

/** Reach narrowed to the resource namespaces that some offered tool operates on; what a turn's runtime is shown. */
export const reachThroughTools = (
  reach: readonly ResourceReach[],
  tools: readonly Pick<ToolDefinition, 'requiredCapability'>[],
): readonly ResourceReach[] => {
  const namespaces = new Set(tools.map(({ requiredCapability }) => requiredCapability.resource.namespace));
  return reach.filter(({ namespace }) => namespaces.has(namespace));
};
