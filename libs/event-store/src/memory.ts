import { randomUUID } from 'node:crypto';
import { type Result, type Unavailable, ok, unavailable } from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';
import type { EventStore, LogListener, LogSubscription, Position, Recorded } from './event-store.ts';
import { decodeRecord, encodeRecord } from './log-record.ts';
import { logPlace, logSubject } from './log-subject.ts';
import { type RecordedAt, answerFromStream } from './recorded-append.ts';

export interface MemoryEventStoreOptions {
  readonly storeId?: string;
  /** How long an append or read waits while the store is stopped, in milliseconds. */
  readonly timeoutMs?: number;
}

/** An event store in this process, with the switches that tests need and a real one has by nature. */
export interface MemoryEventStore extends EventStore {
  /**
   * Answers nothing any more, like a server whose process is stopped: callers are `unavailable` at their deadline, and what they
   * sent is done after all on {@link MemoryEventStore.resume}.
   */
  stop(): void;
  resume(): void;
  /** Does what it is asked and answers nothing, until {@link MemoryEventStore.hear}. */
  mute(): void;
  hear(): void;
  /** Writes any bytes under any subject, past every check, and returns the position. */
  appendRaw(natsSubject: string, body: Uint8Array): Position;
}

/** Calls that may wait for a stopped store; one more is `unavailable` at once. */
const WAITING_MAX = 10_000;

type Entry =
  | { readonly kind: 'event'; readonly position: Position; readonly recorded: Recorded }
  | { readonly kind: 'parked'; readonly position: Position; readonly natsSubject: string; readonly why: string };

/**
 * Keeps the log in memory. A revision counts the events of its stream and every event has a position of its own, unlike in the
 * JetStream adapter: code that takes one for the other fails on one of the two.
 */
export const memoryEventStore = ({
  storeId = `memory-${randomUUID()}`,
  timeoutMs = 100,
}: MemoryEventStoreOptions = {}): MemoryEventStore => {
  const log: Entry[] = [];
  const streams = new Map<string, RecordedAt[]>();
  /** Streams with a record that cannot be read, and why: what they say as a whole is not known. */
  const unreadable = new Map<string, string>();
  const subscriptions = new Set<MemorySubscription>();
  const waiting = new Set<() => void>();
  let stopped = false;
  let muted = false;
  let closed = false;

  const tell = () => subscriptions.forEach((subscription) => subscription.wake());

  /** Does `work` now, or when the store goes on; the caller hears `unavailable` at its deadline, and the work is still done. */
  const served = <T, E>(deadlineMs: number, work: () => Result<T, E>): Promise<Result<T, E | Unavailable>> => {
    if (closed) return Promise.resolve(unavailable('the store is closed'));
    if (muted) return unheard(work, deadlineMs);
    if (!stopped) return Promise.resolve(work());
    if (waiting.size >= WAITING_MAX) return Promise.resolve(unavailable('too many calls wait for the store'));
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(unavailable(`no answer within ${deadlineMs} ms`)), deadlineMs);
      waiting.add(() => {
        clearTimeout(timer);
        resolve(work());
      });
    });
  };

  const append = (recorded: Recorded, stream: RecordedAt[]) => {
    stream.push({ ...recorded, revision: stream.length + 1 });
    log.push({ kind: 'event', position: recorded.position, recorded });
  };

  return {
    storeId,
    append: async (stream, expected, events) => {
      const name = logSubject(stream);
      const body = encodeRecord(events);
      if (!body.ok) return body;
      // Read back from the bytes, so that nobody holds an object that the log also holds.
      const copies = decodeRecord(body.value);
      invariant(copies.ok, 'what was encoded can be decoded');
      return served(timeoutMs, () => {
        const recorded = streams.get(name) ?? [];
        const why = unreadable.get(name);
        if (why !== undefined) return unavailable(why);
        if (recorded.length !== expected) return answerFromStream(recorded, copies.value, recorded.length);
        streams.set(name, recorded);
        for (const event of copies.value) append({ stream, event, position: log.length + 1 }, recorded);
        tell();
        return ok({ revision: recorded.length, position: log.length });
      });
    },
    read: async (stream) => {
      const name = logSubject(stream);
      return served(timeoutMs, () => {
        const recorded = streams.get(name) ?? [];
        const why = unreadable.get(name);
        if (why !== undefined) return unavailable(why);
        return ok({ events: recorded.map(({ event, position }) => ({ stream, event, position })), revision: recorded.length });
      });
    },
    subscribe: (from, listener) => {
      const subscription = new MemorySubscription(from, listener, log, () => !stopped && !closed);
      subscriptions.add(subscription);
      subscription.wake();
      return {
        close: async () => {
          subscription.close();
          subscriptions.delete(subscription);
        },
      } satisfies LogSubscription;
    },
    barrier: (deadlineMs) => served(deadlineMs, () => ok(log.length)),
    close: async () => {
      closed = true;
      for (const subscription of subscriptions) subscription.close();
      subscriptions.clear();
    },
    stop: () => {
      stopped = true;
      tell();
    },
    resume: () => {
      stopped = false;
      const work = [...waiting];
      waiting.clear();
      work.forEach((go) => go());
      tell();
    },
    mute: () => {
      muted = true;
    },
    hear: () => {
      muted = false;
    },
    appendRaw: (natsSubject, body) => {
      const place = logPlace(natsSubject);
      const events = decodeRecord(body);
      if (place.kind === 'stream' && events.ok) {
        const recorded = streams.get(natsSubject) ?? [];
        streams.set(natsSubject, recorded);
        for (const event of events.value) append({ stream: place.stream, event, position: log.length + 1 }, recorded);
      } else {
        const why = place.kind === 'stream' && !events.ok ? events.error : 'not a subject of the log';
        if (place.kind === 'stream') unreadable.set(natsSubject, why);
        log.push({ kind: 'parked', position: log.length + 1, natsSubject, why });
      }
      tell();
      return log.length;
    },
  };
};

/** Does `work`, whose answer is lost. */
const unheard = (work: () => unknown, deadlineMs: number): Promise<Result<never, Unavailable>> => {
  work();
  return new Promise((resolve) => {
    setTimeout(() => resolve(unavailable(`no answer within ${deadlineMs} ms`)), deadlineMs);
  });
};

/** One reader of the log, told in a turn of its own so that a listener may append. */
class MemorySubscription {
  readonly #listener: LogListener;
  readonly #log: readonly Entry[];
  readonly #isServing: () => boolean;
  #position: Position;
  #alive: boolean | undefined;
  #woken = false;
  #closed = false;

  constructor(from: Position, listener: LogListener, log: readonly Entry[], isServing: () => boolean) {
    this.#position = from;
    this.#listener = listener;
    this.#log = log;
    this.#isServing = isServing;
  }

  wake(): void {
    if (this.#woken) return;
    this.#woken = true;
    queueMicrotask(() => {
      this.#woken = false;
      this.#deliver();
    });
  }

  close(): void {
    this.#closed = true;
  }

  #deliver(): void {
    if (this.#closed) return;
    const serving = this.#isServing();
    if (serving !== this.#alive) {
      this.#alive = serving;
      this.#listener.alive(serving);
    }
    // Positions count from 1 without a gap, so the entry after a position stands at that index.
    for (
      let entry = this.#log[this.#position];
      entry !== undefined && !this.#closed && this.#isServing();
      entry = this.#log[this.#position]
    ) {
      this.#position = entry.position;
      if (entry.kind === 'event') this.#listener.event(entry.recorded);
      else this.#listener.parked({ position: entry.position, natsSubject: entry.natsSubject, why: entry.why });
      this.#listener.reached(entry.position);
    }
  }
}
