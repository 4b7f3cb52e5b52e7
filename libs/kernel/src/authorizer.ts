import {
  type AccessContext,
  type AuthorizationDecision,
  type AuthorizationRequest,
  type CapabilityGrant,
  type Instant,
  type ReachResult,
  INFRASTRUCTURE_CODES,
  instantOf,
} from '@sharedos/contracts';
import { type Asking, type AsyncWorld, decideWith } from './asking.ts';
import type { HeldAuthority } from './authority.ts';
import { type ResolvedAuthority, heldBy } from './authority-resolver.ts';
import type { HostCeiling } from './ceiling.ts';
import { CompiledAuthority } from './compiled-authority.ts';
import type { AuthorizationExplanation, AuthorizationReasonCode, Decided, DecideOptions } from './decide.ts';
import type { DelegationChainResolver } from './delegation-chain.ts';
import { ancestorsFrom } from './delegation-chain.ts';
import { frozenCopy, sealed } from './contract-value.ts';
import { type ProviderErrorReporter, reportContainedError } from './provider-error.ts';
import { computeReach } from './reach.ts';

/** Counts uses of bounded grants. `tryConsume` is one atomic step across every node: it counts only while below the maximum. */
export interface GrantUsageStore {
  getUsage(namespaceId: string, grantId: string): Promise<number>;
  tryConsume(namespaceId: string, grantId: string, maximumUses: number): Promise<boolean>;
}

/** A host's further check of a grant. Anything but `true`, a throw included, rejects it. */
export interface CapabilityGrantVerifier {
  verify(grant: CapabilityGrant, context: AccessContext): Promise<boolean>;
}

/** One consistent read of what is revoked by now. It can only take away; a throw makes the decision unavailable. */
export interface LiveRevocationSource {
  revoked(
    namespaceId: string,
    grantIds: readonly string[],
  ): Promise<{ readonly revision: string; readonly revokedGrantIds: readonly string[] }>;
}

export interface CapabilityAuthorizerOptions {
  readonly usageStore?: GrantUsageStore;
  readonly grantVerifier?: CapabilityGrantVerifier;
  /** Without one, a grant that names a parent authorizes nothing. */
  readonly delegationResolver?: DelegationChainResolver;
  /** Ancestors a chain may have; 16 when absent. */
  readonly maxDelegationChainLength?: number;
  readonly hostCeiling?: HostCeiling;
  /** Absent, a revocation is seen by the next turn. */
  readonly liveRevocation?: LiveRevocationSource;
  /** Hears what the ceiling threw. */
  readonly onProviderError?: ProviderErrorReporter;
}

/** The instant a decision is made at, where that is not the one its authority was loaded at. */
export interface AuthorizationInstantOptions {
  readonly now?: string;
}

export interface AuthorizeOptions extends AuthorizationInstantOptions {
  /** For executions alone: looking at a catalogue must not spend anything. */
  readonly consume?: boolean;
  /** Hears why a request was denied, once and before the answer. For the host alone. */
  readonly onExplain?: (explanation: AuthorizationExplanation) => void;
}

/** Denials that come of not being able to find out, not of a rule: left out of denial rates. */
export const INFRASTRUCTURE_DENIAL_REASONS: readonly AuthorizationReasonCode[] = Object.freeze([
  'authority_unavailable',
  'delegation_chain_unverified',
  'usage_store_unavailable',
  'host_policy_unavailable',
]);

export const isInfrastructureDenial = (reasonCode: string): boolean => INFRASTRUCTURE_CODES.has(reasonCode);

/** What the kernel needs of an authorizer beyond its answers: the very same rules over the very same ports. */
export interface Decider {
  /** What of a host is installed, for every rule that walks grants. */
  readonly installed: Pick<DecideOptions, 'checks' | 'ancestorsMax' | 'ceiling'>;
  run<T>(rule: Asking<T>): Promise<T>;
  /** An authority ready for every further decision on it; kept as long as the authority is. */
  compiled(held: HeldAuthority): CompiledAuthority;
  /** Tells the host what its ceiling threw on the way to a decision. */
  reportCeiling(decided: Decided, context: AccessContext, request: AuthorizationRequest): void;
}

/** The decider of an authorizer: taken by the kernel, offered to nobody else. */
export let deciderOf: (authorizer: CapabilityAuthorizer) => Decider;

/** Decides requests against resolved authority, by the rules of `decide`. @see spec/authorization.md §5 */
export class CapabilityAuthorizer {
  readonly #options: CapabilityAuthorizerOptions;
  readonly #decider: Decider;
  /** What was decided on before, ready for the next decision. Ancestors are this host's to change, so no chain is kept. */
  readonly #compiled = new WeakMap<HeldAuthority, CompiledAuthority>();

  static {
    deciderOf = (authorizer) => authorizer.#decider;
  }

  constructor(options: CapabilityAuthorizerOptions = {}) {
    this.#options = { ...options };
    const world = worldOf(this.#options);
    this.#decider = {
      installed: {
        checks: { verifier: options.grantVerifier !== undefined, liveRevocation: options.liveRevocation !== undefined },
        ancestorsMax: options.maxDelegationChainLength,
        ceiling: options.hostCeiling,
      },
      run: (rule) => decideWith(rule, world),
      compiled: (held) => this.#compiledOf(held),
      reportCeiling: (decided, { traceId, namespaceId }, { resource, action }) => {
        if (!('ceilingThrew' in decided)) return;
        const operation = { kind: 'policy', reasonCode: 'host_policy_unavailable', traceId, namespaceId, resource, action } as const;
        reportContainedError(this.#options.onProviderError, decided.ceilingThrew, operation);
      },
    };
  }

  /** Whether a ceiling is installed: without it, a trail that holds no refusal by policy would be ambiguous. */
  get hasHostCeiling(): boolean {
    return this.#options.hostCeiling !== undefined;
  }

  async authorize(
    authority: ResolvedAuthority,
    request: AuthorizationRequest,
    options: AuthorizeOptions = {},
  ): Promise<AuthorizationDecision> {
    const { consume = false, onExplain } = options;
    const decided = await this.#decide(authority, request, options, { consume, mode: 'execute' });
    if (!decided.decision.allowed && decided.explanation !== undefined && onExplain !== undefined) {
      const explanation = sealed(structuredClone(decided.explanation));
      reportContainedError(() => onExplain(explanation), undefined, undefined);
    }
    return decided.decision;
  }

  /** The check a catalogue is filtered by: whether a grant reaches anything that a tool with this ceiling could be called for. */
  async canDiscover(
    authority: ResolvedAuthority,
    ceiling: AuthorizationRequest,
    options: AuthorizationInstantOptions = {},
  ): Promise<AuthorizationDecision> {
    return (await this.#decide(authority, ceiling, options, { consume: false, mode: 'discover' })).decision;
  }

  /** Where an authority operates, with the authority removed. It describes and never permits. @see spec/authorization.md §10 */
  async reach(authority: ResolvedAuthority, options: AuthorizationInstantOptions = {}): Promise<ReachResult> {
    const held = heldBy(authority);
    if (held === undefined) return { status: 'unavailable', reasonCode: 'authority_unavailable' };
    const { installed, run } = this.#decider;
    return run(computeReach(held, { now: operationInstant(held, options.now), ...installed }));
  }

  async #decide(
    authority: ResolvedAuthority,
    request: AuthorizationRequest,
    { now }: AuthorizationInstantOptions,
    kind: Pick<DecideOptions, 'consume' | 'mode'>,
  ): Promise<Decided> {
    const held = heldBy(authority);
    if (held === undefined) return { decision: { allowed: false, reasonCode: 'authority_unavailable' } };
    const { installed, run, reportCeiling } = this.#decider;
    const { ceiling, checks } = installed;
    const compiled = this.#compiledOf(held);
    const instant = operationInstant(held, now);
    if (ceiling === undefined && checks?.verifier !== true && checks?.liveRevocation !== true) {
      const settled = compiled.settle(request, instant, kind.mode);
      if (settled?.allowed === true) return { decision: settled };
    }
    const decided = await run(compiled.decide(request, { now: instant, ...kind, ...installed }));
    reportCeiling(decided, held.context, request);
    return decided;
  }

  #compiledOf(held: HeldAuthority): CompiledAuthority {
    const known = this.#compiled.get(held);
    if (known !== undefined) return known;
    const compiled = new CompiledAuthority(held, { ancestorsMax: this.#decider.installed.ancestorsMax });
    this.#compiled.set(held, compiled);
    return compiled;
  }
}

/** `N` where it is stated, `A` where it is not. An `N` that cannot be read is `NaN`, and never falls back to `A`. */
export const operationInstant = ({ admittedAt }: HeldAuthority, now: string | undefined): Instant =>
  now === undefined ? (admittedAt ?? NaN) : (instantOf(now) ?? NaN);

const worldOf = ({ usageStore, grantVerifier, delegationResolver, liveRevocation }: CapabilityAuthorizerOptions): AsyncWorld => ({
  ...(usageStore === undefined
    ? {}
    : {
        use: async ({ namespaceId, grantId, max, consume, above }) => {
          // This store counts one grant in a step: of several it could take one and then be refused the next.
          if (above !== undefined) return 'unavailable';
          try {
            if (consume) return (await usageStore.tryConsume(namespaceId, grantId, max)) === true ? 'granted' : 'exhausted';
            const used = await usageStore.getUsage(namespaceId, grantId);
            if (!Number.isSafeInteger(used) || used < 0) return 'unavailable';
            return used < max ? 'granted' : 'exhausted';
          } catch {
            return 'unavailable';
          }
        },
      }),
  ...(delegationResolver === undefined ? {} : { ancestor: ancestorsFrom(delegationResolver) }),
  ...(grantVerifier === undefined
    ? {}
    : {
        verify: async ({ grant, context }) => {
          try {
            return (await grantVerifier.verify(frozenCopy(grant), frozenCopy(context))) === true ? 'verified' : 'rejected';
          } catch {
            return 'rejected';
          }
        },
      }),
  ...(liveRevocation === undefined
    ? {}
    : {
        revocation: async ({ namespaceId, grantIds }) => {
          try {
            const { revision, revokedGrantIds } = await liveRevocation.revoked(namespaceId, grantIds);
            return typeof revision === 'string' && Array.isArray(revokedGrantIds) ? { revision, revokedGrantIds } : 'unavailable';
          } catch {
            return 'unavailable';
          }
        },
      }),
});
