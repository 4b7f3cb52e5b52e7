import { type Msg, type Subscription, createInbox } from 'nats';
import { type Bus, drainSubscription } from './bus.ts';

export type Pulled =
  | { readonly kind: 'message'; readonly message: Msg }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'failed'; readonly reason: string };

/** How long a consumer is given to have a message: one that was announced may be a moment behind its announcement. */
const WAIT_MS = 20;
/** Beyond that, what a busy broker may take to say that there is nothing. A consumer that does not exist says nothing at all. */
const ANSWER_MS = 3_000;

/**
 * Asks a consumer for one message at a time, so that none is held by somebody who cannot work on it yet.
 *
 * No question stands for long: what a frozen process had asked for would otherwise be given to it, one lease after the other. And a
 * message arrives under its own subject, not under the one it was asked for with: each asker therefore has a subscription of its
 * own, and what comes when nobody waits is handed back at once.
 */
export class OnePull {
  readonly #bus: Bus;
  readonly #stream: string;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #unwatch: () => void;
  #asked = 0;
  #waiting: ((pulled: Pulled) => void) | undefined;
  #silence: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(bus: Bus, stream: string) {
    this.#bus = bus;
    this.#stream = stream;
    this.#inbox = createInbox(bus.replies.inboxPrefix);
    this.#subscription = bus.nats.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => (error === null ? this.#arrived(message) : this.#failed('no permission to subscribe to the inbox')),
    });
    this.#unwatch = bus.watch((connected) => {
      if (!connected) this.#failed('the connection to NATS was lost');
    });
  }

  /** One message of the consumer, or word that it has none now; one question at a time. */
  next(consumer: string): Promise<Pulled> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
      if (this.#stopping || !this.#bus.connected) return this.#failed('stopping or not connected to NATS');
      this.#asked += 1;
      this.#silence = setTimeout(() => this.#failed('the broker is silent, or the consumer is gone'), ANSWER_MS);
      try {
        this.#bus.nats.publish(
          `$JS.API.CONSUMER.MSG.NEXT.${this.#stream}.${consumer}`,
          JSON.stringify({ batch: 1, expires: WAIT_MS * 1_000_000 }),
          { reply: `${this.#inbox}.${this.#asked}` },
        );
      } catch {
        this.#failed('the connection to NATS is closed');
      }
    });
  }

  /** Asks for nothing more. What the broker sent before it learned of this is handed back as it arrives. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await drainSubscription(this.#subscription);
    this.#unwatch();
    this.#failed('stopping');
  }

  #arrived(message: Msg): void {
    const code = message.headers?.code ?? 0;
    if (code === 0) {
      if (this.#waiting === undefined || this.#stopping) message.respond('-NAK');
      else this.#settle({ kind: 'message', message });
      return;
    }
    // The end of a question that was given up says nothing about the one that stands.
    if (message.subject !== `${this.#inbox}.${this.#asked}`) return;
    // 409 while as many are in hand as may be; 404 and 408 when there is none.
    if (code === 404 || code === 408 || (code === 409 && /MaxAckPending/i.test(message.headers?.description ?? '')))
      this.#settle({ kind: 'nothing' });
    else this.#failed(`the broker ended the wait (${code} ${message.headers?.description ?? ''})`);
  }

  #failed(reason: string): void {
    this.#settle({ kind: 'failed', reason });
  }

  #settle(pulled: Pulled): void {
    clearTimeout(this.#silence);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.(pulled);
  }
}
