import { type CapabilityRequirement, type Instant, sameAddress } from '@sharedos/contracts';
import type { Asking } from './asking.ts';
import type { HeldAuthority } from './authority.ts';
import { AuthorityIndex } from './authority-index.ts';
import { passesCeiling } from './ceiling.ts';
import { ANCESTORS_MAX } from './chain.ts';
import {
  type AuthorizationReasonCode,
  type Decided,
  type DecideOptions,
  type GrantRejection,
  type RevocationCheck,
  type ValidateChain,
  type Walked,
  decide,
  decidedOf,
  unfitness,
  walk,
} from './decide.ts';
import type { ParsedGrant } from './parsed-grant.ts';
import { parseRequirement } from './parsed-requirement.ts';
import { PinnedChains } from './pinned-chains.ts';
import { NOWHERE } from './segment-trie.ts';

export interface CompileOptions {
  /**
   * Whether the ancestors that this authority's chains name are read at one fixed revision, so that their store answers the same
   * at every decision. Only then is a chain judged once; otherwise its ancestors are looked up again each time.
   *
   * @see spec/authorization.md §9.2
   */
  readonly ancestorsPinned?: boolean;
  /** Ancestors a chain may have; 16 when absent. */
  readonly ancestorsMax?: number | undefined;
}

/** What a decision says, without what would have satisfied it. */
export interface SettledDecision {
  readonly allowed: boolean;
  readonly reasonCode: AuthorizationReasonCode;
  readonly matchedGrantId?: string;
}

const denied = (reasonCode: AuthorizationReasonCode): SettledDecision => Object.freeze({ allowed: false, reasonCode });
const INVALID_CONTEXT = denied('invalid_context');
const INVALID_REQUEST = denied('invalid_request');
const NO_MATCHING_GRANT = denied('no_matching_grant');

interface Compiled {
  readonly index: AuthorityIndex;
  /** By place in the walk: operations before this instant need nothing but the grant's path. `-Infinity` where more must be asked. */
  readonly openUntil: Float64Array;
  readonly grantIds: readonly string[];
}

/**
 * An authority made ready for many decisions. It answers as {@link decide} does, which stays the rule: here only the grants that
 * may answer are walked, found by an index that is built when it is first asked, and what cannot change within a turn is not
 * judged again.
 */
export class CompiledAuthority {
  readonly held: HeldAuthority;
  readonly #ancestorsMax: number;
  readonly #chains: PinnedChains | undefined;
  #compiled: Compiled | undefined;

  constructor(held: HeldAuthority, { ancestorsPinned = false, ancestorsMax = ANCESTORS_MAX }: CompileOptions = {}) {
    this.held = held;
    this.#ancestorsMax = ancestorsMax;
    this.#chains = ancestorsPinned ? new PinnedChains(ancestorsMax) : undefined;
  }

  /**
   * Decides at once what needs nothing of the world: the first grant that covers the request is unbounded and, if derived, of a
   * chain that was judged before; or no grant covers it. For hosts without a ceiling, a verifier and live revocation.
   *
   * @param asked One that `parseRequirement` returned is recognised; any other is read first, which takes far longer than deciding it.
   * @returns What {@link decide} would decide, without `requiredAuthority`; `undefined` where it would have to ask. A denial is frozen.
   */
  settle(asked: CapabilityRequirement, now: Instant, mode: DecideOptions['mode']): SettledDecision | undefined {
    const { context, admittedAt } = this.held;
    if (admittedAt === undefined || !Number.isFinite(now)) return INVALID_CONTEXT;
    const request = parseRequirement(asked);
    if (request === undefined) return INVALID_REQUEST;
    const { owner } = request.resource;
    if (owner !== undefined && !sameAddress(owner, context.owner)) return INVALID_REQUEST;
    const { index, openUntil, grantIds } = (this.#compiled ??= compiledOf(this.held));
    const first = index.first(request, mode);
    if (first === NOWHERE) return NO_MATCHING_GRANT;
    if (!(now < (openUntil[first] as number))) return undefined;
    return { allowed: true, reasonCode: 'allowed', matchedGrantId: grantIds[first] as string };
  }

  /** {@link decide} of this authority. Why grants were rejected is found out when somebody reads it. */
  *decide(asked: CapabilityRequirement, options: DecideOptions): Asking<Decided> {
    const { held } = this;
    const { now, mode, checks, ceiling, ancestorsMax = ANCESTORS_MAX } = options;
    if (ceiling !== undefined) {
      const request = parseRequirement(asked);
      if (request !== undefined && passesCeiling(ceiling, held.policy, request, held.context))
        return yield* this.decide(request, { ...options, ceiling: undefined });
    }
    // A verifier is asked about every grant in use, whatever it covers, and chains were judged by one limit only.
    if (checks?.verifier === true || ancestorsMax !== this.#ancestorsMax) return yield* decide(held, asked, options);
    if (ceiling === undefined && checks?.liveRevocation !== true) {
      const settled = this.settle(asked, now, mode);
      if (settled !== undefined) {
        const { reasonCode: code, matchedGrantId: grantId } = settled;
        return this.#decided(asked, options, { code, rejections: [], ...(grantId === undefined ? {} : { grantId }) });
      }
    }
    const request = parseRequirement(asked) ?? asked;
    const { index } = (this.#compiled ??= compiledOf(held));
    const ordinals = index.all(request, mode);
    const candidates = ordinals.map((ordinal) => held.grants[ordinal] as ParsedGrant);
    const revocationChecks: RevocationCheck[] = [];
    const walked = yield* walk(held, candidates, request, options, revocationChecks, this.#validate());
    this.#open(ordinals);
    return this.#decided(request, options, walked, candidates, revocationChecks);
  }

  #validate(): ValidateChain | undefined {
    const chains = this.#chains;
    return chains === undefined ? undefined : (held, frame) => chains.validate(held, frame);
  }

  /** Lets what was asked of the world once be settled without it from now on. */
  #open(ordinals: readonly number[]): void {
    if (this.#chains === undefined || this.#compiled === undefined) return;
    for (const ordinal of ordinals) {
      const held = this.held.grants[ordinal] as ParsedGrant;
      if (isUnbounded(held)) this.#compiled.openUntil[ordinal] = Math.min(held.window.expiresAt, this.#validUntil(held));
    }
  }

  #validUntil(held: ParsedGrant): number {
    if (held.grant.parentGrantId === undefined) return Infinity;
    return this.#chains?.validUntil(held) ?? -Infinity;
  }

  #decided(
    request: CapabilityRequirement,
    options: DecideOptions,
    walked: Walked,
    candidates: readonly ParsedGrant[] = [],
    revocationChecks: readonly RevocationCheck[] = [],
  ): Decided {
    const { explanation, ...decided } = decidedOf(this.held, request, options, walked, revocationChecks);
    if (explanation === undefined) return decided;
    const rejections = (): readonly GrantRejection[] => this.#rejections(walked, candidates, options.now);
    return {
      ...decided,
      get explanation() {
        return { ...explanation, rejections: rejections() };
      },
    };
  }

  /** What a walk over all grants would have rejected: what was seen of the candidates, and the plain tests of the others. */
  #rejections(
    { code, rejections, grantId, stoppedAt }: Walked,
    candidates: readonly ParsedGrant[],
    now: Instant,
  ): readonly GrantRejection[] {
    const { context, admittedAt, grants } = this.held;
    if (admittedAt === undefined || code === 'invalid_context' || code === 'invalid_request') return [];
    const last = code === 'allowed' ? grantId : stoppedAt;
    const walked = new Set(candidates);
    const seen = new Map(rejections.map((rejection) => [rejection.grantId, rejection]));
    const all: GrantRejection[] = [];
    for (const held of grants) {
      const { id } = held.grant;
      if (id === last) break;
      const rejection = walked.has(held)
        ? seen.get(id)
        : { grantId: id, reason: unfitness(held, { admittedAt, now }, context) ?? ('capability' as const) };
      if (rejection !== undefined) all.push(rejection);
    }
    return all;
  }
}

const compiledOf = (held: HeldAuthority): Compiled => ({
  index: new AuthorityIndex(held),
  grantIds: held.grants.map(({ grant }) => grant.id),
  openUntil: Float64Array.from(held.grants, (grant) =>
    isUnbounded(grant) && grant.grant.parentGrantId === undefined ? grant.window.expiresAt : -Infinity,
  ),
});

const isUnbounded = ({ grant, boundTo }: ParsedGrant): boolean => grant.constraints.maxUses === undefined && boundTo === undefined;
