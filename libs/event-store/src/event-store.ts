import type { LogEvent, Result, Unavailable } from '@sharedos/contracts';

/** What a stream of the log is about. @see docs/adr/0003-one-log-of-authority.md */
export type StreamCategory = 'grant' | 'policy' | 'settings' | 'toolsettings' | 'agent' | 'escalation' | 'mcp';

/** The stream of one entity. Adapters write its name with the one encoder of the contracts. */
export interface StreamId {
  readonly category: StreamCategory;
  readonly namespaceId: string;
  readonly id: string;
}

/** Where a stream ends: 0 for a stream never written, otherwise a number that only its own store can compare. */
export type StreamRevision = number;

/** A place in the whole log, growing; not every number need hold an event. 0 is before the first. */
export type Position = number;

export interface Recorded {
  readonly stream: StreamId;
  readonly event: LogEvent;
  readonly position: Position;
}

export interface Appended {
  readonly revision: StreamRevision;
  readonly position: Position;
  /** The events were there already, by an earlier attempt: what that one wrote stands, if it differs from what was now given. */
  readonly repeated?: true;
}

export type AppendRefusal =
  | { readonly kind: 'version_conflict'; readonly found: StreamRevision }
  | { readonly kind: 'too_large' }
  | Unavailable;

/** What a subscriber hears, in order of position, on one call at a time. */
export interface LogListener {
  /** One append: its events, all at one position or at growing ones. */
  event(recorded: Recorded): void;
  /** A record that is no event of ours, or of a version we do not know. It is skipped; the service must not be ready. */
  parked(parked: { readonly position: Position; readonly natsSubject: string; readonly why: string }): void;
  /** Everything up to and including `position` has been delivered, whether or not it held events. */
  reached(position: Position): void;
  /** Whether the feed is alive. Silence counts as failure: false after two missed heartbeats, true again with the next one. */
  alive(isAlive: boolean): void;
}

export interface LogSubscription {
  close(): Promise<void>;
}

/**
 * The log of authority: append-only streams with optimistic concurrency, in one total order.
 *
 * Not promised: that a read or a subscription is up to date. Only {@link EventStore.barrier} says how far "now" reaches.
 */
export interface EventStore {
  /** Identity of this store's history; positions of different stores have no order. */
  readonly storeId: string;

  /**
   * Appends `events` to `stream`, all or none, if the stream still ends at `expected`.
   *
   * Idempotent by event id: an append that had in fact happened answers, when sent again with the same `expected` and the same
   * ids, with the revision and position it got then.
   *
   * @param expected Revision last read; 0 for a stream not yet written.
   * @returns `version_conflict` with the revision found; `too_large`; or `unavailable` when no answer came in time, and then
   *   the append may have happened: send it again with the same event ids.
   */
  append(stream: StreamId, expected: StreamRevision, events: readonly LogEvent[]): Promise<Result<Appended, AppendRefusal>>;

  /** All events of a stream in order. A stream never written is empty at revision 0. */
  read(stream: StreamId): Promise<Result<{ readonly events: readonly Recorded[]; readonly revision: StreamRevision }, Unavailable>>;

  /** Delivers everything after `from`, then whatever is appended, reconnecting by itself until closed. */
  subscribe(from: Position, listener: LogListener): LogSubscription;

  /**
   * A position at or above every append that was acknowledged before this call. The one linearizable read.
   *
   * @see docs/adr/0004-linearizable-open.md
   */
  barrier(timeoutMs: number): Promise<Result<Position, Unavailable>>;

  close(): Promise<void>;
}
