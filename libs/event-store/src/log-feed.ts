import { setTimeout as delay } from 'node:timers/promises';
import type { Result, Unavailable } from '@sharedos/contracts';
import { type Msg, type NatsConnection, createInbox, nuid } from 'nats';
import type { Position } from './event-store.ts';
import type { JetStreamApi, StoredMessage } from './jetstream-api.ts';

export interface LogFeedOptions {
  readonly nats: NatsConnection;
  readonly api: JetStreamApi;
  readonly streamName: string;
  readonly inboxPrefix: string | undefined;
  readonly from: Position;
  readonly heartbeatMs: number;
  /** Whether the stream is still the one that positions up to `position` came from; asked after each new consumer. */
  readonly check: (position: Position) => Promise<Result<unknown, Unavailable>>;
  readonly message: (message: StoredMessage) => void;
  readonly alive: (isAlive: boolean) => void;
}

/** Messages asked for at once. With the largest append, at most 128 MiB are under way to us. */
const BATCH = 256;
const PULL_EXPIRES_MS = 20_000;
const REQUEST_TIMEOUT_MS = 1_000;
const RETRY_FIRST_MS = 20;
const NANOS_PER_MS = 1_000_000;
/** Silence of this many heartbeats is failure. */
const MISSED_MAX = 2;

/**
 * Follows a stream in order from a position, for ever: each message once, none left out, whatever happens to the connection, the
 * consumer or the server in between.
 *
 * It pulls from a consumer of its own, and makes a new one after the last delivered position whenever anything is in doubt: a gap in
 * the numbers, a status it does not know, a reconnect, or silence. A push consumer took 11 s to notice a restart.
 */
export class LogFeed {
  readonly #options: LogFeedOptions;
  readonly #closing = new AbortController();
  readonly #watch: NodeJS.Timeout;
  readonly #ended: Promise<void>;
  #position: Position;
  #heardAt = performance.now();
  #alive: boolean | undefined;
  /** Ends the consumer in use; absent while there is none, so that one being made is left in peace. */
  #renew: (() => void) | undefined;

  constructor(options: LogFeedOptions) {
    this.#options = options;
    this.#position = options.from;
    this.#watch = setInterval(() => this.#lookForSilence(), options.heartbeatMs / 2);
    this.#ended = this.#run();
  }

  /** Makes a new consumer at once: the connection was lost, and with it whatever the server was about to send. */
  renew(): void {
    this.#renew?.();
  }

  /** Stops for good, as not alive: there is nothing left that could be followed. */
  giveUp(): void {
    this.#tell(false);
    this.#stop();
  }

  /** After this returns, nothing more is told. */
  async close(): Promise<void> {
    this.#stop();
    await this.#ended;
  }

  #stop(): void {
    this.#closing.abort();
    clearInterval(this.#watch);
    this.#renew?.();
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted;
  }

  async #run(): Promise<void> {
    for (let failures = 0; !this.#closed; ) {
      failures = (await this.#consume()) ? 0 : failures + 1;
      if (this.#closed) return;
      // Jitter keeps the replicas of a service from asking a server that just came back all at once.
      const waitMs = Math.min(RETRY_FIRST_MS * 2 ** failures, this.#options.heartbeatMs) * (0.5 + Math.random());
      await delay(waitMs, undefined, { signal: this.#closing.signal }).catch(() => undefined);
    }
  }

  /** Delivers from one consumer until it must be replaced; false if there was none to be had. */
  async #consume(): Promise<boolean> {
    const { nats, api, inboxPrefix, check } = this.#options;
    const consumer = nuid.next();
    const startAt = this.#position + 1;
    if (!(await api.createConsumer(consumer, startAt, REQUEST_TIMEOUT_MS)).ok || this.#closed) return false;
    // Asked after the consumer exists. A consumer ends with its stream, so if the stream is ours now, so is what it delivers.
    const same = await check(this.#position);
    if (this.#closed) return false;
    if (!same.ok) {
      this.#tell(false);
      return false;
    }
    const inbox = createInbox(inboxPrefix);
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const pulls = this.#pullsFrom(consumer, inbox, end);
    const subscription = nats.subscribe(inbox, { callback: (error, message) => (error === null ? pulls.take(message) : end()) });
    this.#renew = end;
    this.#heard();
    pulls.ask();
    await ended;
    this.#renew = undefined;
    pulls.stop();
    subscription.unsubscribe();
    return true;
  }

  /** One pull at a time: a full or expired one is followed by the next, so what is under way is always known. */
  #pullsFrom(consumer: string, inbox: string, end: () => void) {
    const { nats, streamName, heartbeatMs } = this.#options;
    let delivered = 0;
    let wanted = 0;
    let stopped = false;

    const ask = () => {
      wanted = BATCH;
      const pull = { batch: BATCH, expires: PULL_EXPIRES_MS * NANOS_PER_MS, idle_heartbeat: heartbeatMs * NANOS_PER_MS };
      nats.publish(`$JS.API.CONSUMER.MSG.NEXT.${streamName}.${consumer}`, JSON.stringify(pull), { reply: inbox });
    };

    const status = (message: Msg) => {
      const code = message.headers?.code;
      // A heartbeat says how far the consumer has come. If that is not how far we are, a message was lost on the way.
      const sent = message.headers?.get('Nats-Last-Consumer') ?? '';
      if (code === 100 && (sent === '' || Number(sent) === delivered)) return this.#heard();
      if (code === 408) {
        this.#heard();
        return ask();
      }
      return end();
    };

    const take = (message: Msg) => {
      if (stopped || this.#closed) return;
      if (message.subject === inbox) return status(message);
      const place = deliveryOf(message.reply, consumer);
      if (place === undefined || place.delivery !== delivered + 1 || place.position <= this.#position) return end();
      delivered += 1;
      this.#heard();
      this.#deliver(message, place.position);
      wanted -= 1;
      if (wanted === 0 && !this.#closed) ask();
    };

    return { ask, take, stop: () => void (stopped = true) };
  }

  #deliver(message: Msg, position: Position): void {
    this.#position = position;
    try {
      this.#options.message({ natsSubject: message.subject, position, headers: message.headers, body: message.data });
    } catch (defect) {
      // The client would swallow it, and the listener would go on with a hole in its state. It belongs to the process boundary.
      queueMicrotask(() => {
        throw defect;
      });
    }
  }

  #heard(): void {
    this.#heardAt = performance.now();
    this.#tell(true);
  }

  #tell(isAlive: boolean): void {
    if (this.#alive === isAlive || this.#closed) return;
    this.#alive = isAlive;
    this.#options.alive(isAlive);
  }

  #lookForSilence(): void {
    if (!this.#isSilent()) return;
    // Perhaps it was us who did not listen: let what waits in the socket be read before judging.
    setImmediate(() => {
      if (this.#closed || !this.#isSilent()) return;
      this.#tell(false);
      this.#renew?.();
    });
  }

  #isSilent(): boolean {
    return performance.now() - this.#heardAt > MISSED_MAX * this.#options.heartbeatMs;
  }
}

/**
 * Where a message stands, out of the reply subject the server gives it:
 * `$JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<attempt>.<position>.<delivery>.<time>.<pending>[.…]`.
 */
const deliveryOf = (reply: string | undefined, consumer: string): { readonly position: Position; readonly delivery: number } | undefined => {
  const tokens = reply?.split('.') ?? [];
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK' || tokens.length < 9) return undefined;
  const [, name, , position, delivery] = tokens.slice(tokens.length === 9 ? 2 : 4);
  if (name !== consumer || !/^\d{1,16}$/.test(position ?? '') || !/^\d{1,16}$/.test(delivery ?? '')) return undefined;
  return { position: Number(position), delivery: Number(delivery) };
};
