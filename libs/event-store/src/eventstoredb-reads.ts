import {
  type AllStreamResolvedEvent,
  BACKWARDS,
  END,
  type EventStoreDBClient,
  FORWARDS,
  type Position as LogPosition,
  type ResolvedEvent,
  START,
} from '@eventstore/db-client';
import type { Result } from '@sharedos/contracts';
import type { CallFailure, EventStoreDbConnection } from './eventstoredb-connection.ts';

/** What a read of the client is: a stream of events that can be ended early. */
interface Read<T> extends AsyncIterable<T> {
  on(event: 'error', listener: () => void): unknown;
  cancel(): Promise<void>;
}

/** All events of a stream from its beginning; `not_found` for one that was never written. */
export const readWholeStream = (
  connection: EventStoreDbConnection,
  stream: string,
  budgetMs: number,
): Promise<Result<readonly ResolvedEvent[], CallFailure>> =>
  connection.call(budgetMs, (client, signal) =>
    collect(client.readStream(stream, { ...connection.options, direction: FORWARDS, fromRevision: START }), signal),
  );

/** Up to `maxCount` events of the log from `from` on, the one at `from` among them. */
export const readLog = (
  connection: EventStoreDbConnection,
  from: LogPosition | undefined,
  maxCount: number,
  budgetMs: number,
): Promise<Result<readonly AllStreamResolvedEvent[], CallFailure>> =>
  connection.call(budgetMs, (client, signal) => readFrom(client, connection, from, maxCount, signal));

/** The last position of the log that the leader has; not linearizable, for a leader may have been replaced without knowing it. */
export const readEnd = async (connection: EventStoreDbConnection, budgetMs: number): Promise<Result<bigint, CallFailure>> => {
  const read = await connection.call(budgetMs, (client, signal) =>
    collect(client.readAll({ ...connection.options, direction: BACKWARDS, fromPosition: END, maxCount: 1 }), signal),
  );
  return read.ok ? { ok: true, value: read.value[0] === undefined ? 0n : commitOf(read.value[0]) } : read;
};

const readFrom = (
  client: EventStoreDBClient,
  { options }: EventStoreDbConnection,
  from: LogPosition | undefined,
  maxCount: number,
  signal: AbortSignal,
): Promise<readonly AllStreamResolvedEvent[]> =>
  collect(client.readAll({ ...options, direction: FORWARDS, fromPosition: from ?? START, maxCount }), signal);

const collect = async <T>(read: Read<T>, signal: AbortSignal): Promise<readonly T[]> => {
  // Heard even when nobody waits for the read any more: an error that nobody hears ends the process.
  read.on('error', () => undefined);
  signal.addEventListener('abort', () => void read.cancel().catch(() => undefined), { once: true });
  const events: T[] = [];
  for await (const event of read) events.push(event);
  // The client ends a cancelled read like any other, and half of a stream must not pass for all of it.
  if (signal.aborted) throw new Error('the read was cancelled');
  return events;
};

/** Where the log holds it; `undefined` when the server does not say, as servers before 22.6 do not in streams. */
export const commitIn = ({ event, link, commitPosition }: ResolvedEvent): bigint | undefined =>
  commitPosition ?? (link ?? event)?.position?.commit;

export const commitOf = (resolved: AllStreamResolvedEvent): bigint => commitIn(resolved) ?? 0n;
