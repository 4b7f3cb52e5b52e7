import { type Msg, type Subscription, createInbox } from 'nats';
import { type Bus, drainSubscription } from './bus.ts';

export type Pulled =
  | { readonly kind: 'message'; readonly message: Msg }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'failed'; readonly reason: string };

const BEAT_MS = 2_000;
const PULL_LEAST_MS = 1_000;
const PULL_MOST_MS = 30_000;
/** Beyond two beats missed, room for a busy moment. */
const BUSY_MS = 500;

/**
 * Asks a consumer for one message at a time, so that none is held by somebody who cannot work on it yet.
 *
 * A message arrives under its own subject, not under the one it was asked for with: each asker therefore has a subscription of
 * its own, and what comes when nobody waits is handed back at once.
 */
export class OnePull {
  readonly #bus: Bus;
  readonly #natsSubject: string;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #unwatch: () => void;
  readonly #pullMs: number;
  readonly #beatMs: number;
  #asked = 0;
  #waiting: ((pulled: Pulled) => void) | undefined;
  #silence: NodeJS.Timeout | undefined;
  /** Whether the consumer has answered since the last failure. */
  #proven = false;
  #stopping = false;

  /**
   * @param leaseMs How long the broker leaves a message with whoever got it. No question stands longer: what a frozen process held
   *   would otherwise be given back to it, one lease after the other, for each question that it left open.
   */
  constructor(bus: Bus, stream: string, consumer: string, leaseMs: number) {
    this.#bus = bus;
    this.#pullMs = Math.min(PULL_MOST_MS, Math.max(PULL_LEAST_MS, leaseMs));
    // The server refuses a beat of more than half the time.
    this.#beatMs = Math.min(BEAT_MS, Math.floor(this.#pullMs / 3));
    this.#natsSubject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
    this.#inbox = createInbox(bus.replies.inboxPrefix);
    this.#subscription = bus.nats.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => (error === null ? this.#arrived(message) : this.#failed('no permission to subscribe to the inbox')),
    });
    this.#unwatch = bus.watch((connected) => {
      if (!connected) this.#failed('the connection to NATS was lost');
    });
  }

  /** Waits for one message, as long as the broker shows that it still knows of the question. */
  next(): Promise<Pulled> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
      if (this.#stopping || !this.#bus.connected) return this.#failed('stopping or not connected to NATS');
      this.#asked += 1;
      this.#silence = setTimeout(() => this.#failed('the broker is silent'), 2 * this.#beatMs + BUSY_MS);
      // The first question is answered at once even when there is nothing, so that an idle queue is known to be there.
      const question = this.#proven
        ? { batch: 1, expires: this.#pullMs * 1_000_000, idle_heartbeat: this.#beatMs * 1_000_000 }
        : { batch: 1, no_wait: true };
      try {
        this.#bus.nats.publish(this.#natsSubject, JSON.stringify(question), { reply: `${this.#inbox}.${this.#asked}` });
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
    if (code === 100) this.#silence?.refresh();
    else if (code === 404 || code === 408) this.#settle({ kind: 'nothing' });
    else
      this.#failed(
        code === 503 ? 'the consumer does not exist' : `the broker ended the wait (${code} ${message.headers?.description ?? ''})`,
      );
  }

  #failed(reason: string): void {
    this.#settle({ kind: 'failed', reason });
  }

  #settle(pulled: Pulled): void {
    clearTimeout(this.#silence);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.#proven = pulled.kind !== 'failed';
    waiting?.(pulled);
  }
}
