import { type ParsedSubject, type Result, type Unavailable, ok, parseSubject, unavailable } from '@sharedos/contracts';
import type { Msg } from 'nats';
import type { Bus } from './bus.ts';
import type { ForwardDelivery } from './forward-queue.ts';
import { headerOf } from './headers.ts';
import type { DeliveryPlace } from './stored-message.ts';
import type { QueuedDelivery, WorkQueueOptions } from './work-queue.ts';

const ACK_MS = 5_000;

/** One message of a durable consumer, and the ways to settle it. */
export class Taken implements QueuedDelivery, ForwardDelivery {
  readonly parsed: ParsedSubject | undefined;
  readonly sequence: number;
  readonly deliveryCount: number;
  readonly waitingBehind: number;
  readonly signal: AbortSignal;
  readonly #bus: Bus;
  readonly #message: Msg;
  readonly #onTerminated: WorkQueueOptions['onTerminated'];
  settled = false;

  constructor(bus: Bus, message: Msg, place: DeliveryPlace, signal: AbortSignal, onTerminated: WorkQueueOptions['onTerminated']) {
    this.#bus = bus;
    this.#message = message;
    this.#onTerminated = onTerminated;
    this.parsed = parseSubject(message.subject);
    this.sequence = place.sequence;
    this.deliveryCount = place.deliveryCount;
    this.waitingBehind = place.pending;
    this.signal = signal;
  }

  get subject(): string {
    return this.#message.subject;
  }

  get data(): Uint8Array {
    return this.#message.data;
  }

  get redelivered(): boolean {
    return this.deliveryCount > 1;
  }

  header(name: string): string | undefined {
    return headerOf(this.#message.headers, name);
  }

  async ack(): Promise<Result<void, Unavailable>> {
    this.settled = true;
    if (!this.#bus.connected) return unavailable('not connected to NATS');
    const done = await this.#bus.replies.send(this.#message.reply ?? '', '+ACK', undefined, ACK_MS);
    return done.ok ? ok(undefined) : unavailable(done.error.reason);
  }

  done(): void {
    this.#settle('+ACK');
  }

  nak(delayMs: number): void {
    this.#settle(`-NAK ${JSON.stringify({ delay: Math.round(delayMs * 1_000_000) })}`);
  }

  term(reason: string): void {
    // The broker of 2.9 takes no reason with it, and would read one as no answer at all.
    this.#settle('+TERM');
    this.#onTerminated?.(this.sequence, reason);
  }

  #settle(verb: string): void {
    this.settled = true;
    if (this.#bus.connected) this.#bus.outbox.publish(this.#message.reply ?? '', verb, {}, () => undefined);
  }
}
