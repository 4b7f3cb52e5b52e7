import {
  AccessContext,
  type AuthoritySnapshot,
  type AuthorityUnavailableCode,
  type CapabilityGrant,
  type Instant,
  type Result,
  type ScopeMismatch,
  byCodeUnit,
  canonicalJson,
  err,
  hashOf,
  instantOf,
  ok,
  sameAddress,
} from '@sharedos/contracts';
import { type ParsedGrant, parseGrant } from './parsed-grant.ts';

/** Grants in one loaded set, unless its host says otherwise. */
export const GRANTS_MAX = 256;

/** A host's policy, to us: nothing we read. It is handed to the host's own ceiling untouched. */
export type HostPolicy = unknown;

/** What the host's policy source answered for this turn. Left out of an authority when there is no such source. */
export type PolicyResolution<Policy = HostPolicy> =
  | { readonly status: 'loaded'; readonly policy: Policy; readonly version: string }
  | { readonly status: 'unavailable' };

declare const resolved: unique symbol;

/**
 * The authority a turn holds. It is no access context and cannot be passed where one is expected, so grants never reach a
 * provider, a handler, a transport or a runtime.
 */
export interface HeldAuthority {
  readonly [resolved]: true;
  readonly context: AccessContext;
  /** The instant `A` that starts and revocations are judged at; `undefined` when the context cannot be used at all. */
  readonly admittedAt: Instant | undefined;
  /** In the order the source returned them, which is the order they are walked in. */
  readonly grants: readonly ParsedGrant[];
  readonly snapshot: AuthoritySnapshot;
  readonly policy?: PolicyResolution;
  /** Whether, in this namespace at this revision, a bounded grant may be passed on and shares its budget with what is below it. */
  readonly sharedBudgets?: boolean;
}

/** Why a set of grants cannot be trusted. For the host alone: callers hear `authority_unavailable`. */
export interface AuthorityFailure {
  readonly code: AuthorityUnavailableCode;
  readonly detail?: ScopeMismatch;
}

export interface LoadOptions {
  readonly grantLimit?: number;
  readonly policy?: PolicyResolution;
  /** Off when absent: then no bounded grant may be passed on. */
  readonly sharedBudgets?: boolean;
}

/**
 * Makes authority of what a grant source returned. One bad grant makes all of it unavailable: nothing is filtered, because a
 * source that returns somebody else's grant cannot be believed about the rest. Expired, revoked or wrong-purpose grants are not
 * bad here; the decision rejects them one by one.
 *
 * @param material What the source returned, unread. A source that threw is `grant_source_failed`, for the caller to say.
 * @see spec/authorization.md §3
 */
export const loadAuthority = (
  context: AccessContext,
  material: unknown,
  options: LoadOptions = {},
): Result<HeldAuthority, AuthorityFailure> =>
  Array.isArray(material) ? hold(context, material, parseGrant, options) : err({ code: 'invalid_grant_material' });

/** The same for grants that were read before, by a service's own fold: they are not read again. */
export const holdAuthority = (
  context: AccessContext,
  grants: readonly ParsedGrant[],
  options: LoadOptions = {},
): Result<HeldAuthority, AuthorityFailure> => hold(context, grants, ok<ParsedGrant>, options);

const hold = <Material>(
  givenContext: AccessContext,
  material: readonly Material[],
  read: (entry: Material) => Result<ParsedGrant, unknown>,
  { grantLimit = GRANTS_MAX, policy, sharedBudgets }: LoadOptions,
): Result<HeldAuthority, AuthorityFailure> => {
  if (material.length > grantLimit) return err({ code: 'grant_limit_exceeded' });
  const parsedContext = AccessContext.safeParse(givenContext);
  const context = parsedContext.success ? parsedContext.data : givenContext;
  const grants: ParsedGrant[] = [];
  const ids = new Set<string>();
  // By index and not by iteration, so that a hole in a list is read, and refused, like any other entry.
  for (let index = 0; index < material.length; index += 1) {
    const entry = read(material[index] as Material);
    if (!entry.ok || ids.has(entry.value.grant.id)) return err({ code: 'invalid_grant_material' });
    const { grant } = entry.value;
    const reason = scopeMismatch(grant, context);
    if (reason !== undefined) return err({ code: 'grant_scope_mismatch', detail: { grantId: grant.id, reason } });
    ids.add(grant.id);
    grants.push(entry.value);
  }
  const snapshot: AuthoritySnapshot = {
    hash: authorityHash(grants.map(({ grant }) => grant)),
    grantIds: [...ids].sort(byCodeUnit),
    grantCount: grants.length,
    loadedAt: context.now,
  };
  const admittedAt = parsedContext.success ? instantOf(context.now) : undefined;
  const held: Omit<HeldAuthority, typeof resolved> = {
    context,
    admittedAt,
    grants,
    snapshot,
    ...(policy === undefined ? {} : { policy }),
    ...(sharedBudgets === true ? { sharedBudgets } : {}),
  };
  return ok(held as HeldAuthority);
};

/**
 * Takes authority as it is presented: a host that puts one together by hand vouches for it. Scope is not judged here; the walk
 * rejects a grant of somebody else by itself.
 */
export const presentAuthority = (
  givenContext: AccessContext,
  material: readonly unknown[],
  snapshot: AuthoritySnapshot,
  policy?: PolicyResolution,
): Result<HeldAuthority, 'invalid_grant_material'> => {
  const parsedContext = AccessContext.safeParse(givenContext);
  const context = parsedContext.success ? parsedContext.data : givenContext;
  const grants: ParsedGrant[] = [];
  for (const entry of material) {
    const grant = parseGrant(entry);
    if (!grant.ok) return grant;
    grants.push(grant.value);
  }
  const held: Omit<HeldAuthority, typeof resolved> = {
    context,
    admittedAt: parsedContext.success ? instantOf(context.now) : undefined,
    grants,
    snapshot,
    ...(policy === undefined ? {} : { policy }),
  };
  return ok(held as HeldAuthority);
};

const scopeMismatch = (grant: CapabilityGrant, context: AccessContext): ScopeMismatch['reason'] | undefined => {
  if (grant.namespaceId !== context.namespaceId) return 'namespace';
  if (!sameAddress(grant.subject, context.actor)) return 'subject';
  if (!sameAddress(grant.issuer, context.authority)) return 'issuer';
  return undefined;
};

/**
 * Names the authority held, not what of it is usable: every field of every grant counts, their order does not.
 *
 * @see spec/authorization.md §3.6
 */
export const authorityHash = (grants: readonly CapabilityGrant[]): string => hashOf(grants.map(canonicalJson).sort(byCodeUnit));
