import type { EventStore, Position } from './event-store.ts';

/** Why an adapter cannot be put through something. */
export interface CannotBeHad {
  readonly cannot: string;
}

/** One history under test, and what may happen to it. */
export interface EventStoreWorld {
  /** A further client of the same history. */
  open(): Promise<EventStore>;
  /** Writes any bytes under any subject of the log, past the port. */
  appendRaw(natsSubject: string, body: Uint8Array): Promise<Position>;
  /** From now on nothing is answered; what is sent is kept, and done after {@link EventStoreWorld.resume}. */
  stop(): void;
  resume(): void;
  /** From now on what is sent is done at once, and no answer arrives, until {@link EventStoreWorld.hear}. */
  mute(): void;
  hear(): void;
  /** Cuts the connection of a client once; it comes back by itself. */
  reconnect(store: EventStore): Promise<void>;
  /** By when every call must be answered while the store is stopped, in milliseconds. */
  readonly deadlineMs: number;
  /** Connections stay open and no byte passes, as behind a pulled cable. */
  readonly blackHole: { begin(): void; end(): void } | CannotBeHad;
  /** Kills what keeps the history, and starts it again with what it had written. */
  readonly restart: (() => Promise<void>) | CannotBeHad;
  close(): Promise<void>;
}

/** What the tests of one adapter work on; there from the first test on. */
export interface UnderTest {
  readonly world: EventStoreWorld;
  readonly store: EventStore;
}
