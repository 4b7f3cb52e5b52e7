import {
  type AccessContext,
  type AuthoritySnapshot,
  type AuthorityUnavailableCode,
  type CapabilityGrant,
  type ScopeMismatch,
  canonicalJson,
} from '@sharedos/contracts';
import {
  type AuthorityFailure,
  GRANTS_MAX,
  type HeldAuthority,
  type HostPolicy,
  type PolicyResolution,
  loadAuthority,
  presentAuthority,
} from './authority.ts';
import { frozenCopy, sealed } from './contract-value.ts';

/** Grants in one loaded set. */
export const MAX_RESOLVED_GRANTS = GRANTS_MAX;

/**
 * Whether a turn would read the store again at each operation. It does not: a turn decides against one state, and a host that
 * wants revocations seen earlier installs live revocation, which can only take away.
 */
export const MID_TURN_AUTHORITY_REFRESH = false;

/** The trusted boundary that loads grants: exactly those that `context.actor` holds from `context.authority`. It throws on an outage. */
export interface GrantSource {
  load(context: AccessContext, signal: AbortSignal): Promise<readonly CapabilityGrant[]>;
}

/** What a policy source loaded, and the source's own name for that state: a revision, an etag, a hash. */
export interface LoadedPolicy<Policy = HostPolicy> {
  readonly policy: Policy;
  readonly version: string;
}

/** The trusted boundary that loads host policy, once a turn and beside the grants. It throws on an outage. */
export interface PolicySource<Policy = HostPolicy> {
  load(context: AccessContext, signal: AbortSignal): Promise<LoadedPolicy<Policy>>;
}

/** Which of the three scope conditions a loaded grant failed. */
export type GrantScopeMismatch = ScopeMismatch['reason'];
export type AuthorityUnavailableDetail = ScopeMismatch;

/** A context together with the authority that was loaded for it. Held beside the context, never inside it. */
export interface ResolvedAuthority {
  readonly context: AccessContext;
  readonly grants: readonly CapabilityGrant[];
  readonly snapshot: AuthoritySnapshot;
  readonly hostPolicy?: PolicyResolution;
}

export type AuthorityResolution =
  | { readonly status: 'resolved'; readonly authority: ResolvedAuthority }
  | { readonly status: 'unavailable'; readonly code: AuthorityUnavailableCode; readonly detail?: AuthorityUnavailableDetail };

/** A handle on one turn's frozen authority. It exposes no grants. `close` is idempotent and belongs on every way out of the turn. */
export interface TurnAuthorityScope {
  readonly status: 'resolved' | 'unavailable';
  readonly snapshot?: AuthoritySnapshot;
  readonly code?: AuthorityUnavailableCode;
  close(): void;
}

/** Loads and validates authority. Whatever goes wrong makes all of it unavailable, never part of it. */
export class TrustedAuthorityResolver {
  readonly #source: GrantSource;

  constructor(source: GrantSource) {
    this.#source = source;
  }

  /** Rejects only when `signal` fired. */
  async resolve(context: AccessContext, signal: AbortSignal = new AbortController().signal): Promise<AuthorityResolution> {
    let material: unknown;
    try {
      material = await this.#source.load(frozenCopy(context), signal);
    } catch {
      signal.throwIfAborted();
      return { status: 'unavailable', code: 'grant_source_failed' };
    }
    const loaded = loadAuthority(context, material);
    return loaded.ok ? { status: 'resolved', authority: resolvedFrom(loaded.value) } : unavailableFrom(loaded.error);
  }
}

const unavailableFrom = ({ code, detail }: AuthorityFailure): AuthorityResolution => ({
  status: 'unavailable',
  code,
  ...(detail === undefined ? {} : { detail }),
});

/** What was read when it was loaded, by the object a host holds, so that the same grants are not read again for each decision. */
const readBefore = new WeakMap<ResolvedAuthority, HeldAuthority>();

export const resolvedFrom = (held: HeldAuthority): ResolvedAuthority => {
  const { context, grants, snapshot, policy } = held;
  // The grants are frozen through: whoever holds this could otherwise edit what is decided on.
  const authority: ResolvedAuthority = Object.freeze({
    context: sealed(context),
    grants: Object.freeze(grants.map(({ grant }) => sealed(grant))),
    snapshot: sealed(snapshot),
    ...(policy === undefined ? {} : { hostPolicy: policy }),
  });
  readBefore.set(authority, held);
  return authority;
};

/** The same authority with the policy of its turn beside it. */
export const withPolicy = (authority: ResolvedAuthority, policy: PolicyResolution): ResolvedAuthority => {
  const held = heldBy(authority);
  return held === undefined ? authority : resolvedFrom({ ...held, policy });
};

/**
 * The authority as the rules read it. One that a host put together by hand is read now, grant by grant.
 *
 * @returns `undefined` when some grant of it does not meet its contract.
 */
export const heldBy = (authority: ResolvedAuthority): HeldAuthority | undefined => {
  const known = readBefore.get(authority);
  if (known !== undefined) return known;
  const { context, grants, snapshot, hostPolicy } = authority;
  const presented = presentAuthority(context, grants, snapshot, hostPolicy);
  return presented.ok ? presented.value : undefined;
};

/**
 * The identity a turn's authority is held under: all that a decision reads of a context, except what moves. `now` is what a
 * lease freezes, and enablement of namespaces stays live.
 */
export const turnAuthorityKey = ({ namespaceId, actor, authority, owner, purpose, traceId }: AccessContext): string =>
  canonicalJson({ namespaceId, actor, authority, owner, purpose, traceId });
