import {
  type AllStreamResolvedEvent,
  type AllStreamSubscription,
  type EventStoreDBClient,
  type Position as LogPosition,
  START,
  streamNameFilter,
} from '@eventstore/db-client';
import { backoffMs, pause } from '@sharedos/bus';
import type { LogListener, Position } from './event-store.ts';
import type { EventStoreDbConnection } from './eventstoredb-connection.ts';
import { commitOf, readLog } from './eventstoredb-reads.ts';
import { positionOf, readRecord } from './eventstoredb-record.ts';

export interface FeedOptions {
  readonly connection: EventStoreDbConnection;
  /** What the names of all our streams begin with, before the part that is the same in every adapter. */
  readonly prefix: string;
  /** What they begin with in all. */
  readonly namesBegin: string;
  readonly from: Position;
  readonly listener: LogListener;
  readonly heartbeatMs: number;
  /** Whether the server still has the history that we know; says why not. */
  readonly examine: (position: Position) => Promise<string | undefined>;
  readonly saw: (position: Position) => void;
  /** The history that was followed is not there any more. */
  readonly lose: (why: string) => void;
  readonly onDefect: (defect: unknown, where: string) => void;
}

/** Events that the server looks at before it says how far it has come. */
const SEARCH_WINDOW = 32;
/** Events beyond ours after which the feed must have heard of its progress, whosever they are. */
const PROBED_MAX = 2 * SEARCH_WINDOW + 1;
const BACKOFF_MOST_MS = 1_000;

/**
 * Follows our part of the log with a filtered subscription.
 *
 * A subscription that says nothing may be quiet or dead, and the protocol has no sign of life in it. So each heartbeat reads the log
 * from where the subscription stands: an answer shows that the server is there, and what the answer holds must have come through the
 * subscription by the next beat. Two beats without either end the attempt, and the next one starts after the last event handed over.
 */
export class EventStoreDbFeed {
  readonly #options: FeedOptions;
  readonly #stopped = new AbortController();
  readonly #ended: Promise<void>;
  /** The last place handed over, as the server names it. */
  #place: LogPosition | undefined;
  /** The id of the event that was handed over there, if it was one of ours. */
  #placeId: string | undefined;
  #told: boolean | undefined;
  #broken = false;

  constructor(options: FeedOptions) {
    this.#options = options;
    const { from } = options;
    this.#place = from === 0 ? undefined : { commit: BigInt(from), prepare: BigInt(from) };
    this.#ended = this.#run();
  }

  /** Stops for good, as not alive: there is nothing left that could be followed. */
  giveUp(): void {
    this.#alive(false);
    this.#stopped.abort();
  }

  async close(): Promise<void> {
    this.#stopped.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    let failures = 0;
    while (!signal.aborted && !this.#broken) {
      await this.#attempt(() => void (failures = 0));
      this.#alive(false);
      await pause(backoffMs(failures, BACKOFF_MOST_MS), signal);
      failures += 1;
    }
  }

  /** Follows until something is wrong. */
  async #attempt(onLife: () => void): Promise<void> {
    const { connection, heartbeatMs, examine } = this.#options;
    if ((await examine(Number(this.#place?.commit ?? 0n))) !== undefined) return;
    const from = await this.#anchor();
    if (from === 'unknown' || this.#stopped.signal.aborted) return;
    const ended = new AbortController();
    const stop = (): void => ended.abort();
    this.#stopped.signal.addEventListener('abort', stop, { once: true });
    const { client } = connection;
    const subscription = this.#subscribe(client, from, stop, () => {
      onLife();
      this.#alive(true);
    });
    let due: LogPosition | undefined;
    let beats = 0;
    while (!ended.signal.aborted) {
      await pause(heartbeatMs, ended.signal);
      if (ended.signal.aborted) break;
      const at = this.#place;
      // What the beat before found has had a beat's time to come through.
      if (due !== undefined && due.commit === (at?.commit ?? -1n)) break;
      const read = await readLog(connection, at, PROBED_MAX, 2 * heartbeatMs);
      if (!read.ok || !(await this.#isSameLog(at, read.value))) break;
      due = this.#mustHaveMoved(at, read.value) ? (at ?? { commit: -1n, prepare: -1n }) : undefined;
      beats += 1;
      if (beats === 1 && this.#told !== true) break;
    }
    this.#stopped.signal.removeEventListener('abort', stop);
    subscription.removeAllListeners('data');
    void subscription.unsubscribe().catch(() => undefined);
    if (!this.#stopped.signal.aborted && due !== undefined) connection.renew(client);
  }

  /** Where to begin: after our place, if the server still has an event there. A subscription from a place without one would skip the next. */
  async #anchor(): Promise<LogPosition | typeof START | 'unknown'> {
    const at = this.#place;
    if (at === undefined) return START;
    const read = await readLog(this.#options.connection, at, 1, this.#budgetMs);
    if (!read.ok) return 'unknown';
    const [first] = read.value;
    if (this.#isOther(at, first)) return 'unknown';
    return first !== undefined && commitOf(first) === at.commit ? at : START;
  }

  #subscribe(
    client: EventStoreDBClient,
    fromPosition: LogPosition | typeof START,
    onEnd: () => void,
    onLife: () => void,
  ): AllStreamSubscription {
    const subscription = client.subscribeToAll({
      ...this.#options.connection.options,
      fromPosition,
      filter: streamNameFilter({
        prefixes: [this.#options.namesBegin],
        maxSearchWindow: SEARCH_WINDOW,
        checkpointInterval: 1,
        // A checkpoint overtakes events that wait to be handed over; then it is passed over, and a later one will do.
        checkpointReached: (_, position) => {
          if (subscription.readableLength === 0) this.#handCheckpoint(position);
        },
      }),
    });
    subscription.on('confirmation', onLife);
    subscription.on('data', (resolved) => this.#hand(resolved, onEnd));
    subscription.on('error', onEnd);
    subscription.on('end', onEnd);
    subscription.on('close', onEnd);
    return subscription;
  }

  #hand(resolved: AllStreamResolvedEvent, onEnd: () => void): void {
    if (this.#stopped.signal.aborted || this.#broken) return;
    const { listener, prefix, saw } = this.#options;
    const recorded = resolved.link ?? resolved.event;
    const commit = commitOf(resolved);
    // Sent twice, or read again from the start because the event at our place was scavenged.
    if (recorded === undefined || commit <= (this.#place?.commit ?? -1n)) return;
    const position = positionOf(commit);
    if (position === undefined) return onEnd();
    const natsSubject = recorded.streamId.slice(prefix.length);
    try {
      const record = readRecord(natsSubject, resolved);
      if (record.kind === 'parked') listener.parked({ position, natsSubject, why: record.why });
      if (record.kind === 'events') for (const event of record.events) listener.event({ stream: record.stream, event, position });
      this.#place = { commit, prepare: recorded.position?.prepare ?? commit };
      this.#placeId = recorded.id;
      saw(position);
      listener.reached(position);
    } catch (defect) {
      this.#broken = true;
      onEnd();
      this.#alive(false);
      this.#options.onDefect(defect, 'a listener of the log');
    }
  }

  #handCheckpoint(position: LogPosition): void {
    if (this.#stopped.signal.aborted || this.#broken || position.commit <= (this.#place?.commit ?? -1n)) return;
    // Only what is surely the place of an event can be begun from again.
    const reached = position.commit === position.prepare ? positionOf(position.commit) : undefined;
    if (reached === undefined) return;
    this.#place = position;
    this.#placeId = undefined;
    this.#options.listener.reached(reached);
  }

  #mustHaveMoved(at: LogPosition | undefined, events: readonly AllStreamResolvedEvent[]): boolean {
    const beyond = events.filter((resolved) => commitOf(resolved) > (at?.commit ?? -1n));
    return beyond.length >= PROBED_MAX - 1 || beyond.some(({ event }) => event?.streamId.startsWith(this.#options.namesBegin) === true);
  }

  /** The event at our place is still there; or it was scavenged, and the rest of what we know is. */
  async #isSameLog(at: LogPosition | undefined, events: readonly AllStreamResolvedEvent[]): Promise<boolean> {
    if (this.#isOther(at, events[0])) return false;
    if (at === undefined || (events[0] !== undefined && commitOf(events[0]) === at.commit)) return true;
    return (await this.#options.examine(Number(at.commit))) === undefined;
  }

  /** Another event lies where ours was: the database was set back in time and went on from there. */
  #isOther(at: LogPosition | undefined, found: AllStreamResolvedEvent | undefined): boolean {
    // The feed goes on while it is asked, so the answer may be about a place that it has left.
    if (at === undefined || at !== this.#place || found === undefined || commitOf(found) !== at.commit) return false;
    if (this.#placeId === undefined || (found.link ?? found.event)?.id === this.#placeId) return false;
    this.#options.lose(`another event lies at ${at.commit} of the log than was read there before: it lost some of its history`);
    return true;
  }

  get #budgetMs(): number {
    return 2 * this.#options.heartbeatMs;
  }

  #alive(isAlive: boolean): void {
    if (this.#stopped.signal.aborted || this.#told === isAlive) return;
    this.#told = isAlive;
    this.#options.listener.alive(isAlive);
  }
}
