import type { Msg } from 'nats';
import type { Bus } from './bus.ts';
import { contextFromHeaders } from './headers.ts';
import { pullFeed } from './pull-feed.ts';
import type { DeliveryPlace } from './stored-message.ts';
import { Taken } from './taken.ts';
import { SpanKind, inMessageSpan } from './trace-span.ts';
import { backoffMs, pause, within } from './waiting.ts';
import type { QueuedDelivery, WorkQueue, WorkQueueOptions } from './work-queue.ts';

/** One message in the hands of a forwarder. It is settled by the first of `done`, `nak` and `term`. */
export interface ForwardDelivery extends Omit<QueuedDelivery, 'ack' | 'signal' | 'waitingBehind'> {
  /** Takes the message out of the queue, without waiting to hear that the broker did: if it did not, it comes again. */
  done(): void;
}

export interface ForwardQueueOptions extends Pick<WorkQueueOptions, 'stream' | 'onDefect' | 'onTrouble' | 'onTerminated'> {
  /** An existing durable pull consumer with explicit acknowledgement. */
  readonly consumer: string;
  /** Handlers at once, and messages asked for at once. */
  readonly concurrency: number;
  /** Must end well within the consumer's `ack_wait`: no lease is extended. */
  readonly handle: (delivery: ForwardDelivery) => Promise<void>;
}

const HEARTBEAT_MS = 2_000;
const RETRY_MS = 1_000;
const ABORTED_MS = 2_000;

/**
 * Works off a durable consumer many messages at a time, for work that may be done twice: messages are fetched ahead and settled
 * unheard, which takes a third of what {@link workQueue} asks of the broker for each. Replicas share the consumer.
 *
 * What was fetched when the connection broke comes again after the consumer's `ack_wait`.
 */
export const forwardQueue = (bus: Bus, options: ForwardQueueOptions): WorkQueue => new ForwardQueue(bus, options);

class ForwardQueue implements WorkQueue {
  readonly #bus: Bus;
  readonly #options: ForwardQueueOptions;
  readonly #stopping = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #ended: Promise<void>;
  #alive = false;

  constructor(bus: Bus, options: ForwardQueueOptions) {
    this.#bus = bus;
    this.#options = options;
    this.#ended = this.#run();
  }

  get running(): number {
    return this.#running.size;
  }

  get alive(): boolean {
    return this.#alive && this.#bus.connected;
  }

  async stop({ graceMs }: { readonly graceMs: number }): Promise<void> {
    this.#stopping.abort();
    await within(this.#ended, ABORTED_MS);
    await within(Promise.allSettled([...this.#running]), graceMs);
  }

  async #run(): Promise<void> {
    const { stream, consumer, concurrency } = this.#options;
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; failures += 1) {
      const reason = await pullFeed(this.#bus, {
        natsSubject: `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
        heartbeatMs: HEARTBEAT_MS,
        batch: concurrency,
        signal,
        gapless: false,
        onLife: () => {
          this.#alive = true;
          failures = 0;
        },
        onMessage: (_, delivery) => this.#take(this.#taken(delivery)),
        onLeft: (left) => left.forEach((delivery) => this.#taken(delivery).nak(0)),
      });
      if (this.#alive && !signal.aborted) this.#options.onTrouble?.(reason);
      this.#alive = false;
      await pause(backoffMs(failures), signal);
    }
  }

  #taken({ raw, place }: { readonly raw: Msg; readonly place: DeliveryPlace }): Taken {
    return new Taken(this.#bus, raw, place, this.#stopping.signal, this.#options.onTerminated);
  }

  /** @returns What the next message has to wait for, once all handlers are busy. */
  #take(delivery: Taken): Promise<void> | undefined {
    const handling = this.#handle(delivery).finally(() => this.#running.delete(handling));
    this.#running.add(handling);
    return this.#running.size < this.#options.concurrency ? undefined : Promise.race(this.#running);
  }

  /** Never rejects. */
  async #handle(delivery: Taken): Promise<void> {
    const { parsed } = delivery;
    const handled = {
      kind: SpanKind.CONSUMER,
      name: parsed?.verb ?? 'unknown',
      parsed,
      bytes: delivery.data.byteLength,
      group: this.#options.consumer,
    } as const;
    try {
      await inMessageSpan(contextFromHeaders(delivery), handled, () => this.#options.handle(delivery));
      if (!delivery.settled) throw new Error('the handler ended without settling its message');
    } catch (error) {
      this.#options.onDefect(error, `forwarding ${this.#options.consumer}`);
      if (!delivery.settled) delivery.nak(RETRY_MS);
    }
  }
}
