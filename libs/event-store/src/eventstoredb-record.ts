import { randomUUID } from 'node:crypto';
import { type ResolvedEvent, binaryEvent } from '@eventstore/db-client';
import { type LogEvent, LogRecordMessage } from '@sharedos/contracts';
import type { Position, StreamId, StreamRevision } from './event-store.ts';
import { decodeRecord } from './log-record.ts';
import { logPlace } from './log-subject.ts';

/** What a record is called in the log: the name of its schema, version included. */
const RECORD_TYPE = LogRecordMessage.name;
const BARRIER_TYPE = 'log.barrier/1';

/**
 * One append as one event of the log, which is all or none and has one position.
 *
 * Its id is fresh for each attempt. The server answers a repeated id with success, and then nobody could tell an append from its
 * repetition; ours are recognised by the ids of the events inside, and the exact revision keeps a second attempt out.
 */
export const recordEvent = (body: Uint8Array, expected: StreamRevision) =>
  binaryEvent({ id: randomUUID(), type: RECORD_TYPE, data: body, metadata: { expected } });

export const barrierEvent = () => binaryEvent({ id: randomUUID(), type: BARRIER_TYPE, data: new Uint8Array() });

export type ReadRecord =
  | { readonly kind: 'events'; readonly stream: StreamId; readonly events: readonly LogEvent[] }
  | { readonly kind: 'barrier' }
  | { readonly kind: 'parked'; readonly why: string };

/** Reads an event of the log as a record of the stream that `natsSubject` names. */
export const readRecord = (natsSubject: string, { event }: ResolvedEvent): ReadRecord => {
  const place = logPlace(natsSubject);
  if (place.kind === 'unknown') return parked('not a name of the log');
  if (event === undefined) return parked('a link to nothing');
  if (place.kind === 'barrier') return event.type === BARRIER_TYPE ? { kind: 'barrier' } : parked(`not a ${BARRIER_TYPE} by its type`);
  if (event.type !== RECORD_TYPE) return parked(`not a ${RECORD_TYPE} by its type`);
  if (!(event.data instanceof Uint8Array)) return parked('not bytes');
  // A stream that was deleted and begun anew goes on counting, and its first record still says that it expected nothing.
  const { expected } = (event.metadata ?? {}) as { readonly expected?: unknown };
  if (typeof expected !== 'number' || BigInt(Math.trunc(expected)) !== event.revision) return parked('not appended at its revision');
  const events = decodeRecord(event.data);
  return events.ok ? { kind: 'events', stream: place.stream, events: events.value } : parked(events.error);
};

const parked = (why: string): ReadRecord => ({ kind: 'parked', why });

/** A place of the log as the port counts; `undefined` for what a number cannot hold exactly, and for no place at all. */
export const positionOf = (commit: bigint | undefined): Position | undefined =>
  commit !== undefined && commit > 0n && commit <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(commit) : undefined;
