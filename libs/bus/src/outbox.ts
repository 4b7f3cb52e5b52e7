import type { NatsConnection, PublishOptions } from 'nats';

interface Waiting {
  readonly natsSubject: string;
  readonly payload: Uint8Array | string;
  readonly options: PublishOptions;
  readonly onRefused: (error: unknown) => void;
}

/**
 * What this connection is about to send, handed to the client together once per turn of the event loop.
 *
 * The client makes a system call for each message that is published alone, and a busy service publishes nearly all of them so: that
 * was the largest single cost of every service. Handed over together they are one write, and one read for the broker. An idle
 * process pays nothing for it: the end of its turn is the next thing that happens.
 */
export class Outbox {
  readonly #nats: NatsConnection;
  #waiting: Waiting[] = [];

  constructor(nats: NatsConnection) {
    this.#nats = nats;
  }

  /** Never throws. `onRefused` hears what the client would not take: larger than the broker accepts, or a closed connection. */
  publish(natsSubject: string, payload: Uint8Array | string, options: PublishOptions, onRefused: (error: unknown) => void): void {
    if (this.#waiting.push({ natsSubject, payload, options, onRefused }) === 1) setImmediate(() => this.send());
  }

  /** Hands over what waits, at once. */
  send(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { natsSubject, payload, options, onRefused } of waiting) {
      try {
        this.#nats.publish(natsSubject, payload, options);
      } catch (error) {
        onRefused(error);
      }
    }
  }

  /** The connection is lost: what waits for it was never sent, and must not be sent by the next one behind its asker's back. */
  discard(): void {
    this.#waiting = [];
  }
}
