import type { JsonObj, PolicyState, Stop, StopTarget } from '@sharedos/contracts';
import type { PolicyResolution } from './authority.ts';
import type { HostCeiling } from './ceiling.ts';
import type { CompiledPolicy, Forbidden, PolicyLanguage } from './policy-language.ts';
import { isOperatorsResource } from './rules-policy.ts';

/** The policy of a namespace at one revision, ready to be asked: its stops and its document. */
export interface PolicyInForce {
  readonly version: string;
  readonly forbids: CompiledPolicy;
}

/**
 * Makes a recorded policy ready. One that is in no language known here, or means nothing in it, is unavailable: what it would
 * forbid is not known, so nothing is allowed under it.
 */
export const policyInForce = (state: PolicyState, languages: readonly PolicyLanguage[]): PolicyResolution<PolicyInForce> => {
  const compiled = languages.find((language) => language.speaks(state.document.language))?.compile(state.document);
  if (compiled?.ok !== true) return { status: 'unavailable' };
  const document = compiled.value;
  const stopped = stopsOf(state.stops);
  const version = String(state.version);
  return {
    status: 'loaded',
    version,
    policy: { version, forbids: (request, context) => stopped(request, context) ?? document(request, context) },
  };
};

/** The name by which a stop shows in records. */
export const stopName = (target: StopTarget): string =>
  target.kind === 'namespace' ? 'stop namespace' : `stop agent ${target.agent.agentId}`;

const stopsOf = (stops: readonly Stop[]): CompiledPolicy => {
  const agents = new Map<string, Forbidden>();
  let namespace: Forbidden | undefined;
  for (const { target, reason } of stops) {
    const forbidden: Forbidden = { rule: stopName(target).slice(0, 256), reason };
    if (target.kind === 'namespace') namespace = forbidden;
    else agents.set(target.agent.agentId, forbidden);
  }
  return (request, { actor }) =>
    (actor.kind === 'agent' ? agents.get(actor.agentId) : undefined) ??
    (namespace !== undefined && !isOperatorsResource(request) ? namespace : undefined);
};

/**
 * The ceiling that holds decisions to the policy in force. What it says does not depend on the grant, so a request that the policy
 * does not forbid is decided without asking again for each grant.
 */
export const policyCeiling: HostCeiling<PolicyInForce> = {
  narrow: (decision, request, context, policy) => {
    if (policy === undefined) throw new TypeError('the policy of the turn was not loaded');
    const forbidden = policy.forbids(request, context);
    return forbidden === undefined
      ? decision
      : { allowed: false, reasonCode: 'host_policy_denied', metadata: explained(forbidden, policy) };
  },
  passesAny: (request, context, policy) => policy !== undefined && policy.forbids(request, context) === undefined,
};

const explained = ({ rule, reason, details }: Forbidden, { version }: PolicyInForce): JsonObj => ({
  hostPolicyVersion: version,
  rule,
  ...(reason === undefined ? {} : { ruleReason: reason }),
  ...(details === undefined ? {} : { ruleDetails: details }),
});
