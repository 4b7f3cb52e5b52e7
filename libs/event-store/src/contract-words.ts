import { expect } from 'vitest';
import { pause } from '@sharedos/bus';
import { type LogEvent, timestampOf } from '@sharedos/contracts';
import { eventIdOf } from './event-id.ts';
import type { Appended, EventStore, LogListener, Position, Recorded, StreamId } from './event-store.ts';

export const WAIT_MS = 15_000;
/** A store whose connection is lost answers at once, so trying again needs a pace. */
const RETRY_MS = 10;

let counted = 0;
/** An event of its own id; `note` is what tests tell events apart by. */
export const eventOf = (note: string, size = 0): LogEvent => {
  counted += 1;
  return {
    eventId: eventIdOf({ namespaceId: 'contract', principal: 'tester', verb: 'note', commandId: `${counted}`, index: 0 }),
    type: 'Noted',
    schemaVersion: 1,
    at: timestampOf(Date.UTC(2026, 0, 1, 12)),
    principal: { kind: 'human', userId: 'tester' },
    correlationId: 'contract',
    data: { note, padding: 'x'.repeat(size) },
  };
};
export const eventsOf = (...notes: readonly string[]): readonly LogEvent[] => notes.map((note) => eventOf(note));
export const newStream = (id = `g-${(counted += 1)}`): StreamId => ({ category: 'grant', namespaceId: 'contract', id });
export const noteOf = ({ event }: Recorded): string => event.data['note'] as string;

export const sameEvents = (a: readonly Recorded[], b: readonly Recorded[]) =>
  expect(a.map((each) => [each.position, each.event.eventId])).toEqual(b.map((each) => [each.position, each.event.eventId]));

/** Appends, trying again with the same events while there is no answer: what every caller of the port does. */
export const appendSurely = async (
  store: EventStore,
  stream: StreamId,
  expected: number,
  events: readonly LogEvent[],
): Promise<Appended> => {
  const deadline = performance.now() + WAIT_MS;
  for (;;) {
    const appended = await store.append(stream, expected, events);
    if (appended.ok) return appended.value;
    if (appended.error.kind !== 'unavailable' || performance.now() > deadline)
      throw new Error(`not appended: ${JSON.stringify(appended.error)}`);
    await pause(RETRY_MS);
  }
};
export const readSurely = async (store: EventStore, stream: StreamId) => {
  const deadline = performance.now() + WAIT_MS;
  for (;;) {
    const read = await store.read(stream);
    if (read.ok) return read.value;
    if (performance.now() > deadline) throw new Error(`not read: ${read.error.reason}`);
    await pause(RETRY_MS);
  }
};
export const barrierOf = async (store: EventStore): Promise<Position> => {
  const deadline = performance.now() + WAIT_MS;
  for (;;) {
    const barrier = await store.barrier(WAIT_MS);
    if (barrier.ok) return barrier.value;
    if (performance.now() > deadline) throw new Error(`no barrier: ${barrier.error.reason}`);
    await pause(RETRY_MS);
  }
};

/** All that one subscription was told. */
export const listen = (store: EventStore, from: Position, also: Partial<LogListener> = {}) => {
  const told = {
    events: [] as Recorded[],
    parked: [] as { position: Position; natsSubject: string; why: string }[],
    /** Every position that was reached, in order. */
    places: [] as Position[],
    reached: from,
    alive: [] as boolean[],
  };
  const waiting = new Set<() => void>();
  const look = () => waiting.forEach((check) => check());
  const subscription = store.subscribe(from, {
    event: (recorded) => {
      expect(recorded.position, 'an event is told before its position is reached').toBeGreaterThan(told.reached);
      told.events.push(recorded);
      also.event?.(recorded);
    },
    parked: (parked) => void told.parked.push(parked),
    reached: (position) => {
      expect(position, 'positions grow').toBeGreaterThan(told.reached);
      told.reached = position;
      told.places.push(position);
      look();
    },
    alive: (isAlive) => {
      expect(isAlive, 'only changes are told').not.toBe(told.alive.at(-1));
      told.alive.push(isAlive);
      look();
    },
  });
  const until = (what: string, condition: () => boolean) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`waited for ${what}; reached ${told.reached}, alive ${told.alive.join()}`)), WAIT_MS);
      const check = () => {
        if (!condition()) return;
        clearTimeout(timer);
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
      check();
    });
  return {
    told,
    untilReached: (position: Position) => until(`position ${position}`, () => told.reached >= position),
    untilAlive: (isAlive: boolean) => until(`alive: ${isAlive}`, () => told.alive.at(-1) === isAlive),
    close: () => subscription.close(),
  };
};
