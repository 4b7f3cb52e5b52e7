import type { SQLInputValue } from 'node:sqlite';
import {
  type Address,
  type AuditEvent,
  type AuditRecord,
  type SealedHead,
  type SummaryOfRecords,
  addressKey,
  byCodeUnit,
  encodeName,
  instantOf,
} from '@sharedos/contracts';
import type { RecordDatabase } from './record-database.ts';

/** What a query asks of the records of one namespace; an absent field does not narrow. */
export interface RecordFilter {
  readonly traceId?: string | undefined;
  readonly operationId?: string | undefined;
  readonly turnId?: string | undefined;
  readonly grantId?: string | undefined;
  readonly actor?: Address | undefined;
  readonly resource?: { readonly namespace: string; readonly path: readonly string[] } | undefined;
  readonly reason?: string | undefined;
  readonly type?: string | undefined;
  readonly outcome?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

export interface RecordPage {
  readonly records: readonly AuditRecord[];
  /** Where the next page begins, when there is one. */
  readonly next?: number;
}

/** Whose records are asked, and up to where they are folded. */
export interface Asked {
  readonly namespaceId: string;
  /** Its key in the database. */
  readonly namespace: number;
  readonly position: number;
}

const SUMMARY_ROWS = 500;

export const queryPage = (
  database: RecordDatabase,
  asked: Asked,
  filter: RecordFilter,
  page: { readonly after: number; readonly limit: number },
): RecordPage => {
  const where = narrowed(database, asked, page.after, filter);
  const rows = database
    .statement(`SELECT sequence, body FROM record WHERE ${where.text} ORDER BY sequence LIMIT ?`)
    .all(...where.values, page.limit + 1) as unknown as { sequence: number; body: string }[];
  const records = rows.slice(0, page.limit).map(({ sequence, body }) => ({ sequence, event: eventOf(body) }));
  return rows.length > page.limit ? { records, next: records.at(-1)?.sequence ?? page.after } : { records };
};

export const recordWithId = (database: RecordDatabase, namespace: number, id: string): AuditRecord | undefined => {
  const row = database.statement('SELECT sequence, body FROM record WHERE namespace = ? AND id = ? AND copy = 0').get(namespace, id) as
    | { sequence: number; body: string }
    | undefined;
  return row === undefined ? undefined : { sequence: row.sequence, event: eventOf(row.body) };
};

export const summaryOf = (database: RecordDatabase, asked: Asked, time: Pick<RecordFilter, 'since' | 'until'>): SummaryOfRecords => {
  const where = narrowed(database, asked, 0, time);
  const groups = database
    .statement(
      `SELECT type, outcome, outage, reason, count(*) AS count FROM record INDEXED BY by_kind WHERE ${where.text}
       GROUP BY type, outcome, outage, reason`,
    )
    .all(...where.values) as unknown as Group[];
  const uses = database
    .statement(
      `SELECT grantId, count(*) AS taken FROM record WHERE ${where.text} AND used = 1
       GROUP BY grantId ORDER BY taken DESC, grantId LIMIT ${SUMMARY_ROWS}`,
    )
    .all(...where.values) as unknown as { readonly grantId: string; readonly taken: number }[];
  const released = new Map(
    (
      database
        .statement(
          `SELECT grantId, count(*) AS released FROM record WHERE ${where.text} AND type = 'grant.usage.released' GROUP BY grantId`,
        )
        .all(...where.values) as unknown as { readonly grantId: string; readonly released: number }[]
    ).map((row) => [row.grantId, row.released]),
  );
  const head = database.statement('SELECT body FROM head WHERE namespace = ? ORDER BY position DESC LIMIT 1').get(asked.namespaceId) as
    | { body: string }
    | undefined;
  const decided = (outcome: string, outage: number): number =>
    sum(groups.filter((group) => group.type === 'authorization.checked' && group.outcome === outcome && group.outage === outage));
  return {
    records: sum(groups),
    decisions: { allowed: decided('allowed', 0), denied: decided('denied', 0), outages: decided('denied', 1) },
    reasons: groups
      .flatMap(({ reason, ...group }) => (reason === null ? [] : [{ ...group, reason, outage: group.outage === 1 }]))
      .sort((a, b) => b.count - a.count || byCodeUnit(a.reason, b.reason) || byCodeUnit(a.type, b.type))
      .slice(0, SUMMARY_ROWS),
    uses: uses.map(({ grantId, taken }) => ({ grantId, taken, released: released.get(grantId) ?? 0 })),
    ...(head === undefined ? {} : { head: JSON.parse(head.body) as SealedHead }),
    upTo: asked.position,
  };
};

const narrowed = (database: RecordDatabase, { namespace, position }: Asked, after: number, filter: RecordFilter): Where => {
  const where = new Where(namespace, after);
  where.equal('trace', filter.traceId);
  where.equal('turn', filter.turnId);
  where.equal('grantId', filter.grantId);
  where.equal('actor', filter.actor === undefined ? undefined : addressKey(filter.actor));
  where.equal('reason', filter.reason);
  where.equal('type', filter.type);
  where.equal('outcome', filter.outcome);
  if (filter.operationId !== undefined) where.and('(operation = ? OR message = ?)', filter.operationId, filter.operationId);
  if (filter.resource !== undefined) {
    const key = resourceKey(filter.resource);
    // Names are joined by a dot, and none holds one: everything below a name lies between it with a dot and with what follows a dot.
    where.and('(resource = ? OR (resource >= ? AND resource < ?))', key, `${key}.`, `${key}/`);
  }
  if (filter.since !== undefined) {
    const since = instantOf(filter.since) ?? 0;
    const first = database
      .statement('SELECT sequence FROM record WHERE namespace = ? AND latest >= ? ORDER BY latest, sequence LIMIT 1')
      .get(namespace, since) as { sequence: number } | undefined;
    where.and('sequence >= ?', first?.sequence ?? position + 1);
    where.and('at >= ?', since);
  }
  if (filter.until !== undefined) where.and('at < ?', instantOf(filter.until) ?? 0);
  return where;
};

interface Group {
  readonly type: AuditEvent['type'];
  readonly outcome: AuditEvent['outcome'];
  readonly outage: number;
  readonly reason: string | null;
  readonly count: number;
}

const sum = (groups: readonly Group[]): number => groups.reduce((total, { count }) => total + count, 0);

/** Conditions that all hold, and the values in them. Values never become part of the text. */
class Where {
  readonly #conditions: string[] = ['namespace = ?', 'sequence > ?', 'copy = 0'];
  readonly values: SQLInputValue[];

  constructor(namespace: number, after: number) {
    this.values = [namespace, after];
  }

  get text(): string {
    return this.#conditions.join(' AND ');
  }

  and(condition: string, ...values: readonly SQLInputValue[]): void {
    this.#conditions.push(condition);
    this.values.push(...values);
  }

  equal(column: string, value: string | undefined): void {
    if (value !== undefined) this.and(`${column} = ?`, value);
  }
}

export const resourceKey = ({ namespace, path }: { readonly namespace: string; readonly path: readonly string[] }): string =>
  encodeName(namespace, ...path);

export const eventOf = (body: string): AuditEvent => JSON.parse(body) as AuditEvent;
