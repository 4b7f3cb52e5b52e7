import { type Result, err, ok } from '@sharedos/contracts';
import { ErrorCode, type Msg, type MsgHdrs, type NatsConnection, NatsError, createInbox } from 'nats';
import type { Outbox } from './outbox.ts';

/** Why no answer came. Only for `not_sent` and `too_large` is it certain that nobody saw the message. */
export interface NoReply {
  readonly kind: 'no_responders' | 'timed_out' | 'disconnected' | 'not_permitted' | 'not_sent' | 'too_large';
  readonly reason: string;
}

interface Waiting {
  readonly natsSubject: string;
  readonly deadline: number;
  readonly settle: (outcome: Result<Msg, NoReply>) => void;
}

const SWEEP_MS = 20;
const NO_RESPONDERS = 503;

/**
 * Every answer that this connection waits for: one inbox subscription, one table and one sweep timer for all of them. The stock
 * client arms a timer and a race per request, which costs a fifth of a mediated call.
 *
 * Deadlines are kept to within {@link SWEEP_MS}. At most `pendingMax` wait at once; past that nothing is sent.
 */
export class Replies {
  /** Under which every inbox of this connection lies. */
  readonly inboxPrefix: string;
  readonly inbox: string;
  readonly #outbox: Outbox;
  readonly #pendingMax: number;
  readonly #waiting = new Map<string, Waiting>();
  #inboxRefused = false;
  #next = 0;
  #sweep: NodeJS.Timeout | undefined;

  constructor(nats: NatsConnection, outbox: Outbox, inboxPrefix: string, pendingMax: number) {
    this.#outbox = outbox;
    this.#pendingMax = pendingMax;
    this.inboxPrefix = inboxPrefix;
    this.inbox = createInbox(inboxPrefix);
    nats.subscribe(`${this.inbox}.*`, { callback: (error, message) => (error === null ? this.#arrived(message) : this.#refused()) });
  }

  /** The broker does not let this user subscribe to its inbox, so no answer can ever arrive. */
  get inboxRefused(): boolean {
    return this.#inboxRefused;
  }

  get pending(): number {
    return this.#waiting.size;
  }

  /** Publishes with a reply subject and waits for the one answer. Never throws, never waits longer than `timeoutMs`. */
  send(natsSubject: string, payload: Uint8Array | string, headers: MsgHdrs | undefined, timeoutMs: number): Promise<Result<Msg, NoReply>> {
    if (this.#waiting.size >= this.#pendingMax)
      return Promise.resolve(failure('not_sent', `${this.#pendingMax} requests are waiting already`));
    return new Promise((settle) => {
      const token = (this.#next++).toString(36);
      this.#waiting.set(token, { natsSubject, deadline: performance.now() + timeoutMs, settle });
      this.#sweep ??= setInterval(() => this.#expire(), SWEEP_MS);
      const reply = `${this.inbox}.${token}`;
      this.#outbox.publish(natsSubject, payload, headers === undefined ? { reply } : { reply, headers }, (error) =>
        this.#settle(token, sendFailure(error)),
      );
    });
  }

  /** The connection is gone, and with it every answer on its way. */
  disconnected(): void {
    for (const token of [...this.#waiting.keys()]) this.#settle(token, failure('disconnected', 'the connection to NATS was lost'));
  }

  /** The broker refused a publish. It does not say which one, so all on that subject end. */
  notPermitted(natsSubject: string): void {
    for (const [token, waiting] of [...this.#waiting]) {
      if (waiting.natsSubject === natsSubject) this.#settle(token, failure('not_permitted', `no permission to publish on ${natsSubject}`));
    }
  }

  #refused(): void {
    this.#inboxRefused = true;
  }

  #arrived(message: Msg): void {
    const token = message.subject.slice(this.inbox.length + 1);
    const waiting = this.#waiting.get(token);
    if (waiting === undefined) return;
    const nobody = message.headers?.code === NO_RESPONDERS && message.data.length === 0;
    this.#settle(token, nobody ? failure('no_responders', `nobody answers on ${waiting.natsSubject}`) : ok(message));
  }

  #expire(): void {
    const now = performance.now();
    for (const [token, waiting] of this.#waiting) {
      if (waiting.deadline <= now) this.#settle(token, failure('timed_out', `no answer on ${waiting.natsSubject} within its deadline`));
    }
  }

  #settle(token: string, outcome: Result<Msg, NoReply>): void {
    const waiting = this.#waiting.get(token);
    if (waiting === undefined) return;
    this.#waiting.delete(token);
    if (this.#waiting.size === 0) {
      clearInterval(this.#sweep);
      this.#sweep = undefined;
    }
    waiting.settle(outcome);
  }
}

const failure = (kind: NoReply['kind'], reason: string): Result<never, NoReply> => err({ kind, reason });

const sendFailure = (error: unknown): Result<never, NoReply> => {
  const code = error instanceof NatsError ? error.code : 'unknown';
  return code === ErrorCode.MaxPayloadExceeded
    ? failure('too_large', 'the message is larger than the broker accepts')
    : failure('not_sent', `the message could not be sent (${code})`);
};
