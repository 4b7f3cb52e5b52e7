import { type AccessContext, type CapabilityRequirement, JsonObj } from '@sharedos/contracts';
import type { HostPolicy, PolicyResolution } from './authority.ts';

/**
 * The host's own ceiling over what grants allow. Synchronous, and it only narrows: it returns the decision it was given, or
 * refuses it. It sees copies, and the value of the policy source untouched.
 */
export interface HostCeiling<Policy = HostPolicy> {
  narrow(decision: AllowedDecision, request: CapabilityRequirement, context: AccessContext, policy: Policy | undefined): HostCeilingVerdict;
  /**
   * Whether `narrow` would return every decision of this request as it was given, whichever grant it names. A ceiling that does not
   * look at the grant says so here, and what it lets pass is decided without asking it for each grant. It is given the originals:
   * it keeps and changes nothing.
   */
  passesAny?(request: CapabilityRequirement, context: AccessContext, policy: Policy | undefined): boolean;
}

/** The one decision a ceiling can be handed: a denial cannot reach it, so none can be turned into an allow. */
export interface AllowedDecision {
  readonly allowed: true;
  readonly reasonCode: 'allowed';
  readonly matchedGrantId: string;
  readonly metadata?: JsonObj;
}

/** The one denial a ceiling can author. Whatever code it carries at run time, this is the one that is reported. */
export interface HostPolicyDenial {
  readonly allowed: false;
  readonly reasonCode: 'host_policy_denied';
  readonly metadata?: JsonObj;
}

export type HostCeilingVerdict = AllowedDecision | HostPolicyDenial;

export type CeilingAnswer =
  | { readonly status: 'passed' }
  | { readonly status: 'denied'; readonly metadata?: JsonObj }
  /** `thrown` is for the host's log; it reaches no caller and no record. */
  | { readonly status: 'unavailable'; readonly thrown?: unknown };

/**
 * Asks the ceiling about one grant that would allow. Whatever cannot be read as an answer is no answer.
 *
 * @see spec/authorization.md §8
 */
export const askCeiling = (
  ceiling: HostCeiling,
  policy: PolicyResolution | undefined,
  matchedGrantId: string,
  request: CapabilityRequirement,
  context: AccessContext,
): CeilingAnswer => {
  if (policy?.status === 'unavailable') return { status: 'unavailable' };
  const allowed: AllowedDecision = { allowed: true, reasonCode: 'allowed', matchedGrantId };
  try {
    return read(ceiling.narrow(allowed, structuredClone(request), structuredClone(context), policy?.policy), matchedGrantId);
  } catch (thrown) {
    return { status: 'unavailable', thrown };
  }
};

/** Whether a ceiling says beforehand that it leaves a request alone. Whatever goes wrong is left for {@link askCeiling} to find. */
export const passesCeiling = (
  ceiling: HostCeiling,
  policy: PolicyResolution | undefined,
  request: CapabilityRequirement,
  context: AccessContext,
): boolean => {
  if (ceiling.passesAny === undefined || policy?.status === 'unavailable') return false;
  try {
    return ceiling.passesAny(request, context, policy?.policy) === true;
  } catch {
    return false;
  }
};

const read = (answer: unknown, matchedGrantId: string): CeilingAnswer => {
  if (typeof answer !== 'object' || answer === null) return { status: 'unavailable' };
  const { allowed, matchedGrantId: named, metadata } = answer as Record<string, unknown>;
  if (allowed === true) return named === matchedGrantId ? { status: 'passed' } : { status: 'unavailable' };
  if (allowed !== false) return { status: 'unavailable' };
  // A refusal may explain itself but not choose its code: that is the kernel's to say.
  const explained = JsonObj.safeParse(metadata);
  return { status: 'denied', ...(explained.success ? { metadata: structuredClone(explained.data) } : {}) };
};
