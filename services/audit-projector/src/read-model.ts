import type { AuditEvent, AuditRecord } from '@sharedos/contracts';

/** What a query asks of the records of one namespace; an absent field does not narrow. */
export interface RecordFilter {
  readonly traceId?: string | undefined;
  readonly operationId?: string | undefined;
  readonly turnId?: string | undefined;
  readonly type?: string | undefined;
  readonly outcome?: string | undefined;
}

export interface RecordPage {
  readonly records: readonly AuditRecord[];
  /** Where the next page begins, when there is one. */
  readonly next?: number;
}

/** One namespace's records in the order of the stream, and for each way of looking them up the ascending sequences. */
interface NamespaceRecords {
  readonly records: Map<number, AuditEvent>;
  readonly byTrace: Map<string, number[]>;
  readonly byOperation: Map<string, number[]>;
  readonly byTurn: Map<string, number[]>;
  readonly ids: Set<string>;
}

/**
 * Audit records folded for reading, rebuilt from the stream at every start and thrown away at every stop. Delivery of records
 * is at least once, so a record is folded by its id: the first copy stands.
 */
export class AuditReadModel {
  readonly #namespaces = new Map<string, NamespaceRecords>();
  readonly #oldestFirst: { readonly namespaceId: string; readonly sequence: number }[] = [];
  readonly #recordsMax: number;
  #position = 0;
  #dropped = 0;

  /** @param recordsMax Records held in memory, the newest; older ones stay in the stream. */
  constructor(recordsMax: number) {
    this.#recordsMax = recordsMax;
  }

  /** The sequence of the stream up to which records have been folded. */
  get position(): number {
    return this.#position;
  }

  apply(sequence: number, event: AuditEvent): void {
    this.#position = Math.max(this.#position, sequence);
    const namespace = this.#namespace(event.namespaceId);
    if (namespace.ids.has(event.id)) return;
    namespace.ids.add(event.id);
    namespace.records.set(sequence, event);
    index(namespace.byTrace, event.traceId, sequence);
    for (const id of operationsOf(event)) index(namespace.byOperation, id, sequence);
    const turnId = turnOf(event);
    if (turnId !== undefined) index(namespace.byTurn, turnId, sequence);
    this.#oldestFirst.push({ namespaceId: event.namespaceId, sequence });
    this.#forgetOldest();
  }

  /** Skips a message that is no record, so that a reader waiting for its sequence is not kept waiting. */
  skip(sequence: number): void {
    this.#position = Math.max(this.#position, sequence);
  }

  query(namespaceId: string, filter: RecordFilter, page: { readonly after: number; readonly limit: number }): RecordPage {
    const namespace = this.#namespaces.get(namespaceId);
    if (namespace === undefined) return { records: [] };
    const found: AuditRecord[] = [];
    for (const sequence of candidates(namespace, filter)) {
      if (sequence <= page.after) continue;
      const event = namespace.records.get(sequence);
      if (event === undefined || !matches(event, filter)) continue;
      if (found.length === page.limit) return { records: found, next: found.at(-1)?.sequence ?? page.after };
      found.push({ sequence, event });
    }
    return { records: found };
  }

  #namespace(namespaceId: string): NamespaceRecords {
    let namespace = this.#namespaces.get(namespaceId);
    if (namespace === undefined) {
      namespace = { records: new Map(), byTrace: new Map(), byOperation: new Map(), byTurn: new Map(), ids: new Set() };
      this.#namespaces.set(namespaceId, namespace);
    }
    return namespace;
  }

  #forgetOldest(): void {
    while (this.#oldestFirst.length - this.#dropped > this.#recordsMax) {
      const oldest = this.#oldestFirst[this.#dropped];
      this.#dropped += 1;
      const namespace = oldest === undefined ? undefined : this.#namespaces.get(oldest.namespaceId);
      const event = oldest === undefined ? undefined : namespace?.records.get(oldest.sequence);
      if (oldest === undefined || namespace === undefined || event === undefined) continue;
      namespace.records.delete(oldest.sequence);
      namespace.ids.delete(event.id);
      unindex(namespace.byTrace, event.traceId);
      for (const id of operationsOf(event)) unindex(namespace.byOperation, id);
      const turnId = turnOf(event);
      if (turnId !== undefined) unindex(namespace.byTurn, turnId);
    }
    // The forgotten head is cut off in large steps, so that forgetting costs nothing per record.
    if (this.#dropped <= 10_000) return;
    this.#oldestFirst.splice(0, this.#dropped);
    this.#dropped = 0;
  }
}

const index = (lookup: Map<string, number[]>, key: string, sequence: number): void => {
  const sequences = lookup.get(key);
  if (sequences === undefined) lookup.set(key, [sequence]);
  else sequences.push(sequence);
};

/** Records are forgotten oldest first, so what goes is always the head. */
const unindex = (lookup: Map<string, number[]>, key: string): void => {
  const sequences = lookup.get(key);
  if (sequences === undefined) return;
  sequences.shift();
  if (sequences.length === 0) lookup.delete(key);
};

const operationsOf = (event: AuditEvent): readonly string[] =>
  [...new Set([event.operationId, event.messageId])].filter((id): id is string => id !== undefined);

const turnOf = (event: AuditEvent): string | undefined => {
  const turnId = event.metadata?.['turnId'];
  return typeof turnId === 'string' ? turnId : undefined;
};

/** The narrowest lookup the filter allows; everything else is checked record by record. */
const candidates = (namespace: NamespaceRecords, filter: RecordFilter): Iterable<number> => {
  if (filter.turnId !== undefined) return namespace.byTurn.get(filter.turnId) ?? [];
  if (filter.operationId !== undefined) return namespace.byOperation.get(filter.operationId) ?? [];
  if (filter.traceId !== undefined) return namespace.byTrace.get(filter.traceId) ?? [];
  return namespace.records.keys();
};

const matches = (event: AuditEvent, filter: RecordFilter): boolean =>
  (filter.traceId === undefined || event.traceId === filter.traceId) &&
  (filter.operationId === undefined || operationsOf(event).includes(filter.operationId)) &&
  (filter.turnId === undefined || turnOf(event) === filter.turnId) &&
  (filter.type === undefined || event.type === filter.type) &&
  (filter.outcome === undefined || event.outcome === filter.outcome);
