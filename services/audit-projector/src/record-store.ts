import type { StatementSync } from 'node:sqlite';
import {
  type AuditEvent,
  type AuditRecord,
  type ChainState,
  type ChainedRecord,
  type SealedHead,
  type SummaryOfRecords,
  addressKey,
  chainAfter,
  chainStart,
  instantOf,
} from '@sharedos/contracts';
import { RecordDatabase } from './record-database.ts';
import { type RecordFilter, type RecordPage, eventOf, queryPage, recordWithId, resourceKey, summaryOf } from './record-queries.ts';
import { SCHEMA_VERSION } from './record-schema.ts';

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
  readonly recordsMax: number;
  tip: ChainState;
  latest: number;
  heldAfter: number;
  /** How many of its records are held no more: the first ones. */
  letGo: number;
}

export interface RecordLimits {
  /** Which stream the records come from, for its sequences mean nothing in another. */
  readonly streamId: string;
  /** Records of a namespace that are kept, the newest; older ones stay in the stream. */
  readonly recordsMax: number;
  /** The same for some namespaces, where they are to have another limit. */
  readonly recordsMaxOf?: ReadonlyMap<string, number>;
}

/**
 * Audit records folded for reading, in an embedded database: every look-up is an index, and the database may be thrown away at
 * any time, for it is rebuilt from the stream and nothing else. Delivery of records is at least once, so a record is folded by its
 * id: the first copy stands, and a second keeps only its place in the chain. What is stored follows from the records and heads alone,
 * whenever, in whatever portions and with whatever interruptions they were folded.
 */
export class RecordStore {
  readonly #database: RecordDatabase;
  readonly #limits: RecordLimits;
  readonly #namespaces = new Map<string, Namespace>();
  #position: number;
  #headsPosition: number;

  /**
   * @param path A file, or `:memory:`. A file of another stream, or of another version of this store, is emptied.
   */
  constructor(path: string, limits: RecordLimits) {
    this.#limits = limits;
    this.#database = new RecordDatabase(path, `${SCHEMA_VERSION} ${limits.streamId}`);
    const state = this.#run('SELECT position, headsPosition FROM state').get() as unknown as StateRow;
    this.#position = state.position;
    this.#headsPosition = state.headsPosition;
    const rows = this.#run('SELECT key, name, count, sequence, chain, latest, heldAfter, letGo FROM namespace').all();
    for (const { key, name, latest, heldAfter, letGo, ...tip } of rows as unknown as NamespaceRow[])
      this.#namespaces.set(name, { key, recordsMax: this.#maxOf(name), tip: tipOf(tip), latest, heldAfter, letGo });
  }

  /** The sequence of the stream up to which records have been folded. */
  get position(): number {
    return this.#position;
  }

  /** The sequence of a namespace's newest record that was let go; 0 while all are held. */
  heldAfter(namespaceId: string): number {
    return this.#namespaces.get(namespaceId)?.heldAfter ?? 0;
  }

  /**
   * Folds records in the order of the stream, all or none.
   *
   * @param upTo How far the stream was read: past the last record, where what follows was none.
   */
  append(records: readonly StoredAudit[], upTo: number): void {
    this.#database.inTransaction(() => {
      for (const record of records) if (record.sequence > this.#position) this.#insert(record);
      this.#position = Math.max(this.#position, upTo);
      this.#run('UPDATE state SET position = ?').run(this.#position);
    });
  }

  query(namespaceId: string, filter: RecordFilter, page: { readonly after: number; readonly limit: number }): RecordPage {
    const key = this.#namespaces.get(namespaceId)?.key;
    if (key === undefined) return { records: [] };
    return queryPage(this.#database, { namespaceId, namespace: key, position: this.#position }, filter, page);
  }

  /** The first copy of the record with this id. */
  withId(namespaceId: string, id: string): AuditRecord | undefined {
    const key = this.#namespaces.get(namespaceId)?.key;
    return key === undefined ? undefined : recordWithId(this.#database, key, id);
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
    if (namespace === undefined) return undefined;
    return namespace.tip.count === count ? namespace.tip : this.#linkOf(namespace.key, count);
  }

  /** How far the stream of heads was read. */
  get headsPosition(): number {
    return this.#headsPosition;
  }

  /** Keeps a signed head beside the records it vouches for. */
  keepHead(sealed: SealedHead, position: number): void {
    this.#database.inTransaction(() => {
      const { namespaceId, sequence } = sealed.head;
      this.#run('INSERT OR IGNORE INTO head VALUES (?, ?, ?, ?)').run(namespaceId, position, sequence, JSON.stringify(sealed));
      this.#headsPosition = position;
      this.#run('UPDATE state SET headsPosition = ?').run(position);
    });
  }

  /** Heads of a namespace after a place in the stream of heads, on records up to a place in theirs, in order. */
  heads(namespaceId: string, after: number, upTo: number): readonly { readonly position: number; readonly sealed: SealedHead }[] {
    const rows = this.#run(
      'SELECT position, body FROM head WHERE namespace = ? AND position > ? AND sequence <= ? ORDER BY position LIMIT 500',
    ).all(namespaceId, after, upTo) as unknown as { position: number; body: string }[];
    return rows.map(({ position, body }) => ({ position, sealed: JSON.parse(body) as SealedHead }));
  }

  summary(namespaceId: string, time: Pick<RecordFilter, 'since' | 'until'>): SummaryOfRecords {
    const namespace = this.#namespaces.get(namespaceId)?.key ?? -1;
    return summaryOf(this.#database, { namespaceId, namespace, position: this.#position }, time);
  }

  close(): void {
    this.#database.close();
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
    namespace.tip = { count, sequence, chain };
    namespace.latest = latest;
    this.#run('UPDATE namespace SET count = ?, sequence = ?, chain = ?, latest = ? WHERE key = ?').run(
      count,
      sequence,
      Buffer.from(chain, 'hex'),
      latest,
      namespace.key,
    );
    this.#forgetOldest(namespace);
  }

  #namespace(name: string): Namespace {
    const known = this.#namespaces.get(name);
    if (known !== undefined) return known;
    const tip = { count: 0, sequence: 0, chain: chainStart(name) };
    const added = this.#run(
      'INSERT INTO namespace (name, count, sequence, chain, latest, heldAfter, letGo) VALUES (?, 0, 0, ?, 0, 0, 0)',
    ).run(name, Buffer.from(tip.chain, 'hex'));
    const key = Number(added.lastInsertRowid);
    const namespace = { key, recordsMax: this.#maxOf(name), tip, latest: 0, heldAfter: 0, letGo: 0 };
    this.#namespaces.set(name, namespace);
    return namespace;
  }

  /** A namespace is held by its own limit, so that none pushes out what another has. */
  #forgetOldest(namespace: Namespace): void {
    const { key, recordsMax, tip } = namespace;
    // In large steps, for finding and deleting cost much the same for one record as for a thousand; and after one certain record each, so
    // that what is held does not depend on how many were folded at once.
    if (tip.count - namespace.letGo - recordsMax <= recordsMax / 100) return;
    namespace.letGo = tip.count - recordsMax;
    namespace.heldAfter = this.#linkOf(key, namespace.letGo)?.sequence ?? namespace.heldAfter;
    this.#run('DELETE FROM record WHERE namespace = ? AND count <= ?').run(key, namespace.letGo);
    this.#run('UPDATE namespace SET heldAfter = ?, letGo = ? WHERE key = ?').run(namespace.heldAfter, namespace.letGo, key);
  }

  #linkOf(key: number, count: number): ChainState | undefined {
    const row = this.#run('SELECT count, sequence, chain FROM record WHERE namespace = ? AND count = ?').get(key, count);
    return row === undefined ? undefined : tipOf(row as unknown as StoredTip);
  }

  #maxOf(name: string): number {
    return this.#limits.recordsMaxOf?.get(name) ?? this.#limits.recordsMax;
  }

  #run(sql: string): StatementSync {
    return this.#database.statement(sql);
  }
}

interface StateRow {
  readonly position: number;
  readonly headsPosition: number;
}

interface StoredTip {
  readonly count: number;
  readonly sequence: number;
  readonly chain: Uint8Array;
}

interface NamespaceRow extends StoredTip {
  readonly key: number;
  readonly name: string;
  readonly latest: number;
  readonly heldAfter: number;
  readonly letGo: number;
}

const tipOf = ({ count, sequence, chain }: StoredTip): ChainState => ({ count, sequence, chain: hex(chain) });

const hex = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
const textOr = (value: unknown): string | null => (typeof value === 'string' ? value : null);
