import { type Address, byCodeUnit } from '@sharedos/contracts';
import { Chains } from './chains.ts';
import { type LoadedSections, Rows, type Sections } from './columns.ts';
import type { GrantTable } from './grant-table.ts';
import { NO_ROW, OrderedSets } from './ordered-sets.ts';

/** As what a principal has to do with a grant. */
export type GrantRole = 'issuer' | 'subject';

/** Of a list: what comes after a grant, so many at most. */
export interface PageAsked {
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface RowPage {
  readonly rows: readonly number[];
  /** The id to ask on after; absent when there is no more. A page may hold fewer rows than asked, or none, and go on. */
  readonly next?: string;
}

/** Rows looked at for one page: one that few grants belong to ends early instead of holding up everybody else's decisions. */
const LOOKED_AT_MAX = 20_000;

/** The grants of each principal, those over its resources, and what was derived from each grant: a page costs what is on it. */
export class GrantOrders {
  readonly #table: GrantTable;
  readonly #byId: Readonly<Record<GrantRole, GrantsById>>;
  readonly #ofOwner = new Chains();
  /** By namespace: grants over the resources of several owners, or of whichever owner presents them. */
  readonly #ofNoOwner = new Chains();
  readonly #ofParent = new Chains();

  constructor(table: GrantTable, heightOf: (row: number) => number) {
    this.#table = table;
    this.#byId = { issuer: new GrantsById(table, heightOf), subject: new GrantsById(table, heightOf) };
  }

  add(row: number): void {
    const { principals } = this.#table;
    const holder = this.#table.holderOf(row);
    const [subject, issuer] = [principals.subjectOf(holder), principals.issuerOf(holder)];
    const [owner, parent] = [this.#table.ownerOf(row), this.#table.parentOf(row)];
    this.#byId.issuer.add(issuer, row);
    this.#byId.subject.add(subject, row);
    if (owner === NO_ROW) this.#ofNoOwner.add(principals.namespaceRowOf(subject), row);
    else this.#ofOwner.add(owner, row);
    if (parent !== NO_ROW) this.#ofParent.add(parent, row);
  }

  /** Puts more of what a principal issued or holds in order of id. @returns Whether all of it is, so that a page costs no more than itself. */
  order(role: GrantRole, namespaceId: string, address: Address, rowsMax: number): boolean {
    const principal = this.#table.principals.find(namespaceId, address);
    return principal === undefined || this.#byId[role].order(principal, rowsMax);
  }

  /** Grants that a principal issued or holds, by id. */
  page(role: GrantRole, namespaceId: string, address: Address, asked: PageAsked, isIn: (row: number) => boolean): RowPage {
    const principal = this.#table.principals.find(namespaceId, address);
    return principal === undefined ? { rows: [] } : this.#page(this.#byId[role].after(principal, asked.after), asked.limit, isIn);
  }

  /** Grants over the resources of one owner alone, as they were issued. */
  ofOwner(namespaceId: string, address: Address, asked: PageAsked): RowPage {
    const owner = this.#table.principals.find(namespaceId, address);
    const isOne = (row: number): boolean => this.#table.ownerOf(row) === owner;
    return owner === undefined ? { rows: [] } : this.#chain(this.#ofOwner, owner, namespaceId, asked, isOne);
  }

  /** Grants over the resources of several owners, or of whichever owner presents them, as they were issued. */
  ofNoOwner(namespaceId: string, asked: PageAsked): RowPage {
    const namespace = this.#table.principals.namespaceRow(namespaceId);
    const isOne = (row: number): boolean => this.#table.ownerOf(row) === NO_ROW;
    return namespace === undefined ? { rows: [] } : this.#chain(this.#ofNoOwner, namespace, namespaceId, asked, isOne);
  }

  /** What was derived from a grant, and not what was derived from that in turn; as it was issued. */
  children(namespaceId: string, parentId: string, asked: PageAsked): RowPage {
    const parent = this.#table.find(namespaceId, parentId);
    const isOne = (row: number): boolean => this.#table.parentOf(row) === parent;
    return parent === undefined ? { rows: [] } : this.#chain(this.#ofParent, parent, namespaceId, asked, isOne);
  }

  sections(): Sections {
    const { size, principals } = this.#table;
    return new Map([
      ...this.#byId.issuer.sections('by-issuer'),
      ...this.#byId.subject.sections('by-subject'),
      ...this.#ofOwner.sections('of-owner', principals.size + 1, size + 1),
      ...this.#ofNoOwner.sections('of-no-owner', principals.namespaces + 1, size + 1),
      ...this.#ofParent.sections('of-parent', size + 1, size + 1),
    ]);
  }

  load(sections: LoadedSections): void {
    this.#byId.issuer.load('by-issuer', sections);
    this.#byId.subject.load('by-subject', sections);
    this.#ofOwner.load('of-owner', sections);
    this.#ofNoOwner.load('of-no-owner', sections);
    this.#ofParent.load('of-parent', sections);
  }

  /** @param isOne Whether a row is in the list at all: who asks on after another grant asks for nothing. */
  #chain(chains: Chains, list: number, namespaceId: string, { after, limit }: PageAsked, isOne: (row: number) => boolean): RowPage {
    const from = after === undefined ? undefined : this.#table.find(namespaceId, after);
    if (after !== undefined && (from === undefined || !isOne(from))) return { rows: [] };
    return this.#page(chains.after(list, from), limit, () => true);
  }

  #page(all: Iterable<number>, limit: number, isIn: (row: number) => boolean): RowPage {
    const rows: number[] = [];
    let looked = 0;
    let last = NO_ROW;
    for (const row of all) {
      // There is more: the page is full, or took long enough.
      if (rows.length >= limit || looked >= LOOKED_AT_MAX) return { rows, next: this.#table.idOf(last) };
      if (isIn(row)) rows.push(row);
      looked += 1;
      last = row;
    }
    return { rows };
  }
}

/**
 * The grants of each principal in one role. They are put in order of id when a page of them is asked for, and what was put in order
 * stays so: comparing ids is the most costly part of folding a grant, and most principals are never listed.
 */
class GrantsById {
  readonly #table: GrantTable;
  readonly #chains = new Chains();
  readonly #sets: OrderedSets;
  /** By principal: the root of what is in order, and the last row of the chain that is. */
  readonly #roots = new Rows();
  readonly #ordered = new Rows();

  constructor(table: GrantTable, heightOf: (row: number) => number) {
    this.#table = table;
    this.#sets = new OrderedSets(heightOf, (a, b) => {
      const [idA, idB] = [table.idOf(a), table.idOf(b)];
      return idA < idB || (idA === idB && a < b);
    });
  }

  add(principal: number, row: number): void {
    this.#chains.add(principal, row);
  }

  order(principal: number, rowsMax: number): boolean {
    let done = 0;
    for (const row of this.#chains.after(principal, this.#ordered.get(principal) || undefined)) {
      if (done >= rowsMax) return false;
      this.#roots.set(principal, this.#sets.insert(this.#roots.get(principal), row));
      this.#ordered.set(principal, row);
      done += 1;
    }
    return true;
  }

  after(principal: number, after: string | undefined): Iterable<number> {
    this.order(principal, Infinity);
    const isPast = (row: number): boolean => after === undefined || byCodeUnit(this.#table.idOf(row), after) > 0;
    return this.#sets.ascending(this.#roots.get(principal), isPast);
  }

  /** The order is left out: it is made anew when it is asked for. */
  sections(name: string): Sections {
    return this.#chains.sections(name, this.#table.principals.size + 1, this.#table.size + 1);
  }

  load(name: string, sections: LoadedSections): void {
    this.#chains.load(name, sections);
  }
}
