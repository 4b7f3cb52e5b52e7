import { randomUUID } from 'node:crypto';
import { NO_STREAM, binaryEvent } from '@eventstore/db-client';
import { pause } from '@sharedos/bus';
import { type Result, type Unavailable, err, namespaceSubject, ok, unavailable } from '@sharedos/contracts';
import type { EventStore, Position, StreamId, StreamRevision } from './event-store.ts';
import { type CallFailure, EventStoreDbConnection } from './eventstoredb-connection.ts';
import { EventStoreDbFeed } from './eventstoredb-feed.ts';
import { commitIn, readEnd, readWholeStream } from './eventstoredb-reads.ts';
import { barrierEvent, positionOf, readRecord, recordEvent } from './eventstoredb-record.ts';
import { KnownHistory } from './known-history.ts';
import { leaveToProcess } from './leave-to-process.ts';
import { encodeRecord } from './log-record.ts';
import { logSubject } from './log-subject.ts';
import { type RecordedAt, answerFromStream } from './recorded-append.ts';
import { sharedBarrier } from './shared-barrier.ts';

export interface EventStoreDbOptions {
  /** `esdb://…` or `esdb+discover://…`. With TLS it names user and password; without, it says `tls=false`. */
  readonly connectionString: string;
  /** Put before the name of each stream, so that several logs can lie in one database. */
  readonly prefix?: string;
  /** By when an append or a read is answered, in milliseconds. An append spends half of it on finding out what became of it. */
  readonly timeoutMs?: number;
  /** How long to wait at the start for a server, in milliseconds. */
  readonly openTimeoutMs?: number;
  /** Silence of two of these is failure, in milliseconds. */
  readonly heartbeatMs?: number;
  /** A listener threw; its subscription has ended and is not alive. By default the process's boundary hears of it. */
  readonly onDefect?: (defect: unknown, where: string) => void;
}

const TIMEOUT_MS = 4_000;
const OPEN_TIMEOUT_MS = 10_000;
const OPEN_RETRY_MS = 100;
const HEARTBEAT_MS = 500;
/** Longest that one barrier may hold up the next. */
const BARRIER_TIMEOUT_MS = 1_000;
/** Names of our streams all begin so; what follows is the namespace. */
const NAMES_BEGIN = 'sharedos.v1.';
/** Beside those streams, not among them: the subscription does not hear of it. */
const IDENTITY_STREAM = 'sharedos.log-identity';
const BARRIER_STREAM = namespaceSubject('log', 'log', 'barrier');

/**
 * The log on EventStoreDB (22.6 or later): one stream for each of ours, one event for each append, so that an append is all or none.
 * A revision counts the records of its stream; a position is the commit position of a record, which must fit a safe integer.
 *
 * The barrier is an acknowledged append to a stream among ours: it comes through the subscription as the events do. Of that stream
 * only the last event is kept, once the server scavenges.
 *
 * @returns `unavailable` when the server does not answer in time, or the connection string will not do.
 * @see docs/adr/0003-one-log-of-authority.md
 */
export const eventStoreDbEventStore = async (options: EventStoreDbOptions): Promise<Result<EventStore, Unavailable>> => {
  const { prefix = '', timeoutMs = TIMEOUT_MS, openTimeoutMs = OPEN_TIMEOUT_MS, heartbeatMs = HEARTBEAT_MS } = options;
  const connected = EventStoreDbConnection.open(options.connectionString);
  if (!connected.ok) return unavailable(connected.error);
  const connection = connected.value;

  const openedBy = performance.now() + openTimeoutMs;
  let opened = await openLog(connection, prefix, Math.min(timeoutMs, openTimeoutMs));
  while (!opened.ok && performance.now() < openedBy) {
    await pause(OPEN_RETRY_MS);
    opened = await openLog(connection, prefix, Math.min(timeoutMs, Math.max(1, openedBy - performance.now())));
  }
  if (!opened.ok) {
    connection.close();
    return unavailable(opened.error.reason);
  }

  const { storeId } = opened.value;
  const history = new KnownHistory(opened.value.end);

  /** The position of what was just stored. */
  const accept = (commit: bigint | undefined, floor: Position): Result<Position, Unavailable> => {
    const position = positionOf(commit);
    if (position === undefined) return unavailable(`the position ${commit ?? '(none)'} of the log is not one that can be kept exactly`);
    return history.accept(position, floor, `the log gave out position ${position}, but held ${floor} before: it lost some of its history`);
  };

  const barrier = async (): Promise<Result<Position, Unavailable>> => {
    if (history.lost !== undefined) return unavailable(history.lost);
    const floor = history.seen;
    const written = await connection.append(prefix + BARRIER_STREAM, barrierEvent(), 'any', BARRIER_TIMEOUT_MS);
    return written.ok ? accept(written.value.position?.commit, floor) : unavailable(written.error.reason);
  };

  /** Whether this is still our log, so far as a read can tell: one behind what we know may be a leader that was replaced. */
  const examine = async (position: Position): Promise<string | undefined> => {
    if (history.lost !== undefined) return history.lost;
    const floor = Math.max(history.seen, position);
    const found = await openLog(connection, prefix, 2 * heartbeatMs);
    if (!found.ok) return found.error.reason;
    if (found.value.storeId !== storeId) history.lose('the log was made anew: it is another store now');
    return history.lost ?? (found.value.end < floor ? `the log ends at ${found.value.end}, but held ${floor} before` : undefined);
  };

  const readStream = async (
    stream: StreamId,
    budgetMs: number,
  ): Promise<Result<{ events: readonly RecordedAt[]; revision: StreamRevision }, Unavailable>> => {
    if (history.lost !== undefined) return unavailable(history.lost);
    const natsSubject = logSubject(stream);
    const read = await readWholeStream(connection, prefix + natsSubject, budgetMs);
    if (!read.ok) return read.error.kind === 'not_found' ? ok({ events: [], revision: 0 }) : unavailable(read.error.reason);
    const recorded: RecordedAt[] = [];
    for (const [index, resolved] of read.value.entries()) {
      if (resolved.event?.revision !== BigInt(index)) return unavailable('a record of the stream is missing from the log');
      const position = positionOf(commitIn(resolved));
      if (position === undefined) return unavailable('the server does not say where the records of a stream are: 22.6 or later is needed');
      const record = readRecord(natsSubject, resolved);
      if (record.kind !== 'events')
        return unavailable(`the record at ${position} cannot be read: ${record.kind === 'parked' ? record.why : record.kind}`);
      for (const event of record.events) recorded.push({ stream, event, position, revision: index + 1 });
      history.saw(position);
    }
    return ok({ events: recorded, revision: read.value.length });
  };

  return ok({
    storeId,
    append: async (stream, expected, events) => {
      const natsSubject = logSubject(stream);
      const body = encodeRecord(events);
      if (!body.ok) return body;
      if (history.lost !== undefined) return unavailable(history.lost);
      const floor = history.seen;
      const halfMs = timeoutMs / 2;
      const record = recordEvent(body.value, expected);
      const stored = await connection.append(prefix + natsSubject, record, expected === 0 ? NO_STREAM : BigInt(expected - 1), halfMs);
      if (stored.ok) {
        const position = accept(stored.value.position?.commit, floor);
        if (!position.ok) return position;
        if (stored.value.nextExpectedRevision !== BigInt(expected)) return unavailable('the stream was deleted and begun anew');
        return ok({ revision: expected + 1, position: position.value });
      }
      if (stored.error.kind === 'too_large') return err({ kind: 'too_large' });
      if (stored.error.kind === 'deleted') return unavailable('the stream was deleted');
      // A conflict may be with our own earlier attempt, and what was not answered may still have been stored.
      const found = await readStream(stream, halfMs);
      if (!found.ok) return found;
      // Still as expected: the record may be under way. Once the stream has moved on without it, it never can be stored.
      // Before that a deposed leader may have answered.
      if (stored.error.kind === 'unavailable' && found.value.revision <= expected) return unavailable(stored.error.reason);
      return answerFromStream(found.value.events, events, found.value.revision);
    },
    read: async (stream) => {
      const found = await readStream(stream, timeoutMs);
      if (!found.ok) return found;
      const events = found.value.events.map(({ event, position }) => ({ stream, event, position }));
      return ok({ events, revision: found.value.revision });
    },
    subscribe: (from, listener) => {
      const feed = new EventStoreDbFeed({
        connection,
        prefix,
        namesBegin: prefix + NAMES_BEGIN,
        from,
        listener,
        heartbeatMs,
        examine,
        saw: (position) => history.saw(position),
        lose: (why) => history.lose(why),
        onDefect: options.onDefect ?? leaveToProcess,
      });
      return history.followedBy(feed);
    },
    barrier: sharedBarrier(barrier),
    close: async () => {
      await history.close();
      connection.close();
    },
  });
};

/** Which log this is, and where it ends. Whoever comes first gives it its identity. */
const openLog = async (
  connection: EventStoreDbConnection,
  prefix: string,
  budgetMs: number,
): Promise<Result<{ readonly storeId: string; readonly end: Position }, CallFailure>> => {
  const stream = prefix + IDENTITY_STREAM;
  let named = await readWholeStream(connection, stream, budgetMs);
  if (!named.ok && named.error.kind === 'not_found') {
    const identity = binaryEvent({ type: 'log.identity/1', data: Buffer.from(randomUUID()) });
    const written = await connection.append(stream, identity, NO_STREAM, budgetMs);
    if (!written.ok && written.error.kind !== 'conflict') return written;
    // Barriers say nothing once they were heard, so all but the last may go. A server that refuses this keeps them.
    await connection.call(budgetMs, (client) =>
      client.setStreamMetadata(prefix + BARRIER_STREAM, { maxCount: 1 }, { ...connection.options, expectedRevision: NO_STREAM }),
    );
    named = await readWholeStream(connection, stream, budgetMs);
  }
  if (!named.ok) return named;
  const data = named.value[0]?.event?.data;
  if (named.value[0]?.event?.revision !== 0n || !(data instanceof Uint8Array)) {
    return err({ kind: 'unavailable', reason: 'the identity of the log cannot be read' });
  }
  const end = await readEnd(connection, budgetMs);
  if (!end.ok) return end;
  return ok({ storeId: `eventstoredb-${Buffer.from(data).toString('utf8')}`, end: positionOf(end.value) ?? 0 });
};
