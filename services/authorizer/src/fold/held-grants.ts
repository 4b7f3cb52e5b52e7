import { type Instant, byCodeUnit } from '@sharedos/contracts';
import type { Position } from '@sharedos/event-store';
import { GRANTS_MAX, type ParsedGrant } from '@sharedos/kernel';
import { type LoadedSections, Numbers, Rows, type Sections, columnSections, loadColumns } from './columns.ts';
import type { GrantTable } from './grant-table.ts';
import { NO_ROW, OrderedSets } from './ordered-sets.ts';

/** A moment of the log: what stands at or below a position, as a turn admitted at this instant sees it. */
export interface Moment {
  readonly position: Position;
  readonly admittedAt: Instant;
}

/** A list that was handed out, and for which moments it is the right one again. */
interface KnownList {
  readonly rows: readonly number[];
  readonly grants: readonly ParsedGrant[];
  readonly live: number;
  /** The last change of the holder that it holds: right at every later position, while this is still the last. */
  readonly changedAt: Position;
  /** From and until when nothing in it expires, and every revocation in it was before. */
  readonly from: Instant;
  readonly until: Instant;
}

/** Grants in lists that are remembered, together. Each takes about a kilobyte. */
const KNOWN_GRANTS_MAX = 131_072;

/**
 * The grants of each holder, that is of one subject from one issuer. They stand in two sets by when they end: those not revoked and
 * those revoked. So what a turn sees is found next to a place in them, however many have ended: the cost is that of what is
 * handed out, and of what the holder's last changes took back for a turn that began before them.
 */
export class HeldGrants {
  readonly #table: GrantTable;
  readonly #byEnd: OrderedSets;
  readonly #holders = {
    standing: new Rows(),
    revoked: new Rows(),
    lastRevoked: new Rows(),
    changedAt: new Numbers(),
  };
  readonly #grants = {
    /** When it ends by itself or by its revocation, whichever is first. */
    end: new Numbers(),
    /** The one of its holder that was revoked before it. */
    revokedBefore: new Rows(),
  };
  readonly #known = new Map<number, KnownList>();
  #knownGrants = 0;
  /** Rows looked at since the start, for tests of what a question costs. */
  steps = 0;

  constructor(table: GrantTable, heightOf: (row: number) => number) {
    this.#table = table;
    this.#byEnd = new OrderedSets(heightOf, (a, b) => {
      const endA = this.#endOf(a);
      const endB = this.#endOf(b);
      return endA < endB || (endA === endB && a < b);
    });
  }

  add(row: number): void {
    const holder = this.#table.holderOf(row);
    const { standing, changedAt } = this.#holders;
    this.#grants.end.set(row, this.#table.expiresAt(row));
    standing.set(holder, this.#byEnd.insert(standing.get(holder), row));
    changedAt.set(holder, this.#table.issuedPosition(row));
  }

  /** Takes note of a revocation that stands in the table. */
  revoke(row: number): void {
    const holder = this.#table.holderOf(row);
    const { standing, revoked, lastRevoked, changedAt } = this.#holders;
    standing.set(holder, this.#byEnd.remove(standing.get(holder), row));
    this.#grants.end.set(row, Math.min(this.#table.expiresAt(row), this.#table.revokedAt(row)));
    revoked.set(holder, this.#byEnd.insert(revoked.get(holder), row));
    this.#grants.revokedBefore.set(row, lastRevoked.get(holder));
    lastRevoked.set(holder, row);
    changedAt.set(holder, this.#table.revokedPosition(row));
  }

  /**
   * What a holder has at a moment. Live grants come first, those without `maxUses` before bounded ones, then the earliest to
   * expire, to be issued, and by id, so that an unbounded grant is never shadowed. The most recently ended follow, revoked or
   * expired by the admission, up to {@link GRANTS_MAX} in all, so an agent does not lock up with age.
   *
   * @param liveMax With more live grants than this, one more than this is returned, and none that ended: the loader refuses them.
   * @returns The same list when nothing of it has changed.
   */
  at(holder: number, moment: Moment, liveMax: number): readonly ParsedGrant[] {
    const known = this.#known.get(holder);
    if (known !== undefined && known.live <= liveMax && this.#isRightAt(known, holder, moment)) return known.grants;
    const { live, ended } = this.#rowsAt(holder, moment, liveMax);
    const rows = [...live, ...ended];
    const grants = this.#read(rows, moment, known);
    if (live.length <= liveMax) this.#remember(holder, moment, { rows, grants, live: live.length });
    return grants;
  }

  sections(): Sections {
    const holders = this.#table.principals.holders + 1;
    const rows = this.#table.size + 1;
    return new Map([
      ...columnSections('held', this.#holders, holders),
      ...columnSections('held', this.#grants, rows),
      ...columnSections('held', { byEnd: this.#byEnd.children }, 2 * rows),
    ]);
  }

  load(sections: LoadedSections): void {
    loadColumns('held', { ...this.#holders, ...this.#grants, byEnd: this.#byEnd.children }, sections);
  }

  #endOf(row: number): Instant {
    return this.#grants.end.get(row);
  }

  #rowsAt(holder: number, moment: Moment, liveMax: number): { readonly live: readonly number[]; readonly ended: readonly number[] } {
    const { position, admittedAt } = moment;
    const table = this.#table;
    // What expired before the turn began can never be used in it: a turn's time only goes forward.
    const isPast = (row: number): boolean => this.#endOf(row) > admittedAt;
    const standing = this.#holders.standing.get(holder);
    const wasIssued = (row: number): boolean => table.isIssuedAt(row, position);
    const returned = this.#revokedAfter(holder, position).filter(wasIssued);
    const live = returned.filter((row) => table.expiresAt(row) > admittedAt);
    for (const row of this.#byEnd.ascending(standing, isPast)) {
      this.steps += 1;
      if (!wasIssued(row)) continue;
      live.push(row);
      if (live.length > liveMax) return { live, ended: [] };
    }
    live.sort((a, b) => this.#inSourceOrder(a, b));
    const room = GRANTS_MAX - live.length;
    if (room <= 0) return { live, ended: [] };

    const expired = returned
      .filter((row) => table.expiresAt(row) <= admittedAt)
      .sort((a, b) => ascending(table.expiresAt(b), table.expiresAt(a)) || b - a);
    const wasRevoked = (row: number): boolean => wasIssued(row) && table.isRevokedAt(row, position);
    const ended = latestFirst(
      [
        { rows: expired.values(), isIn: wasIssued },
        { rows: this.#byEnd.descending(standing, isPast), isIn: wasIssued },
        { rows: this.#byEnd.descending(this.#holders.revoked.get(holder), () => false), isIn: wasRevoked },
      ].map(({ rows, isIn }) => this.#counted(rows, isIn)),
      (row) => (table.isRevokedAt(row, position) ? this.#endOf(row) : table.expiresAt(row)),
      room,
    );
    return { live, ended };
  }

  *#counted(rows: Iterable<number>, isIn: (row: number) => boolean): Generator<number, void, undefined> {
    for (const row of rows) {
      this.steps += 1;
      if (isIn(row)) yield row;
    }
  }

  /** Those revoked after a position, which at that position still stood. */
  #revokedAfter(holder: number, position: Position): number[] {
    const after: number[] = [];
    let row = this.#holders.lastRevoked.get(holder);
    for (; row !== NO_ROW && this.#table.revokedPosition(row) > position; row = this.#grants.revokedBefore.get(row)) after.push(row);
    this.steps += after.length;
    return after;
  }

  #inSourceOrder(a: number, b: number): number {
    const table = this.#table;
    return (
      Number(table.isBounded(a)) - Number(table.isBounded(b)) ||
      ascending(table.expiresAt(a), table.expiresAt(b)) ||
      ascending(table.issuedAt(a), table.issuedAt(b)) ||
      byCodeUnit(table.idOf(a), table.idOf(b))
    );
  }

  #isRightAt(known: KnownList, holder: number, { position, admittedAt }: Moment): boolean {
    const changedAt = this.#holders.changedAt.get(holder);
    return known.changedAt === changedAt && changedAt <= position && known.from <= admittedAt && admittedAt < known.until;
  }

  /** What was read before is read again only where it looks different now. */
  #read(rows: readonly number[], { position, admittedAt }: Moment, known: KnownList | undefined): readonly ParsedGrant[] {
    const read = new Map<number, ParsedGrant>();
    known?.rows.forEach((row, index) => {
      const grant = known.grants[index] as ParsedGrant;
      if (grant.window.revokedAt === Infinity) read.set(row, grant);
    });
    return rows.map((row) => {
      const isStanding = !this.#table.isRevokedAt(row, position);
      return (isStanding ? read.get(row) : undefined) ?? this.#table.asSeenAt(row, position, admittedAt);
    });
  }

  #remember(holder: number, { position, admittedAt }: Moment, list: Pick<KnownList, 'rows' | 'grants' | 'live'>): void {
    const table = this.#table;
    const changedAt = this.#holders.changedAt.get(holder);
    if (changedAt > position) return;
    let until = Infinity;
    for (const row of list.rows) {
      const isRevoked = table.isRevokedAt(row, position);
      // A revocation stamped after the admission was handed out as of the admission: another admission sees another one.
      if (isRevoked && table.revokedAt(row) > admittedAt) return;
      if (!isRevoked && table.expiresAt(row) > admittedAt) until = Math.min(until, table.expiresAt(row));
    }
    this.#forget(holder);
    this.#known.set(holder, { ...list, changedAt, from: admittedAt, until });
    this.#knownGrants += list.rows.length;
    for (const oldest of this.#known.keys()) {
      if (this.#knownGrants <= KNOWN_GRANTS_MAX) break;
      this.#forget(oldest);
    }
  }

  #forget(holder: number): void {
    this.#knownGrants -= this.#known.get(holder)?.rows.length ?? 0;
    this.#known.delete(holder);
  }
}

/** Merges lists, each with the latest end first; of equal ends the later row comes first. */
const latestFirst = (lists: readonly Iterator<number>[], endOf: (row: number) => Instant, max: number): readonly number[] => {
  const heads = lists.map((list) => ({ list, row: nextOf(list) }));
  const merged: number[] = [];
  while (merged.length < max) {
    let first: (typeof heads)[number] | undefined;
    for (const head of heads) {
      if (head.row === undefined) continue;
      const firstRow = first?.row;
      const later =
        firstRow === undefined || endOf(head.row) > endOf(firstRow) || (endOf(head.row) === endOf(firstRow) && head.row > firstRow);
      if (later) first = head;
    }
    if (first?.row === undefined) break;
    merged.push(first.row);
    first.row = nextOf(first.list);
  }
  return merged;
};

const nextOf = (rows: Iterator<number>): number | undefined => {
  const { done, value } = rows.next();
  return done === true ? undefined : value;
};

const ascending = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);
