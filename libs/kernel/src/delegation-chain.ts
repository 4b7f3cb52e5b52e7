import type { AccessContext, CapabilityGrant, Instant } from '@sharedos/contracts';
import { type AncestorAnswer, type AncestorAsk, decideWith } from './asking.ts';
import { ANCESTORS_MAX, type ChainInvalidCode, type ChainUnverifiedCode, type ChainVerdict, validateChain } from './chain.ts';
import { ContractError } from './contract-errors.ts';
import { parseGrant } from './parsed-grant.ts';

/** The longest chain of ancestors that is walked before failing closed. */
export const DEFAULT_MAX_DELEGATION_CHAIN_LENGTH = ANCESTORS_MAX;

/** The trusted lookup of ancestors: inside the namespace asked for alone, and it throws rather than answer with what may be stale. */
export interface DelegationChainResolver {
  resolve(namespaceId: string, grantId: string): Promise<CapabilityGrant | undefined>;
}

export type DelegationViolationCode = ChainInvalidCode;
export type DelegationUnverifiedCode = ChainUnverifiedCode;
export type DelegationValidation = ChainVerdict;

export interface DelegationValidationOptions {
  readonly resolver?: DelegationChainResolver;
  readonly maxChainLength?: number;
  /** The instant the turn's authority was resolved at; `now` when absent, and then the whole chain is judged at one instant. */
  readonly admittedAt?: Instant;
}

/**
 * Validates the ancestors of one grant. A root grant is valid here: its own window and purpose are another check.
 *
 * @param now Milliseconds since the epoch.
 * @throws ContractError when what is presented is no grant.
 * @see spec/authorization.md §9.2
 */
export const validateDelegationChain = async (
  grant: CapabilityGrant,
  context: AccessContext,
  now: Instant,
  options: DelegationValidationOptions = {},
): Promise<DelegationValidation> => {
  const { resolver, maxChainLength, admittedAt = now } = options;
  const presented = parseGrant(grant);
  if (!presented.ok) throw new ContractError('not a valid grant');
  const world = resolver === undefined ? {} : { ancestor: ancestorsFrom(resolver) };
  return decideWith(validateChain(presented.value, { context, admittedAt, now }, maxChainLength), world);
};

/** A host's resolver as the rules ask it: what it throws, and what it returns that is no grant, is a failure. */
export const ancestorsFrom =
  (resolver: DelegationChainResolver) =>
  async ({ namespaceId, grantId }: AncestorAsk): Promise<AncestorAnswer> => {
    try {
      const material = await resolver.resolve(namespaceId, grantId);
      if (material === undefined || material === null) return 'not_found';
      const found = parseGrant(material);
      return found.ok ? { found: found.value } : 'failed';
    } catch {
      return 'failed';
    }
  };
