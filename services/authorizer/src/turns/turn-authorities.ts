import {
  type AccessContext,
  type Instant,
  type Result,
  type Revision,
  canonicalJson,
  err,
  instantOf,
  ok,
  positionOf,
} from '@sharedos/contracts';
import {
  type AsyncWorld,
  type AuthorityFailure,
  CompiledAuthority,
  type DecideOptions,
  type InstalledChecks,
  type PolicyInForce,
  type PolicyResolution,
  holdAuthority,
  policyCeiling,
} from '@sharedos/kernel';
import { HostPolicies } from '../fold/host-policies.ts';
import type { FoldView } from '../recompute/supposed-log.ts';
import type { TurnClaims } from './turn-token.ts';

/** Authority as an open turn sees it: frozen at its revision and admission, or held as unavailable for its whole length. */
export interface TurnAuthority {
  readonly revision: Revision;
  readonly position: number;
  readonly admittedAt: Instant;
  readonly authority: Result<CompiledAuthority, AuthorityFailure>;
  /** The namespace's policy at that revision, where it has one. */
  readonly policy?: PolicyResolution<PolicyInForce> | undefined;
  /** What its decisions are held to beside the grants, by the namespace's policy and settings at that revision. */
  readonly held: Pick<DecideOptions, 'checks' | 'ceiling'>;
}

const FROZEN: InstalledChecks = {};
const LIVE: InstalledChecks = { liveRevocation: true };

type OpenedTurn = Pick<TurnClaims, 'turnId' | 'contextHash' | 'revision' | 'admittedAt'>;

/** All that a token says a turn sees: one turn id opened twice is two views, and each token is answered from its own. */
const nameOf = ({ turnId, contextHash, revision, admittedAt }: OpenedTurn): string =>
  canonicalJson([turnId, contextHash, revision, admittedAt]);

/** What of turns one replica remembers. Forgetting one costs a look-up, never an answer. */
export interface HeldLimits {
  readonly turnsMax: number;
  /** Of all turns remembered together: each takes some 250 bytes in the index of its turn. */
  readonly capabilitiesMax: number;
}

const HELD_LIMITS: HeldLimits = { turnsMax: 10_000, capabilitiesMax: 500_000 };

/**
 * Answers "authority at R" for open turns. Nothing is owned: any replica computes the same from the log, and this only spares
 * it from computing again at each call of a turn.
 */
export class TurnAuthorities {
  readonly policies: HostPolicies;
  readonly #fold: FoldView;
  readonly #limits: HeldLimits;
  readonly #held = new Map<string, TurnAuthority>();
  #capabilities = 0;

  constructor(fold: FoldView, limits: HeldLimits = HELD_LIMITS, policies: HostPolicies = new HostPolicies(fold)) {
    this.policies = policies;
    this.#fold = fold;
    this.#limits = limits;
  }

  /** @param claims Of a verified token; `context` is the one it was opened for. */
  at(claims: TurnClaims, context: AccessContext, storeId: string, deadlineMs: number): Promise<Result<TurnAuthority, string>> {
    const known = this.#held.get(nameOf(claims));
    if (known !== undefined) return Promise.resolve(ok(known));
    return this.#compute(claims, context, storeId, deadlineMs);
  }

  /** Authority at a position that this replica has folded. */
  frozen(revision: Revision, position: number, admittedAt: Instant, context: AccessContext): TurnAuthority {
    const { namespaceId, actor, authority: issuer } = context;
    const { liveRevocation, sharedBudgets, grantsPerHolderMax } = this.#fold.namespaces.settingsAt(namespaceId, position).settings;
    const policy = this.policies.at(namespaceId, position);
    const checks = liveRevocation ? LIVE : FROZEN;
    const ceiling = policy === undefined ? undefined : policyCeiling;
    const grants = this.#fold.index.heldAt(namespaceId, actor, issuer, position, admittedAt, grantsPerHolderMax);
    const loaded = holdAuthority(context, grants, { grantLimit: grantsPerHolderMax, sharedBudgets, ...(policy && { policy }) });
    // Ancestors are read at the turn's own position, so one read of them is as good as another.
    const authority = loaded.ok ? ok(new CompiledAuthority(loaded.value, { ancestorsPinned: true })) : loaded;
    return { revision, position, admittedAt, authority, policy, held: { checks, ceiling } };
  }

  /** The ancestors of grants as a turn opened at a position sees them; the world of a decision that spends nothing. */
  ancestorsAt(position: number, admittedAt: Instant): AsyncWorld {
    return {
      ancestor: ({ namespaceId, grantId }) => {
        const found = this.#fold.index.grantAt(namespaceId, grantId, position, admittedAt);
        return found === undefined ? 'not_found' : { found };
      },
    };
  }

  remember(claims: OpenedTurn, authority: TurnAuthority): void {
    const name = nameOf(claims);
    this.#forget(name);
    this.#held.set(name, authority);
    this.#capabilities += capabilitiesOf(authority);
    for (const oldest of this.#held.keys()) {
      if (this.#held.size <= this.#limits.turnsMax && this.#capabilities <= this.#limits.capabilitiesMax) return;
      this.#forget(oldest);
    }
  }

  #forget(name: string): void {
    const held = this.#held.get(name);
    if (held === undefined) return;
    this.#held.delete(name);
    this.#capabilities -= capabilitiesOf(held);
  }

  async #compute(claims: TurnClaims, context: AccessContext, storeId: string, deadlineMs: number): Promise<Result<TurnAuthority, string>> {
    const position = positionOf(claims.revision, storeId);
    if (position === undefined) return err('the turn was opened on another log');
    const reached = await this.#fold.until(position, deadlineMs);
    if (!reached.ok) return err(reached.error.reason);
    if (position < this.#fold.oldest) return err('the turn is older than what is remembered of the log');
    const admittedAt = instantOf(claims.admittedAt) ?? Infinity;
    const authority = this.frozen(claims.revision, position, admittedAt, { ...context, now: claims.admittedAt });
    this.remember(claims, authority);
    return ok(authority);
  }
}

const capabilitiesOf = ({ authority }: TurnAuthority): number =>
  authority.ok ? authority.value.held.grants.reduce((sum, { grant }) => sum + grant.capabilities.length, 0) : 0;
