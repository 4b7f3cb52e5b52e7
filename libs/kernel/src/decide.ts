import {
  type AccessContext,
  type AuthorizationDecision,
  type CapabilityRequirement,
  type Instant,
  type JsonObj,
  sameAddress,
} from '@sharedos/contracts';
import { type Asking, askRevocation, askUse, askVerify, useOf } from './asking.ts';
import type { AuthorityFailure, HeldAuthority } from './authority.ts';
import { type HostCeiling, askCeiling } from './ceiling.ts';
import { type ChainFrame, type ChainVerdict, budgetsOfChain, servesPurpose, validateChain } from './chain.ts';
import { capabilityIntersectsCeiling, capabilityMatches } from './matching.ts';
import type { ParsedGrant } from './parsed-grant.ts';
import { parseRequirement } from './parsed-requirement.ts';
import { requiredAuthorityOf } from './required-authority.ts';
import { isInsideWindow } from './window.ts';

export type AuthorizationReasonCode =
  | 'allowed'
  | 'invalid_context'
  | 'invalid_request'
  | 'no_matching_grant'
  | 'grant_exhausted'
  | 'delegation_chain_invalid'
  | 'delegation_chain_unverified'
  | 'usage_store_unavailable'
  | 'host_policy_denied'
  | 'host_policy_unavailable'
  | 'authority_unavailable';

/** The first test a grant failed, in the order they are made. */
export type GrantRejectionReason =
  | 'issuer'
  | 'subject'
  | 'namespace'
  | 'window'
  | 'purpose'
  | 'verifier'
  | 'capability'
  | 'delegation'
  | 'exhausted';

export interface GrantRejection {
  readonly grantId: string;
  readonly reason: GrantRejectionReason;
}

/** Why, for the host alone: it goes into the record and never to a caller. */
export interface AuthorizationExplanation {
  readonly reasonCode: AuthorizationReasonCode;
  readonly grantsResolved: number;
  readonly rejections: readonly GrantRejection[];
  readonly missingDependency?: 'usageStore' | 'delegationResolver';
}

/** Which further checks the world answers. A check that is not installed is not asked for. */
export interface InstalledChecks {
  readonly verifier?: boolean | undefined;
  readonly liveRevocation?: boolean | undefined;
}

/** One read of live revocation: of which candidate, at which revision of the source, and what of its chain was revoked. */
export interface RevocationCheck {
  readonly grantId: string;
  readonly revision: string;
  readonly revokedGrantIds: readonly string[];
}

export interface DecideOptions {
  /** `N`, the instant of the operation. One that cannot be read is `NaN`, and never falls back to `A`. */
  readonly now: Instant;
  /** Whether this decision may spend a use. Discovery never does. */
  readonly consume: boolean;
  readonly mode: 'execute' | 'discover';
  readonly checks?: InstalledChecks | undefined;
  readonly ceiling?: HostCeiling | undefined;
  /** Ancestors a chain may have; 16 when absent. */
  readonly ancestorsMax?: number | undefined;
  /** Whether the call in question is the one that a grant is bound to. Asked of bound grants alone; they allow nothing when absent. */
  readonly fitsCall?: FitsCall | undefined;
}

export type FitsCall = (grantId: string, boundTo: string) => boolean;

export interface Decided {
  readonly decision: AuthorizationDecision;
  /** Absent only when there was no authority to walk. */
  readonly explanation?: AuthorizationExplanation;
  /** Present when a use of this grant was really taken. */
  readonly usageTaken?: { readonly grantId: string };
  /** What the host's ceiling threw, for the host's log. */
  readonly ceilingThrew?: unknown;
}

/**
 * Decides one request by walking the grants in the order given. Deny by default: allowed only if one active grant covers the
 * whole request. Grants are never merged, sorted or asked in parallel.
 *
 * @see spec/authorization.md §5
 */
export function* decide(authority: HeldAuthority, request: CapabilityRequirement, options: DecideOptions): Asking<Decided> {
  const revocationChecks: RevocationCheck[] = [];
  const walked = yield* walk(authority, authority.grants, request, options, revocationChecks);
  return decidedOf(authority, request, options, walked, revocationChecks);
}

/** A walk's outcome as the decision it makes. */
export const decidedOf = (
  authority: HeldAuthority,
  request: CapabilityRequirement,
  { mode }: Pick<DecideOptions, 'mode'>,
  walked: Walked,
  revocationChecks: readonly RevocationCheck[],
): Decided => {
  const { code, grantId, rejections, missingDependency, useTaken, ceilingThrew } = walked;
  const metadata = revocationChecks.length === 0 ? walked.metadata : { ...walked.metadata, revocationChecks: evidence(revocationChecks) };
  const requiredAuthority =
    code === 'no_matching_grant' && mode === 'execute' ? requiredAuthorityOf(authority.context, request) : undefined;
  return {
    decision: {
      allowed: code === 'allowed',
      reasonCode: code,
      ...(grantId === undefined ? {} : { matchedGrantId: grantId }),
      ...(requiredAuthority === undefined ? {} : { requiredAuthority }),
      ...(metadata === undefined ? {} : { metadata }),
    },
    explanation: {
      reasonCode: code,
      grantsResolved: authority.grants.length,
      rejections,
      ...(missingDependency === undefined ? {} : { missingDependency }),
    },
    ...(useTaken === true && grantId !== undefined ? { usageTaken: { grantId } } : {}),
    ...(ceilingThrew === undefined ? {} : { ceilingThrew }),
  };
};

/** The answer to everything asked of an authority that could not be loaded. Why is in the metadata, for the host alone. */
export const decidedWithoutAuthority = ({ code }: AuthorityFailure): Decided => ({
  decision: { allowed: false, reasonCode: 'authority_unavailable', metadata: { authority: { code } } },
});

/** Where a walk ended, and what it saw on its way. */
export interface Walked {
  readonly code: AuthorizationReasonCode;
  readonly rejections: readonly GrantRejection[];
  readonly grantId?: string;
  /** The grant at which nothing could be decided, so that none after it was looked at. */
  readonly stoppedAt?: string;
  readonly metadata?: JsonObj;
  readonly missingDependency?: 'usageStore' | 'delegationResolver';
  readonly useTaken?: boolean;
  readonly ceilingThrew?: unknown;
}

/** {@link validateChain}, or what answers as it would. */
export type ValidateChain = typeof validateChain;

type BrokenChain = Exclude<ChainVerdict, { status: 'valid' }>;

/**
 * Walks grants of an authority in the order given.
 *
 * @param grants Of those the authority holds, all that any of the tests before the chain might let through.
 * @param revocationChecks Added to, one by one, as live revocation is asked.
 */
export function* walk(
  { context, admittedAt, policy, sharedBudgets }: HeldAuthority,
  grants: Iterable<ParsedGrant>,
  asked: CapabilityRequirement,
  options: DecideOptions,
  revocationChecks: RevocationCheck[],
  validate: ValidateChain = validateChain,
): Asking<Walked> {
  const { now, mode, ceiling, checks, ancestorsMax, fitsCall } = options;
  const consume = options.consume && mode === 'execute';
  if (admittedAt === undefined || !Number.isFinite(now)) return { code: 'invalid_context', rejections: [] };
  const request = parseRequirement(asked);
  if (request === undefined) return { code: 'invalid_request', rejections: [] };
  if (request.resource.owner !== undefined && !sameAddress(request.resource.owner, context.owner))
    return { code: 'invalid_request', rejections: [] };

  const frame: ChainFrame = { context, admittedAt, now, sharedBudgets };
  const covers = mode === 'execute' ? capabilityMatches : capabilityIntersectsCeiling;
  const rejections: GrantRejection[] = [];
  let unverified: BrokenChain | undefined;
  let invalid: BrokenChain | undefined;
  let overridden: { readonly grantId: string; readonly metadata?: JsonObj } | undefined;
  let exhausted = false;

  for (const held of grants) {
    const { id, capabilities } = held.grant;
    const unfit = unfitness(held, frame, context) ?? (yield* verifierRejection(held, context, checks));
    if (unfit !== undefined) {
      rejections.push({ grantId: id, reason: unfit });
      continue;
    }
    // Whoever may make one call sees its tool like anybody else who may use it somewhere; executing, it covers nothing but that call.
    const isOtherCall = held.boundTo !== undefined && mode === 'execute' && fitsCall?.(id, held.boundTo) !== true;
    if (isOtherCall || !capabilities.some((capability) => covers(capability, request, context))) {
      rejections.push({ grantId: id, reason: 'capability' });
      continue;
    }
    const live = yield* currentChain(held, frame, context, { checks, ancestorsMax }, validate);
    if (live === 'unavailable') return { code: 'authority_unavailable', rejections, stoppedAt: id };
    const { chain } = live;
    if (live.check !== undefined) revocationChecks.push(live.check);
    if (chain === 'revoked') {
      rejections.push({ grantId: id, reason: 'window' });
      continue;
    }
    if (chain.status !== 'valid') {
      if (chain.status === 'unverified') unverified ??= chain;
      else invalid ??= chain;
      rejections.push({ grantId: id, reason: 'delegation' });
      continue;
    }
    if (ceiling !== undefined) {
      const answer = askCeiling(ceiling, policy, id, request, context);
      if (answer.status === 'unavailable')
        return { code: 'host_policy_unavailable', rejections, stoppedAt: id, ceilingThrew: answer.thrown };
      if (answer.status === 'denied') {
        overridden ??= { grantId: id, ...(answer.metadata === undefined ? {} : { metadata: answer.metadata }) };
        continue;
      }
    }
    const [budget, ...above] = budgetsOfChain(held.grant, chain);
    if (budget === undefined) return { code: 'allowed', grantId: id, rejections };
    const use = yield* askUse({ namespaceId: context.namespaceId, ...useOf([budget, ...above]), consume });
    if (use === 'granted') return { code: 'allowed', grantId: id, rejections, useTaken: consume };
    if (use === 'missing_port') return { code: 'usage_store_unavailable', rejections, stoppedAt: id, missingDependency: 'usageStore' };
    if (use === 'unavailable') return { code: 'usage_store_unavailable', rejections, stoppedAt: id };
    exhausted = true;
    rejections.push({ grantId: id, reason: 'exhausted' });
  }

  // Not being able to verify outranks a verified fault: it may be neither, and says so.
  if (unverified !== undefined) {
    return {
      code: 'delegation_chain_unverified',
      rejections,
      metadata: brokenAt(unverified),
      ...(unverified.code === 'resolver_unavailable' ? { missingDependency: 'delegationResolver' } : {}),
    };
  }
  if (invalid !== undefined) return { code: 'delegation_chain_invalid', rejections, metadata: brokenAt(invalid) };
  if (overridden !== undefined) return { code: 'host_policy_denied', rejections, ...overridden };
  return { code: exhausted ? 'grant_exhausted' : 'no_matching_grant', rejections };
}

const evidence = (checks: readonly RevocationCheck[]): JsonObj[] =>
  checks.map(({ grantId, revision, revokedGrantIds }) => ({ grantId, revision, revokedGrantIds }));

const brokenAt = ({ code, grantId }: BrokenChain): JsonObj => ({ delegation: { code, grantId } });

/**
 * The tests that ask only whether a grant is usable at all, before any of what it covers: 1 to 6 of the walk.
 *
 * @see spec/authorization.md §5.3
 */
export const unfitness = (
  { grant, window }: ParsedGrant,
  { admittedAt, now }: Pick<ChainFrame, 'admittedAt' | 'now'>,
  context: AccessContext,
): GrantRejectionReason | undefined => {
  if (!sameAddress(grant.issuer, context.authority)) return 'issuer';
  if (!sameAddress(grant.subject, context.actor)) return 'subject';
  if (grant.namespaceId !== context.namespaceId) return 'namespace';
  if (!isInsideWindow(window, admittedAt, now)) return 'window';
  if (!servesPurpose(grant, context.purpose)) return 'purpose';
  return undefined;
};

export function* verifierRejection(
  { grant }: ParsedGrant,
  context: AccessContext,
  checks: InstalledChecks | undefined,
): Asking<'verifier' | undefined> {
  if (checks?.verifier !== true) return undefined;
  return (yield* askVerify({ grant, context })) ? undefined : 'verifier';
}

/**
 * The chain of a candidate as it stands now: valid by the rules of delegation and, where live revocation is installed, with
 * nothing of it revoked by this moment. A revoked ancestor is an inactive one; a revoked candidate is outside its own window.
 *
 * @see spec/turns.md §15, "Revocation faster than a turn"
 */
export function* currentChain(
  held: ParsedGrant,
  frame: ChainFrame,
  { namespaceId }: AccessContext,
  { checks, ancestorsMax }: Pick<DecideOptions, 'checks' | 'ancestorsMax'>,
  validate: ValidateChain = validateChain,
): Asking<{ readonly chain: ChainVerdict | 'revoked'; readonly check?: RevocationCheck } | 'unavailable'> {
  const chain = yield* validate(held, frame, ancestorsMax);
  if (chain.status !== 'valid' || checks?.liveRevocation !== true) return { chain };
  const { id } = held.grant;
  const answer = yield* askRevocation({ namespaceId, grantIds: [id, ...chain.chain] });
  if (answer === 'unavailable') return 'unavailable';
  const check = { grantId: id, revision: answer.revision, revokedGrantIds: answer.revokedGrantIds };
  if (answer.revokedGrantIds.includes(id)) return { chain: 'revoked', check };
  const revoked = chain.chain.find((ancestor) => answer.revokedGrantIds.includes(ancestor));
  if (revoked === undefined) return { chain, check };
  return { chain: { status: 'invalid', code: 'parent_inactive', grantId: revoked, chain: chain.chain }, check };
}
