import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import {
  type Address,
  type AuditEvent,
  type AuditRecord,
  type ChainState,
  type ChainedRecord,
  type SealedHead,
  type SummaryOfRecords,
  addressKey,
  byCodeUnit,
  chainAfter,
  chainStart,
  encodeName,
  instantOf,
} from '@sharedos/contracts';
import { SCHEMA, SCHEMA_VERSION } from './record-schema.ts';

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

export interface StoredAudit {
  readonly sequence: number;
  readonly event: AuditEvent;
}

/** The tip of one namespace's chain. */
export interface NamespaceTip extends ChainState {
  readonly namespaceId: string;
}

interface Namespace {
  readonly key: number;
  tip: ChainState;
  latest: number;
}

const SUMMARY_ROWS = 500;

/**
 * Audit records folded for reading, in an embedded database: every look-up is an index, and the database may be thrown away at
 * any time, for it is rebuilt from the stream and nothing else. Delivery of records is at least once, so a record is folded by its
 * id: the first copy stands, and a second keeps only its place in the chain.
 *
 * @see spec/contracts.md §9
 */
export class RecordStore {
  readonly #database: DatabaseSync;
  readonly #recordsMax: number;
  readonly #namespaces = new Map<string, Namespace>();
  readonly #prepared = new Map<string, StatementSync>();
  #position: number;
  #headsPosition: number;
  #heldAfter: number;
  #held: number;

  /**
   * @param path A file, or `:memory:`. A file of another stream, or of another version of this store, is emptied.
   * @param streamId Which stream the records come from, for its sequences mean nothing in another.
   * @param recordsMax Records kept, the newest; older ones stay in the stream.
   */
  constructor(path: string, { streamId, recordsMax }: { readonly streamId: string; readonly recordsMax: number }) {
    this.#recordsMax = recordsMax;
    this.#database = new DatabaseSync(path);
    // A crash loses at most the end, and the end is read again: nothing here is worth a wait for the disk.
    this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536');
    this.#prepare(`${SCHEMA_VERSION} ${streamId}`);
    const state = this.#run('SELECT position, headsPosition, heldAfter FROM state').get() as unknown as StateRow;
    this.#position = state.position;
    this.#headsPosition = state.headsPosition;
    this.#heldAfter = state.heldAfter;
    this.#held = (this.#run('SELECT count(*) AS held FROM record').get() as { held: number }).held;
    for (const row of this.#run('SELECT key, name, count, sequence, chain, latest FROM namespace').all() as unknown as NamespaceRow[])
      this.#namespaces.set(row.name, { key: row.key, tip: tipOf(row), latest: row.latest });
  }

  /** The sequence of the stream up to which records have been folded. */
  get position(): number {
    return this.#position;
  }

  /** The sequence of the newest record that was let go; 0 while all are held. */
  get heldAfter(): number {
    return this.#heldAfter;
  }

  /**
   * Folds records in the order of the stream, all or none.
   *
   * @param upTo How far the stream was read: past the last record, where what follows was none.
   */
  append(records: readonly StoredAudit[], upTo: number): void {
    this.#inTransaction(() => {
      for (const record of records) if (record.sequence > this.#position) this.#insert(record);
      this.#position = Math.max(this.#position, upTo);
      this.#forgetOldest();
      this.#run('UPDATE state SET position = ?, heldAfter = ?').run(this.#position, this.#heldAfter);
    });
  }

  query(namespaceId: string, filter: RecordFilter, page: { readonly after: number; readonly limit: number }): RecordPage {
    const namespace = this.#namespaces.get(namespaceId);
    if (namespace === undefined) return { records: [] };
    const where = new Where(namespace.key, page.after);
    this.#narrow(where, namespace.key, filter);
    const rows = this.#run(`SELECT sequence, body FROM record WHERE ${where.text} ORDER BY sequence LIMIT ?`).all(
      ...where.values,
      page.limit + 1,
    ) as unknown as { sequence: number; body: string }[];
    const records = rows.slice(0, page.limit).map(({ sequence, body }) => ({ sequence, event: eventOf(body) }));
    return rows.length > page.limit ? { records, next: records.at(-1)?.sequence ?? page.after } : { records };
  }

  /** Every record of a namespace after a place, second copies included, with its link of the chain. */
  chained(namespaceId: string, after: number, limit: number): readonly ChainedRecord[] {
    const namespace = this.#namespaces.get(namespaceId);
    if (namespace === undefined) return [];
    const rows = this.#run(
      'SELECT count, sequence, chain, body FROM record WHERE namespace = ? AND sequence > ? ORDER BY sequence LIMIT ?',
    ).all(namespace.key, after, limit) as unknown as { count: number; sequence: number; chain: Uint8Array; body: string }[];
    return rows.map(({ count, sequence, chain, body }) => ({ count, sequence, chain: hex(chain), event: eventOf(body) }));
  }

  /** Where each namespace's chain stands. */
  tips(): readonly NamespaceTip[] {
    return [...this.#namespaces].map(([namespaceId, { tip }]) => ({ namespaceId, ...tip }));
  }

  /** The chain's value after a namespace's record of this number; `undefined` when it is not held. */
  chainAt(namespaceId: string, count: number): ChainState | undefined {
    const namespace = this.#namespaces.get(namespaceId);
    if (namespace?.tip.count === count) return namespace.tip;
    const row =
      namespace === undefined
        ? undefined
        : (this.#run('SELECT count, sequence, chain FROM record WHERE namespace = ? AND count = ?').get(namespace.key, count) as
            | { count: number; sequence: number; chain: Uint8Array }
            | undefined);
    return row === undefined ? undefined : tipOf(row);
  }

  /** How far the stream of heads was read. */
  get headsPosition(): number {
    return this.#headsPosition;
  }

  /** Keeps a signed head beside the records it vouches for. */
  keepHead(sealed: SealedHead, position: number): void {
    this.#inTransaction(() => {
      const { key } = this.#namespace(sealed.head.namespaceId);
      this.#run('INSERT OR IGNORE INTO head VALUES (?, ?, ?, ?)').run(key, position, sealed.head.sequence, JSON.stringify(sealed));
      this.#headsPosition = position;
      this.#run('UPDATE state SET headsPosition = ?').run(position);
    });
  }

  /** Heads of a namespace after a place in the stream of heads, on records up to a place in theirs, in order. */
  heads(namespaceId: string, after: number, upTo: number): readonly { readonly position: number; readonly sealed: SealedHead }[] {
    const rows = this.#run(
      'SELECT position, body FROM head WHERE namespace = ? AND position > ? AND sequence <= ? ORDER BY position LIMIT 500',
    ).all(this.#namespaces.get(namespaceId)?.key ?? -1, after, upTo) as unknown as { position: number; body: string }[];
    return rows.map(({ position, body }) => ({ position, sealed: JSON.parse(body) as SealedHead }));
  }

  summary(namespaceId: string, { since, until }: Pick<RecordFilter, 'since' | 'until'>): SummaryOfRecords {
    const key = this.#namespaces.get(namespaceId)?.key ?? -1;
    const where = new Where(key, 0);
    this.#narrow(where, key, { since, until });
    const groups = this.#run(
      `SELECT type, outcome, outage, reason, count(*) AS count FROM record INDEXED BY by_kind WHERE ${where.text}
       GROUP BY type, outcome, outage, reason`,
    ).all(...where.values) as unknown as Group[];
    const uses = this.#run(
      `SELECT grantId, count(*) AS taken FROM record WHERE ${where.text} AND used = 1
       GROUP BY grantId ORDER BY taken DESC, grantId LIMIT ${SUMMARY_ROWS}`,
    ).all(...where.values) as unknown as SummaryOfRecords['uses'];
    const head = this.#run('SELECT body FROM head WHERE namespace = ? ORDER BY position DESC LIMIT 1').get(key) as
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
      uses: uses.map((row) => ({ ...row })),
      ...(head === undefined ? {} : { head: JSON.parse(head.body) as SealedHead }),
      upTo: this.#position,
    };
  }

  close(): void {
    this.#database.close();
  }

  #prepare(identity: string): void {
    this.#database.exec('CREATE TABLE IF NOT EXISTS identity (text TEXT NOT NULL)');
    const found = this.#database.prepare('SELECT text FROM identity').get() as { text: string } | undefined;
    if (found?.text === identity) return;
    this.#database.exec(
      'DROP TABLE IF EXISTS record; DROP TABLE IF EXISTS namespace; DROP TABLE IF EXISTS head; DROP TABLE IF EXISTS state; DELETE FROM identity',
    );
    this.#database.exec(SCHEMA);
    this.#database.prepare('INSERT INTO identity VALUES (?)').run(identity);
  }

  #insert({ sequence, event }: StoredAudit): void {
    const namespace = this.#namespace(event.namespaceId);
    const count = namespace.tip.count + 1;
    const chain = chainAfter(namespace.tip.chain, sequence, event);
    const copy = this.#run('SELECT 1 FROM record WHERE namespace = ? AND id = ? AND copy = 0').get(namespace.key, event.id) !== undefined;
    const { resource, metadata = {} } = event;
    const at = instantOf(event.at) ?? 0;
    const latest = Math.max(namespace.latest, at);
    this.#run('INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)').run(
      sequence,
      namespace.key,
      count,
      Buffer.from(chain, 'hex'),
      Number(copy),
      event.id,
      event.type,
      event.outcome,
      at,
      latest,
      event.traceId,
      textOr(metadata['turnId']),
      event.operationId ?? null,
      event.messageId ?? null,
      event.grantId ?? null,
      addressKey(event.actor),
      resource === undefined ? null : resourceKey(resource),
      event.reason ?? null,
      Number(metadata['failClosed'] === true),
      Number(metadata['usageTaken'] === true),
      JSON.stringify(event),
    );
    this.#held += 1;
    namespace.tip = { count, sequence, chain };
    namespace.latest = latest;
    this.#run('UPDATE namespace SET count = ?, sequence = ?, chain = ?, latest = ? WHERE key = ?').run(
      count,
      sequence,
      Buffer.from(chain, 'hex'),
      latest,
      namespace.key,
    );
  }

  #namespace(name: string): Namespace {
    const known = this.#namespaces.get(name);
    if (known !== undefined) return known;
    const tip = { count: 0, sequence: 0, chain: chainStart(name) };
    const added = this.#run('INSERT INTO namespace (name, count, sequence, chain, latest) VALUES (?, 0, 0, ?, 0)').run(
      name,
      Buffer.from(tip.chain, 'hex'),
    );
    const namespace = { key: Number(added.lastInsertRowid), tip, latest: 0 };
    this.#namespaces.set(name, namespace);
    return namespace;
  }

  #forgetOldest(): void {
    // In large steps, for finding and deleting cost much the same for one record as for a thousand.
    const over = this.#held - this.#recordsMax;
    if (over <= this.#recordsMax / 100) return;
    const last = this.#run('SELECT sequence FROM record ORDER BY sequence LIMIT 1 OFFSET ?').get(over - 1) as { sequence: number };
    this.#run('DELETE FROM record WHERE sequence <= ?').run(last.sequence);
    this.#held -= over;
    this.#heldAfter = last.sequence;
  }

  #narrow(where: Where, namespace: number, filter: RecordFilter): void {
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
      const first = this.#run('SELECT sequence FROM record WHERE namespace = ? AND latest >= ? ORDER BY latest, sequence LIMIT 1').get(
        namespace,
        since,
      ) as { sequence: number } | undefined;
      where.and('sequence >= ?', first?.sequence ?? this.#position + 1);
      where.and('at >= ?', since);
    }
    if (filter.until !== undefined) where.and('at < ?', instantOf(filter.until) ?? 0);
  }

  #run(sql: string): StatementSync {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#prepared.set(sql, statement);
    }
    return statement;
  }

  #inTransaction(work: () => void): void {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#database.exec('COMMIT');
    } catch (error) {
      this.#database.exec('ROLLBACK');
      throw error;
    }
  }
}

interface Group {
  readonly type: AuditEvent['type'];
  readonly outcome: AuditEvent['outcome'];
  readonly outage: number;
  readonly reason: string | null;
  readonly count: number;
}

const sum = (groups: readonly Group[]): number => groups.reduce((total, { count }) => total + count, 0);

interface StateRow {
  readonly position: number;
  readonly headsPosition: number;
  readonly heldAfter: number;
}

interface NamespaceRow {
  readonly key: number;
  readonly name: string;
  readonly count: number;
  readonly sequence: number;
  readonly chain: Uint8Array;
  readonly latest: number;
}

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

const resourceKey = ({ namespace, path }: { readonly namespace: string; readonly path: readonly string[] }): string =>
  encodeName(namespace, ...path);

const tipOf = ({
  count,
  sequence,
  chain,
}: {
  readonly count: number;
  readonly sequence: number;
  readonly chain: Uint8Array;
}): ChainState => ({
  count,
  sequence,
  chain: hex(chain),
});

const hex = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
const textOr = (value: unknown): string | null => (typeof value === 'string' ? value : null);
const eventOf = (body: string): AuditEvent => JSON.parse(body) as AuditEvent;
