import { randomInt } from 'node:crypto';
import { type Address, type CapabilityGrant, type GrantEvent, type Instant, instantOf } from '@sharedos/contracts';
import type { Position } from '@sharedos/event-store';
import type { ParsedGrant } from '@sharedos/kernel';
import type { LoadedSections, Sections } from './columns.ts';
import { GrantChanges } from './grant-changes.ts';
import { GrantOrders, type GrantRole, type PageAsked, type RowPage } from './grant-orders.ts';
import { GrantTable } from './grant-table.ts';
import { HeldGrants } from './held-grants.ts';
import { LatestInstants, type SavedInstants } from './latest-instants.ts';
import { heightsFrom } from './ordered-sets.ts';

export interface GrantFilter {
  /** Live: neither revoked nor expired by `now`. What became of the grants it was derived from is not asked. */
  readonly state?: 'live' | 'ended' | undefined;
  readonly subject?: Address | undefined;
  readonly issuer?: Address | undefined;
}

export interface GrantPage {
  readonly grants: readonly CapabilityGrant[];
  /** The id to ask on after; absent when there is no more. A page may hold fewer than asked, or none, and go on. */
  readonly next?: string;
}

/** The answers to "now": the head of the log, with no instant to hold a revocation back to. */
const NOW = { position: Infinity, admittedAt: Infinity } as const;
/** Changes looked at for one answer. */
const LOOKED_AT_MAX = 100_000;

/**
 * The log of grants, folded: who held what, issued by whom, at any position. It is the grant source of the services, and the
 * resolver of ancestors. A projection refuses nothing: it folds what happened.
 *
 * @see docs/architecture.md, "The log, revisions, opening a turn"
 */
export class AuthorityIndex {
  readonly #seed: number;
  readonly #table = new GrantTable();
  readonly #held: HeldGrants;
  readonly #orders: GrantOrders;
  readonly #changes: GrantChanges;
  readonly #latest = new LatestInstants();

  /** @param seed Of the shape of its orders: nobody who chooses ids may know it. */
  constructor(seed: number = randomInt(2 ** 32)) {
    this.#seed = seed;
    const heightOf = heightsFrom(seed);
    this.#held = new HeldGrants(this.#table, heightOf);
    this.#orders = new GrantOrders(this.#table, heightOf);
    this.#changes = new GrantChanges(this.#table);
  }

  /** @returns The principals that it concerns, or none when it says something of a grant that is not there. */
  apply(namespaceId: string, event: GrantEvent, at: Instant, position: Position): readonly Address[] {
    this.#latest.note(at, position);
    switch (event.type) {
      case 'GrantIssued':
        return this.#issue(event.grant, position);
      case 'GrantBound':
        this.#table.bind(namespaceId, event.grantId, event.callDigest);
        return [];
      case 'GrantRevoked':
        return this.#revoke(namespaceId, event.grantId, instantOf(event.revokedAt) ?? at, position);
    }
  }

  get size(): number {
    return this.#table.size;
  }

  /** Rows looked at for {@link heldAt} since the start: what it costs, whatever machine it runs on. */
  get steps(): number {
    return this.#held.steps;
  }

  /** Grants read out of their text since the start, ancestors among them. */
  get grantsRead(): number {
    return this.#table.read;
  }

  /** The greatest `at` of any event at or below `position`: no turn opened there may be admitted earlier. */
  latestInstant(position: Position): Instant {
    return this.#latest.upTo(position);
  }

  /** The position of the last event at or before an instant, by the greatest `at` up to it; 0 when there is none. */
  positionAt(instant: Instant): Position {
    return this.#latest.lastAt(instant);
  }

  /** The position below which something was forgotten. */
  get oldest(): Position {
    return this.#latest.oldest;
  }

  /** Forgets what is only needed to answer below a position. Grants are kept: an ended one says why a chain broke. */
  forget(below: Position): void {
    this.#latest.forget(below);
  }

  /**
   * Grants held by `subject` from `issuer` at `position`, as seen by a turn admitted at `admittedAt`: in the order of
   * {@link HeldGrants.at}.
   *
   * @param liveMax With more live grants than this, one more than this is returned, in no order, for the loader to refuse.
   */
  heldAt(
    namespaceId: string,
    subject: Address,
    issuer: Address,
    position: Position,
    admittedAt: Instant,
    liveMax: number = Infinity,
  ): readonly ParsedGrant[] {
    const holder = this.#table.principals.findHolder(namespaceId, subject, issuer);
    return holder === undefined ? [] : this.#held.at(holder, { position, admittedAt }, liveMax);
  }

  /** One grant at `position`, revoked or not; revoked ones are kept, so a chain can say why it broke. */
  grantAt(namespaceId: string, grantId: string, position: Position, admittedAt: Instant): ParsedGrant | undefined {
    const row = this.#table.find(namespaceId, grantId);
    return row === undefined || !this.#table.isIssuedAt(row, position) ? undefined : this.#table.asSeenAt(row, position, admittedAt);
  }

  /** Whether a grant of this id was ever issued. */
  has(namespaceId: string, grantId: string): boolean {
    return this.#table.find(namespaceId, grantId) !== undefined;
  }

  /**
   * Makes ready a part of what {@link list} needs, so that listing very many grants holds up nobody else's decisions.
   *
   * @returns Whether it is all ready.
   */
  order(namespaceId: string, role: GrantRole, principal: Address, grantsMax: number): boolean {
    return this.#orders.order(role, namespaceId, principal, grantsMax);
  }

  /** Grants of a namespace that `principal` issued or holds, ordered by id. */
  list(namespaceId: string, role: GrantRole, principal: Address, asked: PageAsked, filter: GrantFilter = {}, now: Instant = 0): GrantPage {
    return this.#pageOf(this.#orders.page(role, namespaceId, principal, asked, this.#passes(namespaceId, filter, now)));
  }

  /** Grants over the resources of one owner alone, in the order in which they were issued. */
  ofOwner(namespaceId: string, owner: Address, asked: PageAsked): GrantPage {
    return this.#pageOf(this.#orders.ofOwner(namespaceId, owner, asked));
  }

  /** Grants over the resources of several owners, or of whichever owner presents them, in the order in which they were issued. */
  ofNoOwner(namespaceId: string, asked: PageAsked): GrantPage {
    return this.#pageOf(this.#orders.ofNoOwner(namespaceId, asked));
  }

  /** What was derived from a grant directly, in the order in which it was issued; nothing for one that is not there. */
  children(namespaceId: string, grantId: string, asked: PageAsked): GrantPage {
    return this.#pageOf(this.#orders.children(namespaceId, grantId, asked));
  }

  /**
   * Grants of a namespace that `principal` issued or holds and that were issued or revoked after a position, in the order in which
   * that happened, as they are now.
   *
   * @returns `upTo`: every change up to this position was looked at; ask on after it. The head of the fold unless there was too much.
   */
  changedAfter(
    namespaceId: string,
    principal: Address,
    position: Position,
    { limit, head }: { readonly limit: number; readonly head: Position },
  ): { readonly grants: readonly CapabilityGrant[]; readonly upTo: Position } {
    const { principals } = this.#table;
    const concerned = principals.find(namespaceId, principal);
    if (concerned === undefined) return { grants: [], upTo: head };
    const rows = new Set<number>();
    let looked = 0;
    let upTo = position;
    for (const change of this.#changes.after(position)) {
      // What one append did stands at one position, and is told whole.
      if ((rows.size >= limit || looked >= LOOKED_AT_MAX) && change.position > upTo) return { grants: this.#now([...rows]), upTo };
      looked += 1;
      upTo = change.position;
      const holder = this.#table.holderOf(change.row);
      if (principals.subjectOf(holder) === concerned || principals.issuerOf(holder) === concerned) rows.add(change.row);
    }
    return { grants: this.#now([...rows]), upTo: head };
  }

  /** All of it, to start from again; columns are copied, so what is folded afterwards does not show. */
  snapshot(): Sections {
    const head = JSON.stringify({ seed: this.#seed, latest: this.#latest.save() });
    return new Map([
      ['index', [new TextEncoder().encode(head)]],
      ...this.#table.sections(),
      ...this.#held.sections(),
      ...this.#orders.sections(),
      ...this.#changes.sections(),
    ]);
  }

  /** @throws When the sections are not those of a snapshot of this format. */
  static restore(sections: LoadedSections): AuthorityIndex {
    const head = JSON.parse(new TextDecoder().decode(sections.get('index'))) as { seed: number; latest: SavedInstants };
    const index = new AuthorityIndex(head.seed);
    index.#latest.load(head.latest);
    index.#table.load(sections);
    index.#held.load(sections);
    index.#orders.load(sections);
    index.#changes.load(sections);
    return index;
  }

  #issue(grant: CapabilityGrant, position: Position): readonly Address[] {
    const row = this.#table.add(grant, position);
    this.#held.add(row);
    this.#orders.add(row);
    return [grant.subject, grant.issuer];
  }

  #revoke(namespaceId: string, grantId: string, revokedAt: Instant, position: Position): readonly Address[] {
    const row = this.#table.find(namespaceId, grantId);
    if (row === undefined || this.#table.isRevokedAt(row, Infinity)) return [];
    this.#table.revoke(row, revokedAt, position);
    this.#held.revoke(row);
    this.#changes.revoke(row);
    const { principals } = this.#table;
    const holder = this.#table.holderOf(row);
    return [principals.addressOf(principals.subjectOf(holder)), principals.addressOf(principals.issuerOf(holder))];
  }

  #passes(namespaceId: string, { state, subject, issuer }: GrantFilter, now: Instant): (row: number) => boolean {
    const table = this.#table;
    const { principals } = table;
    const held = subject === undefined ? undefined : (principals.find(namespaceId, subject) ?? 0);
    const from = issuer === undefined ? undefined : (principals.find(namespaceId, issuer) ?? 0);
    const isLive = (row: number): boolean => !table.isRevokedAt(row, Infinity) && table.expiresAt(row) > now;
    return (row) => {
      const holder = table.holderOf(row);
      if (held !== undefined && principals.subjectOf(holder) !== held) return false;
      if (from !== undefined && principals.issuerOf(holder) !== from) return false;
      return state === undefined || isLive(row) === (state === 'live');
    };
  }

  #pageOf({ rows, next }: RowPage): GrantPage {
    return { grants: this.#now(rows), ...(next === undefined ? {} : { next }) };
  }

  #now(rows: readonly number[]): readonly CapabilityGrant[] {
    return rows.map((row) => this.#table.asSeenAt(row, NOW.position, NOW.admittedAt).grant);
  }
}
