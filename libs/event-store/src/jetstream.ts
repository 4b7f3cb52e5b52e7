import {
  type Bus,
  OLDEST_WITH_COPIES,
  type StoredMessage,
  brokerFacts,
  followStream,
  isVersionBefore,
  lastOnSubject,
  messageAt,
  pause,
  streamInfo,
} from '@sharedos/bus';
import {
  type LogEvent,
  LogRecordMessage,
  type Result,
  SCHEMA_HEADER,
  type Unavailable,
  err,
  namespaceSubject,
  ok,
  sha256,
  unavailable,
} from '@sharedos/contracts';
import type { StreamInfo } from 'nats';
import type { EventStore, LogListener, LogSubscription, Position, StreamId, StreamRevision } from './event-store.ts';
import { KnownHistory } from './known-history.ts';
import { leaveToProcess } from './leave-to-process.ts';
import { decodeRecord, encodeRecord } from './log-record.ts';
import { logPlace, logSubject } from './log-subject.ts';
import { type RecordedAt, answerFromStream } from './recorded-append.ts';
import { sharedBarrier } from './shared-barrier.ts';

export interface JetStreamEventStoreOptions {
  /** Stays its owner's: {@link EventStore.close} does not close it. */
  readonly bus: Bus;
  readonly streamName?: string;
  /** By when an append or a read is answered, in milliseconds. An append spends half of it on finding out what became of it. */
  readonly timeoutMs?: number;
  /** How long to wait at the start for a stream that is not there yet, in milliseconds. */
  readonly openTimeoutMs?: number;
  /** The oldest nats-server that may keep a log with copies; the one that is known to lose no record when absent. For tests. */
  readonly oldestWithCopies?: string;
  /** Silence of two of these is failure, in milliseconds; the server takes no fewer than 100. */
  readonly heartbeatMs?: number;
  /** A listener threw; its subscription has ended and is not alive. By default the process's boundary hears of it. */
  readonly onDefect?: (defect: unknown, where: string) => void;
}

const TIMEOUT_MS = 4_000;
const OPEN_TIMEOUT_MS = 10_000;
const OPEN_RETRY_MS = 100;
const HEARTBEAT_MS = 500;
/** The server keeps this header with the record, so a record names the one before it on its subject. */
const EXPECTED_HEADER = 'Nats-Expected-Last-Subject-Sequence';
/** Messages asked for at once: with the largest append, at most 128 MiB are under way to us. */
const FEED_BATCH = 256;
/** Longest that one barrier may hold up the next. */
const BARRIER_TIMEOUT_MS = 1_000;
/** Barriers that are records come no faster, for they are kept for ever: at most 100 a second from each authorizer. */
const BARRIER_PACE_MS = 10;
const BARRIER_SUBJECT = namespaceSubject('log', 'log', 'barrier');
const EMPTY = new Uint8Array();

/**
 * The log on JetStream: one stream, one subject for each stream of ours, one message for each append, so that an append is all or
 * none. Revision and position are both the message's sequence in the stream. An append is at most `APPEND_BYTES_MAX` bytes.
 *
 * Each record is stored with the sequence it expected, so the records of one stream form a chain from the last to the first: a read
 * costs one request a record however long the log is, and a record that was taken out is noticed.
 *
 * @returns `unavailable` when the stream does not answer in time, or is one that forgets: by an age, by a limit that discards old
 *   records, or because it has copies on servers that are known to lose some.
 * @see docs/adr/0003-one-log-of-authority.md
 */
export const jetStreamEventStore = async (options: JetStreamEventStoreOptions): Promise<Result<EventStore, Unavailable>> => {
  const { bus, streamName = 'LOG', timeoutMs = TIMEOUT_MS, openTimeoutMs = OPEN_TIMEOUT_MS, heartbeatMs = HEARTBEAT_MS } = options;

  const openedBy = performance.now() + openTimeoutMs;
  let opened = await streamInfo(bus, streamName, { timeoutMs });
  while (!opened.ok && performance.now() < openedBy) {
    await pause(OPEN_RETRY_MS);
    opened = await streamInfo(bus, streamName, { timeoutMs: Math.min(timeoutMs, Math.max(1, openedBy - performance.now())) });
  }
  if (!opened.ok) return opened;
  const unfit = whyUnfit(opened.value);
  if (unfit !== undefined) return unavailable(`stream ${streamName} ${unfit}`);

  const storeId = storeIdOf(opened.value);
  /** Then no read is linearizable: not stream info, nor a message, nor even a refusal to append. */
  const isReplicated = opened.value.config.num_replicas > 1;
  const oldestWithCopies = options.oldestWithCopies ?? OLDEST_WITH_COPIES;
  const { version } = brokerFacts(bus);
  if (isReplicated && isVersionBefore(version, oldestWithCopies))
    return unavailable(
      `nats-server ${version} may lose records of stream ${streamName}, which has copies: use ${oldestWithCopies} or later`,
    );
  let lastBarrierAt = -BARRIER_PACE_MS;
  const history = new KnownHistory(opened.value.state.last_seq);

  const accept = (position: Position, floor: Position): Result<Position, Unavailable> =>
    history.accept(position, floor, `stream ${streamName} gave out position ${position} a second time: it lost some of its history`);

  /** The place of a record that says nothing, once a majority has it. Any leader that is still believed to be one may be wrong. */
  const appendBarrier = async (): Promise<Result<Position, Unavailable>> => {
    if (history.lost !== undefined) return unavailable(history.lost);
    const waitMs = BARRIER_PACE_MS - (performance.now() - lastBarrierAt);
    if (waitMs > 0) await pause(waitMs);
    lastBarrierAt = performance.now();
    const floor = history.seen;
    const stored = await bus.publishStored(BARRIER_SUBJECT, EMPTY, {
      timeoutMs: BARRIER_TIMEOUT_MS,
      headers: { 'Nats-Expected-Stream': streamName },
    });
    if (!stored.ok) return stored.error.kind === 'unavailable' ? err(stored.error) : unavailable(`no barrier: ${stored.error.kind}`);
    return accept(stored.value.sequence, floor);
  };

  /** The last position of the log as the server that was asked has it. */
  const head = async (): Promise<Result<Position, Unavailable>> => {
    if (history.lost !== undefined) return unavailable(history.lost);
    const floor = history.seen;
    const info = await streamInfo(bus, streamName, { timeoutMs: BARRIER_TIMEOUT_MS });
    if (!info.ok) return info;
    if (storeIdOf(info.value) !== storeId) return history.lose(`stream ${streamName} was made anew: it is another store now`);
    const last = info.value.state.last_seq;
    if (last >= floor) {
      history.saw(last);
      return ok(last);
    }
    const why = `stream ${streamName} ends at ${last}, but held ${floor} before`;
    // One of several may only be behind, which passes. The one server there is has lost it.
    return isReplicated ? unavailable(why) : history.lose(`${why}: it lost some of its history`);
  };

  const readStream = async (
    stream: StreamId,
    budgetMs: number,
  ): Promise<Result<{ events: readonly RecordedAt[]; revision: StreamRevision }, Unavailable>> => {
    if (history.lost !== undefined) return unavailable(history.lost);
    const natsSubject = logSubject(stream);
    const readBy = performance.now() + budgetMs;
    let message = await lastOnSubject(bus, streamName, natsSubject, { timeoutMs: budgetMs });
    if (!message.ok) return message;
    if (message.value === undefined) return ok({ events: [], revision: 0 });
    const revision = message.value.sequence;
    const newestFirst: RecordedAt[][] = [];
    for (;;) {
      const found: StoredMessage | undefined = message.value;
      if (found === undefined || found.subject !== natsSubject) return unavailable('a record of the stream is missing from the log');
      const record = readRecord(found);
      if (record.kind !== 'events')
        return unavailable(`the record at ${found.sequence} cannot be read: ${record.kind === 'parked' ? record.why : record.kind}`);
      newestFirst.push(record.events.map((event) => ({ stream, event, position: found.sequence, revision: found.sequence })));
      if (record.previous === 0) break;
      const leftMs = readBy - performance.now();
      if (leftMs <= 0) return unavailable(`the stream was not read within ${budgetMs} ms`);
      message = await messageAt(bus, streamName, record.previous, { timeoutMs: leftMs });
      if (!message.ok) return message;
    }
    history.saw(revision);
    return ok({ events: newestFirst.reverse().flat(), revision });
  };

  const subscribe = (from: Position, listener: LogListener): LogSubscription => {
    let told: boolean | undefined;
    let closed = false;
    const alive = (isAlive: boolean): void => {
      if (closed || told === isAlive) return;
      told = isAlive;
      listener.alive(isAlive);
    };
    const follow = followStream(bus, {
      stream: streamName,
      fromSequence: from + 1,
      heartbeatMs,
      batch: FEED_BATCH,
      check: async () => {
        const last = await head();
        return last.ok ? undefined : last.error.reason;
      },
      onMessage: (message) => {
        if (closed) return;
        history.saw(message.sequence);
        tell(listener, message);
      },
      onAlive: (isAlive) => alive(isAlive && history.lost === undefined),
      // Said of a feed that has not begun to live, too: a listener must not take silence for "nothing yet".
      onTrouble: () => alive(false),
      onDefect: options.onDefect ?? leaveToProcess,
    });
    return history.followedBy({
      giveUp: () => {
        alive(false);
        closed = true;
        void follow.stop();
      },
      close: async () => {
        closed = true;
        await follow.stop();
      },
    });
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
      const stored = await bus.publishStored(natsSubject, body.value, {
        timeoutMs: halfMs,
        expectedLastSubjectSequence: expected,
        headers: { [SCHEMA_HEADER]: LogRecordMessage.name, 'Nats-Expected-Stream': streamName },
      });
      if (stored.ok) {
        const accepted = accept(stored.value.sequence, floor);
        return accepted.ok ? ok({ revision: accepted.value, position: accepted.value }) : accepted;
      }
      if (stored.error.kind === 'too_large') return err({ kind: 'too_large' });
      if (stored.error.kind === 'full') return unavailable(`stream ${streamName} is full`);
      // A conflict may be with our own earlier attempt, and what was not answered may still have been stored.
      const found = await readStream(stream, halfMs);
      if (!found.ok) return found;
      // Still as expected: the record may be under way. Once the stream has moved on without it, it never can be stored.
      // Before that a deposed leader may have answered.
      if (stored.error.kind === 'unavailable' && found.value.revision <= expected) return err(stored.error);
      return answerFromStream(found.value.events, events, found.value.revision);
    },
    read: async (stream) => {
      const found = await readStream(stream, timeoutMs);
      if (!found.ok) return found;
      const events = found.value.events.map(({ event, position }) => ({ stream, event, position }));
      return ok({ events, revision: found.value.revision });
    },
    subscribe,
    // With one server its answer is linearizable, because there is no other.
    barrier: sharedBarrier(isReplicated ? appendBarrier : head),
    close: async () => {
      await history.close();
    },
  });
};

/** Name and instant of creation, which the server keeps over restarts: a stream made anew has another. */
const storeIdOf = ({ config, created }: StreamInfo): string => `jetstream-${sha256(JSON.stringify([config.name, created])).slice(0, 32)}`;

/** "Expected: nothing" would succeed a second time on a stream that forgets, and an ended grant would be issued again. */
const whyUnfit = ({ config }: StreamInfo): string | undefined => {
  if (config.retention !== 'limits') return 'does not keep what was read (retention must be "limits")';
  if (config.max_age > 0) return 'forgets by age';
  if (config.max_msgs_per_subject > 0) return 'forgets by number of records on a subject';
  if (config.discard !== 'new' && (config.max_msgs > 0 || config.max_bytes > 0)) return 'discards old records when it is full';
  return undefined;
};

type ReadRecord =
  | { readonly kind: 'events'; readonly stream: StreamId; readonly events: readonly LogEvent[]; readonly previous: StreamRevision }
  | { readonly kind: 'barrier' }
  | { readonly kind: 'parked'; readonly why: string };

const readRecord = (message: StoredMessage): ReadRecord => {
  const { subject, sequence, data } = message;
  const place = logPlace(subject);
  if (place.kind === 'unknown') return { kind: 'parked', why: 'not a subject of the log' };
  if (place.kind === 'barrier') return { kind: 'barrier' };
  const schema = message.header(SCHEMA_HEADER);
  if (schema !== LogRecordMessage.name) return { kind: 'parked', why: `not a ${LogRecordMessage.name} by its header` };
  const expected = message.header(EXPECTED_HEADER) ?? '';
  const previous = Number(expected);
  if (!/^\d{1,16}$/.test(expected) || previous >= sequence) return { kind: 'parked', why: 'not appended at a revision' };
  const events = decodeRecord(data);
  return events.ok ? { kind: 'events', stream: place.stream, events: events.value, previous } : { kind: 'parked', why: events.error };
};

const tell = (listener: LogListener, message: StoredMessage): void => {
  const { sequence: position, subject: natsSubject } = message;
  const record = readRecord(message);
  if (record.kind === 'parked') listener.parked({ position, natsSubject, why: record.why });
  if (record.kind === 'events') for (const event of record.events) listener.event({ stream: record.stream, event, position });
  listener.reached(position);
};
