import { type ProposedEvent, type StoredEvent, recordSize } from './stored-event.ts';
import { type StreamBounds, visibleFrom } from './stream-bounds.ts';

/** What an append expects of its stream: the revision of its last event, or one of the words of the protocol. */
export type Expected = number | 'any' | 'no_stream' | 'stream_exists';

export type AppendOutcome =
  /** `revision` and `position` are those of the last event. */
  | { readonly kind: 'stored'; readonly revision: number | undefined; readonly position: number | undefined }
  | { readonly kind: 'wrong_expected_version'; readonly current: number | undefined }
  | { readonly kind: 'deleted' };

export type StreamRead =
  | { readonly kind: 'events'; readonly events: readonly StoredEvent[] }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'deleted' };

/** Keeps what was appended before it is answered. */
export interface Journal {
  write(events: readonly StoredEvent[]): void;
}

const METADATA_PREFIX = '$$';
const TOMBSTONE = '$streamDeleted';
/** The truncation point of a stream that was deleted and may be written anew. */
const DELETED_BEFORE = 2 ** 53 - 1;

interface Stream {
  readonly events: StoredEvent[];
  bounds: StreamBounds;
  tombstoned: boolean;
}

/**
 * The log of the double: streams in one total order, with the rules of a real server for expected revisions, repeated event ids,
 * deletion and truncation. All of it is in this process's memory; the journal only makes it survive.
 */
export class EventLog {
  readonly all: StoredEvent[] = [];
  readonly #streams = new Map<string, Stream>();
  readonly #positions = new Set<number>();
  readonly #journal: Journal;
  readonly #listeners = new Set<() => void>();
  readonly #now: () => number;
  #end = 0;

  constructor(journal: Journal, now: () => number, history: readonly StoredEvent[]) {
    this.#journal = journal;
    this.#now = now;
    for (const event of history) this.#keep(event);
  }

  /** Calls `listener` after each append. @returns What ends that. */
  onAppend(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Whether a record begins there: a server cannot read from anywhere else. */
  isPosition(position: number): boolean {
    return this.#positions.has(position) || position >= this.#end;
  }

  /** What an append would be answered, stored or not. `undefined` when it is to be stored. */
  judge(name: string, expected: Expected, proposed: readonly ProposedEvent[]): AppendOutcome | undefined {
    const stream = this.#streams.get(name);
    if (stream?.tombstoned === true) return { kind: 'deleted' };
    const current = stream === undefined || stream.events.length === 0 ? undefined : stream.events.length - 1;
    const gone = stream !== undefined && visibleFrom(stream.bounds, stream.events.length) >= stream.events.length;
    const last = current ?? -1;

    if (expected === 'any' || expected === 'stream_exists') {
      if (expected === 'stream_exists' && (current === undefined || gone)) return { kind: 'wrong_expected_version', current };
      const first = proposed[0];
      const at = first === undefined ? -1 : (stream?.events.findIndex(({ id }) => id === first.id) ?? -1);
      return at < 0 ? undefined : this.#repeated(stream, at, proposed, current);
    }
    const wanted = expected === 'no_stream' ? -1 : expected;
    if (wanted === last) return undefined;
    // A deleted stream may be begun anew; its numbers go on where they were.
    if (expected === 'no_stream' && gone) return undefined;
    return this.#repeated(stream, wanted + 1, proposed, current);
  }

  /** Stores what {@link EventLog.judge} has nothing against. */
  store(name: string, proposed: readonly ProposedEvent[]): AppendOutcome {
    const stream = this.#streams.get(name);
    const first = stream?.events.length ?? 0;
    const transaction = this.#end;
    let position = transaction;
    const events = proposed.map((event, index) => {
      const stored: StoredEvent = { ...event, stream: name, revision: first + index, position, transaction, at: this.#now() };
      position += recordSize(stored);
      return stored;
    });
    // Written before anybody can know of it.
    this.#journal.write(events);
    for (const event of events) this.#keep(event);
    for (const listener of this.#listeners) listener();
    const last = events.at(-1);
    return { kind: 'stored', revision: last?.revision ?? (first === 0 ? undefined : first - 1), position: last?.position };
  }

  /** Ends a stream: for ever, or so that it may be begun anew. */
  delete(name: string, forEver: boolean): AppendOutcome {
    const event = (type: string, data: object): ProposedEvent => ({
      id: crypto.randomUUID(),
      type,
      contentType: 'application/json',
      data: Buffer.from(JSON.stringify(data)),
      metadata: Buffer.alloc(0),
    });
    return forEver
      ? this.store(name, [event(TOMBSTONE, {})])
      : this.store(`${METADATA_PREFIX}${name}`, [event('$metadata', { $tb: DELETED_BEFORE })]);
  }

  /** Up to `count` events from `from` on, in either direction. */
  readStream(name: string, from: number | 'start' | 'end', backwards: boolean, count: number): StreamRead {
    const stream = this.#streams.get(name);
    if (stream === undefined || stream.events.length === 0) return { kind: 'not_found' };
    if (stream.tombstoned) return { kind: 'deleted' };
    const firstVisible = visibleFrom(stream.bounds, stream.events.length);
    if (firstVisible >= stream.events.length) return { kind: 'not_found' };
    const visible = stream.events.slice(firstVisible);
    if (backwards) {
      const reversed = visible.filter(({ revision }) => from === 'end' || (from !== 'start' && revision <= from)).reverse();
      return { kind: 'events', events: reversed.slice(0, count) };
    }
    const onwards = visible.filter(({ revision }) => from === 'start' || (from !== 'end' && revision >= from));
    return { kind: 'events', events: onwards.slice(0, count) };
  }

  /** Index in {@link EventLog.all} of the first event at or above `position`. */
  indexAt(position: number): number {
    let [low, high] = [0, this.all.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.all[middle] as StoredEvent).position < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The same ids at the same place are the same append; some of them are a conflict, as on a real server. */
  #repeated(stream: Stream | undefined, at: number, proposed: readonly ProposedEvent[], current: number | undefined): AppendOutcome {
    const there = stream?.events.slice(at, at + proposed.length) ?? [];
    const same = proposed.length > 0 && proposed.every(({ id }, index) => there[index]?.id === id);
    const last = there.at(-1);
    if (!same || last === undefined) return { kind: 'wrong_expected_version', current };
    return { kind: 'stored', revision: last.revision, position: last.position };
  }

  #keep(event: StoredEvent): void {
    const stream = this.#stream(event.stream);
    stream.events.push(event);
    if (event.type === TOMBSTONE) stream.tombstoned = true;
    if (event.stream.startsWith(METADATA_PREFIX)) {
      this.#stream(event.stream.slice(METADATA_PREFIX.length)).bounds = boundsOf(event.data);
    } else if (stream.bounds.before === DELETED_BEFORE) {
      // Written after it was deleted: it begins with this event.
      stream.bounds = { before: event.revision };
    }
    this.all.push(event);
    this.#positions.add(event.position);
    this.#end = Math.max(this.#end, event.position + recordSize(event));
  }

  #stream(name: string): Stream {
    const known = this.#streams.get(name);
    if (known !== undefined) return known;
    const made: Stream = { events: [], bounds: {}, tombstoned: false };
    this.#streams.set(name, made);
    return made;
  }
}

const boundsOf = (data: Buffer): StreamBounds => {
  try {
    const read = JSON.parse(data.toString('utf8')) as { $maxCount?: number; $tb?: number };
    return {
      ...(read.$maxCount === undefined ? {} : { countMax: read.$maxCount }),
      ...(read.$tb === undefined ? {} : { before: read.$tb }),
    };
  } catch {
    // A real server takes any bytes as metadata, and heeds none that it cannot read.
    return {};
  }
};
