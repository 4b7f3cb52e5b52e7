import { type Msg, type Subscription, createInbox } from 'nats';
import type { Bus } from './bus.ts';
import { type DeliveryPlace, type StoredMessage, placeOf, storedFromDelivery } from './stored-message.ts';

export interface PullFeedOptions {
  /** Where this consumer is asked for messages. */
  readonly natsSubject: string;
  readonly heartbeatMs: number;
  readonly batch: number;
  readonly signal: AbortSignal;
  /** Whether this reader gets all of the consumer's messages, so that a gap between two of them is trouble. */
  readonly gapless: boolean;
  /** Every sign of life: a message, a beat, "nothing now". */
  readonly onLife: () => void;
  /** What it returns makes the next message wait. */
  readonly onMessage: (message: StoredMessage, delivery: { readonly raw: Msg; readonly place: DeliveryPlace }) => void | Promise<void>;
  /** What was fetched and never handed over, once the feed has ended. */
  readonly onLeft?: (left: readonly { readonly raw: Msg; readonly place: DeliveryPlace }[]) => void;
}

const PULL_MS = 30_000;

/**
 * Pulls from one consumer until something is wrong, and then says what. One pull at a time; what arrives while a handler still
 * works is held, at most a batch and a half of it.
 *
 * @returns Why it ended, once the handler at work is done. It never rejects as long as `onMessage` does not.
 */
export const pullFeed = (bus: Bus, options: PullFeedOptions): Promise<string> =>
  new Promise((resolve) => {
    void new PullFeed(bus, options, resolve);
  });

interface Held {
  readonly message: StoredMessage;
  readonly raw: Msg;
  readonly place: DeliveryPlace;
}

class PullFeed {
  readonly #bus: Bus;
  readonly #options: PullFeedOptions;
  readonly #onEnded: (reason: string) => void;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #unwatch: () => void;
  readonly #watchdog: NodeJS.Timeout;
  readonly #onAbort = (): void => this.#end('stopped');
  #held: Held[] = [];
  #handling: Promise<void> | undefined;
  #ended = false;
  #pull = 0;
  #outstanding = 0;
  #consumerSequence = 0;
  #lastSign = performance.now();
  #overdue = 0;

  constructor(bus: Bus, options: PullFeedOptions, onEnded: (reason: string) => void) {
    this.#bus = bus;
    this.#options = options;
    this.#onEnded = onEnded;
    this.#inbox = createInbox(bus.replies.inboxPrefix);
    this.#subscription = bus.nats.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => (error === null ? this.#arrived(message) : this.#end('no permission to subscribe to the inbox')),
    });
    this.#unwatch = bus.watch((connected) => {
      if (!connected) this.#end('the connection to NATS was lost');
    });
    this.#watchdog = setInterval(() => this.#listen(), options.heartbeatMs / 2);
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
    // The first question is answered at once even when there is nothing, so the feed need not wait for a beat to be alive.
    this.#ask({ batch: options.batch, no_wait: true });
  }

  #ask(question: object): void {
    if (this.#ended) return;
    if (this.#options.signal.aborted || !this.#bus.connected) return this.#end('stopped or not connected');
    this.#outstanding = this.#options.batch;
    this.#lastSign = performance.now();
    this.#pull += 1;
    try {
      this.#bus.nats.publish(this.#options.natsSubject, JSON.stringify(question), { reply: `${this.#inbox}.${this.#pull}` });
    } catch {
      this.#end('the connection to NATS is closed');
    }
  }

  #askForMore(): void {
    if (this.#outstanding > 0 || this.#held.length > this.#options.batch / 2) return;
    this.#ask({ batch: this.#options.batch, expires: PULL_MS * 1_000_000, idle_heartbeat: this.#options.heartbeatMs * 1_000_000 });
  }

  #arrived(message: Msg): void {
    if (this.#ended) return;
    const code = message.headers?.code ?? 0;
    if (code === 0) return this.#delivered(message);
    if (code !== 100 && code !== 404 && code !== 408) {
      return this.#end(code === 503 ? 'the consumer is gone' : `the broker ended the wait (${code} ${message.headers?.description ?? ''})`);
    }
    this.#alive();
    if (code === 100 || message.subject !== `${this.#inbox}.${this.#pull}`) return;
    this.#outstanding = 0;
    this.#askForMore();
  }

  #delivered(message: Msg): void {
    const place = placeOf(message.reply);
    if (place === undefined || (this.#options.gapless && place.consumerSequence !== this.#consumerSequence + 1)) {
      return this.#end('a message is missing');
    }
    this.#consumerSequence = place.consumerSequence;
    this.#outstanding -= 1;
    this.#alive();
    const held = { message: storedFromDelivery(message, place), raw: message, place };
    if (this.#handling === undefined) this.#hand(held);
    else this.#held.push(held);
    this.#askForMore();
  }

  /** Most handlers are done when they return; only one that is not makes the ones behind it wait. */
  #hand(first: Held): void {
    for (let next: Held | undefined = first; next !== undefined && !this.#ended; next = this.#held.shift()) {
      const handling = this.#options.onMessage(next.message, next);
      if (handling === undefined) continue;
      this.#handling = handling.then(() => {
        this.#handling = undefined;
        const waiting = this.#held.shift();
        if (waiting !== undefined) this.#hand(waiting);
        this.#askForMore();
      });
      return;
    }
  }

  #alive(): void {
    this.#lastSign = performance.now();
    this.#overdue = 0;
    this.#options.onLife();
  }

  #listen(): void {
    // With nothing asked for, nothing is owed.
    if (this.#outstanding === 0) this.#lastSign = performance.now();
    if (performance.now() - this.#lastSign <= 2 * this.#options.heartbeatMs) return;
    // Once may be our own process that was busy while the beats lay unread in the socket.
    this.#overdue += 1;
    if (this.#overdue >= 2) this.#end('two heartbeats were missed');
  }

  #end(reason: string): void {
    if (this.#ended) return;
    this.#ended = true;
    const left = this.#held;
    this.#held = [];
    clearInterval(this.#watchdog);
    this.#unwatch();
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    if (!this.#subscription.isClosed() && !this.#bus.nats.isClosed()) this.#subscription.unsubscribe();
    this.#options.onLeft?.(left);
    if (this.#handling === undefined) this.#onEnded(reason);
    else void this.#handling.then(() => this.#onEnded(reason));
  }
}
