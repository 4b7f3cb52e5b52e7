import { type ExecutionEvent, type Instant, type Json, PROTOCOL_VERSION, timestampOf } from '@sharedos/contracts';
import { jsonBytes, sealed } from './contract-value.ts';
import { EVENTS_BYTES_MAX } from './limits.ts';

/** The events of one turn: numbered from 0 without gaps, frozen, bounded in bytes. @see spec/turns.md §11 */
export interface TurnEvents {
  readonly recorded: readonly ExecutionEvent[];
  /** Bytes for which room was taken so far. */
  readonly reservedBytes: number;
  /** Takes room for so many events with data of `bytes` each; false when the turn has said as much as it may. */
  reserve(count: number, bytes: number): boolean;
  /** Adds an event and tells the observer. */
  record(type: string, data: Json): void;
  /** Adds an event that the observer is told of later, if at all. */
  append(type: string, data: Json): ExecutionEvent;
  tell(event: ExecutionEvent): void;
}

/** An event without its data, its execution and its trace: the keys, the two times and an id of the usual length. */
const FRAME_BYTES = 192;

export const createTurnEvents = (options: {
  readonly executionId: string;
  readonly traceId: string;
  readonly clock: () => Instant;
  readonly ids: () => string;
  readonly onEvent: ((event: ExecutionEvent) => unknown) | undefined;
}): TurnEvents => {
  const { executionId, traceId, clock, ids, onEvent } = options;
  const recorded: ExecutionEvent[] = [];
  let reserved = 0;

  const append = (type: string, data: Json): ExecutionEvent => {
    const event = sealed<ExecutionEvent>({
      version: PROTOCOL_VERSION,
      eventId: ids(),
      executionId,
      traceId,
      sequence: recorded.length,
      type,
      data,
      occurredAt: timestampOf(clock()),
    });
    recorded.push(event);
    return event;
  };
  const tell = (event: ExecutionEvent): void => {
    // An observer watches; whether it throws now or rejects later, the turn goes on.
    void (async () => onEvent?.(event))().catch(() => undefined);
  };
  const overhead = jsonBytes(executionId) + jsonBytes(traceId) + FRAME_BYTES;

  return {
    recorded,
    get reservedBytes() {
      return reserved;
    },
    reserve: (count, bytes) => {
      const needed = count * (bytes + overhead);
      if (reserved + needed > EVENTS_BYTES_MAX) return false;
      reserved += needed;
      return true;
    },
    record: (type, data) => tell(append(type, data)),
    append,
    tell,
  };
};
