import type { AuthorityClient } from '@sharedos/bus';
import {
  type AccessContext,
  type AuthorityQuestion,
  type CapabilityRequirement,
  type Instant,
  type OpenedAuthority,
  type ReachAndDiscovery,
  type Revision,
  type RuntimeChoice,
  type UseTaken,
  type Verdict,
  timestampOf,
} from '@sharedos/contracts';
import type { AuthorityFailure } from '@sharedos/kernel';
import type { Ledger } from '@sharedos/ledger';
import { AuditOutage } from '@sharedos/runtime';
import { familiesOn } from './context-tools.ts';
import { operationOf } from './operation-names.ts';
import { type Counters, giveBack } from './reserved-uses.ts';

/** Ceilings that one question to an authorizer may hold. */
const ASKED_AT_ONCE = 512;

/** Whoever answers for authority. No answer is a failure, never an allow. */
export type AuthorityPort = Pick<AuthorityClient, 'open' | 'decide' | 'reach'>;

export interface TurnLeasePorts {
  readonly authority: AuthorityPort;
  readonly ledger: Pick<Ledger, 'claimUse' | 'releaseUse' | 'uses'>;
  readonly counters: Counters;
  readonly clock: () => Instant;
  readonly ids: () => string;
  /** Tells the authorizers that a use handed out in this epoch had been spent before. */
  readonly distrust: (namespaceId: string, epoch: string) => Promise<void>;
}

export interface TurnIdentity {
  readonly turnId: string;
  /** The turn's own name among operations; the stem of the names that uses are taken under. */
  readonly operation: string;
  readonly executionId: string;
  /** Longest the turn may last, in milliseconds. */
  readonly validForMs: number;
}

/**
 * The authority of one turn, held as a token that the authorizers answer to: frozen when it was opened, and held as unavailable
 * for the whole turn if it could not be. There is nothing to give back.
 */
export class TurnLease {
  readonly #ports: TurnLeasePorts;
  readonly #turn: TurnIdentity;
  #opened: OpenedAuthority | undefined;
  #failure: AuthorityFailure = { code: 'grant_source_failed' };

  constructor(ports: TurnLeasePorts, turn: TurnIdentity) {
    this.#ports = ports;
    this.#turn = turn;
  }

  /** @returns Whether an authorizer answered, and so recorded the load. Rejects with `AuditOutage` when it could not record it. */
  async open(context: AccessContext): Promise<boolean> {
    const { turnId, validForMs } = this.#turn;
    const opened = await this.#ports.authority.open({ turnId, context, validForMs, auditId: this.#ports.ids() });
    if (!opened.ok) {
      if (opened.error.code === 'audit_unavailable') throw new AuditOutage(opened.error.reason);
      return false;
    }
    this.#opened = opened.value;
    if (opened.value.status === 'unavailable') {
      const { code, detail } = opened.value;
      this.#failure = detail === undefined ? { code } : { code, detail };
    }
    return true;
  }

  /** The revision that the turn sees, once it is open. */
  get revision(): Revision | undefined {
    return this.#opened?.revision;
  }

  /** Families of tools that are on in the turn: those of its context that were chosen at that revision, all where nobody chose. */
  toolNamespaces({ enabledToolNamespaces }: AccessContext): readonly string[] {
    return familiesOn(enabledToolNamespaces, this.#opened?.toolNamespaces);
  }

  /** The version of the namespace's policy at that revision, where it has one. */
  get hostPolicyVersion(): string | undefined {
    return this.#opened?.hostPolicyVersion;
  }

  /** What the registration of the agent says of its runtime at that revision. */
  get runtimeChoice(): RuntimeChoice | undefined {
    return this.#opened?.runtime;
  }

  get executionId(): string {
    return this.#turn.executionId;
  }

  /** Whether a grant that it holds allows one call alone: then each call says which it is. */
  get holdsBoundGrants(): boolean {
    return this.#opened?.boundCalls === true;
  }

  /** Whether the owner is to be asked about calls that no grant covers. */
  get asksAboutRefusedCalls(): boolean {
    return this.#opened?.asksAboutRefusedCalls === true;
  }

  /** Whether the authority of the turn could be trusted. */
  get isHeld(): boolean {
    return this.#opened?.status === 'resolved';
  }

  /** Names the grants held; absent when they could not be trusted. */
  get authorityHash(): string | undefined {
    return this.#opened?.status === 'resolved' ? this.#opened.snapshot.hash : undefined;
  }

  /** Why there is no authority, where there is none. For records alone. */
  get failure(): AuthorityFailure {
    return this.#failure;
  }

  /** @returns `undefined` when there was no answer: then nothing is decided, and nothing may run. */
  async decide(context: AccessContext, question: AuthorityQuestion): Promise<Verdict | undefined> {
    if (this.#opened === undefined) return undefined;
    const { ids, authority } = this.#ports;
    const verdict = await authority.decide(this.#opened.token, context, question, [ids(), ids()]);
    return verdict.ok ? verdict.value : undefined;
  }

  /** Where the turn may operate and which of `ceilings` it may discover; `undefined` without authority or an answer. */
  async reach(context: AccessContext, ceilings: CapabilityRequirement[]): Promise<ReachAndDiscovery | undefined> {
    if (this.#opened?.status !== 'resolved') return undefined;
    const { token } = this.#opened;
    const first = await this.#ports.authority.reach(token, context, ceilings.slice(0, ASKED_AT_ONCE));
    if (!first.ok) return undefined;
    const discovered = [...first.value.discovered];
    for (let from = ASKED_AT_ONCE; from < ceilings.length; from += ASKED_AT_ONCE) {
      const more = await this.#ports.authority.reach(token, context, ceilings.slice(from, from + ASKED_AT_ONCE));
      if (!more.ok) return undefined;
      discovered.push(...more.value.discovered);
    }
    return { ...first.value, discovered };
  }

  /** Makes uses that were handed out really spent, all of them. `false`: none may be used, and nothing may run on any. */
  async spend({ namespaceId }: AccessContext, uses: readonly UseTaken[], operation: string): Promise<boolean> {
    const { ledger, clock, distrust } = this.#ports;
    const claim = { at: timestampOf(clock()), operation, turn: this.#turn.turnId };
    const claims = await Promise.all(
      uses.map(async ({ grantId, ordinal, epoch }) => {
        const claimed = await ledger.claimUse(namespaceId, { ...claim, grantId, ordinal });
        // Handed out twice: the counters lost their memory. They are closed until they agree with the claims again.
        if (!claimed.ok && claimed.error.kind === 'taken') await distrust(namespaceId, epoch);
        return claimed.ok;
      }),
    );
    return claims.every(Boolean);
  }

  /** Gives uses back that the turn's records say nothing will run on. `false`: to be done again when the turn has ended. */
  giveBack({ namespaceId }: AccessContext, uses: readonly UseTaken[], operation: string): Promise<boolean> {
    const [{ epoch } = { epoch: '' }] = uses;
    const held = uses.map(({ grantId, ordinal }) => ({ grantId, ordinal, operation }));
    return giveBack(this.#ports, namespaceId, this.#turn.turnId, { epoch, uses: held });
  }

  /** One name for one effect of the turn, the same for a retry and for nothing else. */
  operation(kind: 'admission' | 'call', id = ''): string {
    return operationOf(this.#turn.operation, kind, id);
  }
}

/** All uses that a verdict was handed, nearest first. */
export const usesIn = ({ use, above = [] }: Pick<Verdict, 'use' | 'above'>): readonly UseTaken[] =>
  use === undefined ? [] : [use, ...above];

/** The same, as a record states them. */
export const usesOnRecord = ({ use, above }: Pick<Verdict, 'use' | 'above'>): Pick<Verdict, 'use' | 'above'> => ({
  ...(use === undefined ? {} : { use }),
  ...(above === undefined ? {} : { above }),
});
