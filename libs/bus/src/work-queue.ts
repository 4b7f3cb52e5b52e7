import type { ParsedSubject, Result, Unavailable } from '@sharedos/contracts';
import type { Msg } from 'nats';
import type { Bus } from './bus.ts';
import { type WithHeaders, contextFromHeaders } from './headers.ts';
import { OnePull } from './one-pull.ts';
import { placeOf } from './stored-message.ts';
import { Taken } from './taken.ts';
import { SpanKind, inMessageSpan } from './trace-span.ts';
import { backoffMs, pause, within } from './waiting.ts';

/** One message of a work queue, in the hands of one handler. It is settled by the first of `ack`, `nak` and `term`. */
export interface QueuedDelivery extends WithHeaders {
  readonly subject: string;
  /** `undefined` for a subject that is not spelled as ours are: settle it with `term`. */
  readonly parsed: ParsedSubject | undefined;
  readonly data: Uint8Array;
  /** Place in the stream: the same however often the message is delivered. */
  readonly sequence: number;
  readonly redelivered: boolean;
  /** 1 for the first delivery. */
  readonly deliveryCount: number;
  /** Aborted when the queue stops and its grace is over. */
  readonly signal: AbortSignal;
  /**
   * Takes the message out of the queue, and waits until the broker has done so. `unavailable`: it may come again.
   *
   * Only whoever claimed the work may call it: a late acknowledgement also ends a delivery that runs elsewhere by then.
   */
  ack(): Promise<Result<void, Unavailable>>;
  /** Hands the message back, to be delivered again no earlier than `delayMs` from now. */
  nak(delayMs: number): void;
  /** Takes it out as unfit for any handler. `reason` goes to `onTerminated`. */
  term(reason: string): void;
}

export interface WorkQueueOptions {
  readonly stream: string;
  /** An existing durable pull consumer with explicit acknowledgement. */
  readonly consumer: string;
  /** Handlers at once. Nothing is fetched ahead: a message is asked for only when a handler is free. */
  readonly concurrency: number;
  /** The consumer's `ack_wait`. The lease is extended at each third of it while a handler runs. */
  readonly leaseMs: number;
  readonly handle: (delivery: QueuedDelivery) => Promise<void>;
  /** A handler threw, or ended without settling its message, which is then handed back. */
  readonly onDefect: (error: unknown, where: string) => void;
  /** The queue cannot be read now, and is tried again by itself. */
  readonly onTrouble?: (reason: string) => void;
  readonly onTerminated?: (sequence: number, reason: string) => void;
  /** First delay of what a failed handler left; doubles with each delivery, up to a minute. */
  readonly retryDelayMs?: number;
}

export interface WorkQueue {
  /** Messages being handled now. */
  readonly running: number;
  /** Whether the broker answered the last time it was asked for work. */
  readonly alive: boolean;
  /** Asks for nothing more, waits for the handlers, aborts them after `graceMs` and returns soon after. */
  stop(options: { readonly graceMs: number }): Promise<void>;
}

const RETRY_MS = 1_000;
const RETRY_MOST_MS = 60_000;
const ABORTED_MS = 2_000;

/**
 * Works off a durable consumer. It comes back by itself after a lost connection, a restart of the broker, and a consumer that was
 * deleted and made anew.
 */
export const workQueue = (bus: Bus, options: WorkQueueOptions): WorkQueue => new PullingQueue(bus, options);

class PullingQueue implements WorkQueue {
  readonly #bus: Bus;
  readonly #options: WorkQueueOptions;
  readonly #stopping = new AbortController();
  readonly #aborted = new AbortController();
  readonly #pulls: readonly OnePull[];
  readonly #slots: readonly Promise<void>[];
  #failures = 0;
  #running = 0;
  #alive = false;

  constructor(bus: Bus, options: WorkQueueOptions) {
    this.#bus = bus;
    this.#options = options;
    this.#pulls = Array.from({ length: options.concurrency }, () => new OnePull(bus, options.stream, options.consumer, options.leaseMs));
    this.#slots = this.#pulls.map((pull) => this.#workOff(pull));
  }

  get running(): number {
    return this.#running;
  }

  get alive(): boolean {
    return this.#alive && this.#bus.connected;
  }

  async stop({ graceMs }: { readonly graceMs: number }): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#pulls.map((pull) => pull.stop()));
    const ended = Promise.allSettled(this.#slots);
    if ((await within(ended, graceMs)) === undefined) {
      this.#aborted.abort();
      await within(ended, ABORTED_MS);
    }
  }

  /** One handler's place: asks for one message, handles it, asks for the next. */
  async #workOff(pull: OnePull): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const pulled = await pull.next();
      if (pulled.kind === 'failed') {
        if (this.#alive && !signal.aborted) this.#options.onTrouble?.(pulled.reason);
        this.#alive = false;
        this.#failures += 1;
        await pause(backoffMs(Math.floor(this.#failures / this.#options.concurrency)), signal);
        continue;
      }
      this.#alive = true;
      this.#failures = 0;
      if (pulled.kind === 'message') await this.#handle(pulled.message);
    }
  }

  async #handle(message: Msg): Promise<void> {
    const place = placeOf(message.reply);
    if (place === undefined) {
      this.#options.onDefect(new Error('a message without a reply subject of a consumer'), 'work queue');
      return;
    }
    this.#running += 1;
    const lease = setInterval(() => this.#respond(message, '+WPI'), this.#options.leaseMs / 3);
    const delivery = new Taken(this.#bus, message, place, this.#aborted.signal, this.#options.onTerminated);
    const { parsed } = delivery;
    const handled = {
      kind: SpanKind.CONSUMER,
      name: parsed?.verb ?? 'unknown',
      parsed,
      bytes: message.data.byteLength,
      group: this.#options.consumer,
    } as const;
    try {
      await inMessageSpan(contextFromHeaders(delivery), handled, () => this.#options.handle(delivery));
      if (!delivery.settled) throw new Error('the handler ended without settling its message');
    } catch (error) {
      this.#options.onDefect(error, `work queue ${this.#options.consumer}`);
      if (!delivery.settled) delivery.nak(this.#retryDelay(place.deliveryCount));
    } finally {
      clearInterval(lease);
      this.#running -= 1;
    }
  }

  #retryDelay(deliveryCount: number): number {
    return Math.min(RETRY_MOST_MS, (this.#options.retryDelayMs ?? RETRY_MS) * 2 ** Math.min(deliveryCount - 1, 16));
  }

  #respond(message: Msg, verb: string): void {
    if (this.#bus.connected && !this.#bus.nats.isClosed()) message.respond(verb);
  }
}
