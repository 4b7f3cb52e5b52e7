import { nuid } from 'nats';
import type { Bus } from './bus.ts';
import { pullFeed } from './pull-feed.ts';
import { streamHead } from './read-subject.ts';
import { type StoredMessage, askJetStream, refusalReason } from './stored-message.ts';
import { backoffMs, pause } from './waiting.ts';

export interface FollowOptions {
  readonly stream: string;
  /** One subject or pattern; the whole stream when absent. The user's rights name the same filter. */
  readonly filterSubject?: string;
  /** The first sequence wanted; 1 for all. */
  readonly fromSequence: number;
  /** Called in order, each message once. A promise holds back the ones after it. What it throws ends the feed: nothing is skipped. */
  readonly onMessage: (message: StoredMessage) => void | Promise<void>;
  /** `true` from the first sign of life on; `false` as soon as the connection is lost or two beats were missed. */
  readonly onAlive: (alive: boolean) => void;
  /**
   * Whether this is still the stream to follow, asked of every new consumer before it delivers; says why not. A consumer ends with
   * its stream, so if the stream is the right one then, so is all that the consumer delivers.
   */
  readonly check?: () => Promise<string | undefined>;
  readonly heartbeatMs?: number;
  /** Most messages asked for at once. */
  readonly batch?: number;
  /** Why the feed is not alive. It goes on trying by itself. */
  readonly onTrouble?: (reason: string) => void;
  /** `onMessage` threw. The feed has ended and is not alive. */
  readonly onDefect: (error: unknown, where: string) => void;
}

export interface Follow {
  readonly alive: boolean;
  /** Of the last message handed over; the one before `fromSequence` until then. */
  readonly lastSequence: number;
  stop(): Promise<void>;
}

const HEARTBEAT_MS = 500;
const BATCH = 512;
const ASK_MS = 2_000;
/** The server drops a consumer that nobody has pulled from for so long. */
const INACTIVE_MS = 30_000;

/**
 * Follows a stream from a sequence: history, then live, in order, without gaps and without acknowledgements.
 *
 * Each attempt makes a consumer of its own and pulls from it with a heartbeat. A lost connection, two missed beats, a gap or a
 * consumer that is gone end the attempt; the next starts after the last message handed over. Nothing here says "caught up": that
 * is having seen a sequence learned elsewhere (design §5), and `alive` is only that silence means there is nothing.
 */
export const followStream = (bus: Bus, options: FollowOptions): Follow => new Feed(bus, options);

class Feed implements Follow {
  readonly #bus: Bus;
  readonly #options: FollowOptions;
  readonly #stopped = new AbortController();
  readonly #ended: Promise<void>;
  #alive = false;
  #lastSequence: number;

  constructor(bus: Bus, options: FollowOptions) {
    this.#bus = bus;
    this.#options = options;
    this.#lastSequence = options.fromSequence - 1;
    this.#ended = this.#run();
  }

  get alive(): boolean {
    return this.#alive;
  }

  get lastSequence(): number {
    return this.#lastSequence;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    let failures = 0;
    let told: string | undefined;
    while (!signal.aborted) {
      const reason = await this.#attempt(() => {
        failures = 0;
        told = undefined;
      });
      this.#setAlive(false);
      if (signal.aborted) return;
      // The same trouble at each attempt is one line for the operator, not one a second.
      if (reason !== told) this.#options.onTrouble?.(reason);
      told = reason;
      await pause(backoffMs(failures, 1_000), signal);
      failures += 1;
    }
  }

  /** Follows until something is wrong. @returns What it was. */
  async #attempt(onLife: () => void): Promise<string> {
    const { stream } = this.#options;
    const consumer = `follow-${nuid.next()}`;
    const refused = (await this.#createConsumer(consumer)) ?? (await this.#rolledBack()) ?? (await this.#options.check?.());
    if (refused !== undefined) return refused;
    return pullFeed(this.#bus, {
      natsSubject: `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
      heartbeatMs: this.#options.heartbeatMs ?? HEARTBEAT_MS,
      batch: this.#options.batch ?? BATCH,
      signal: this.#stopped.signal,
      gapless: true,
      onLife: () => {
        onLife();
        this.#setAlive(true);
      },
      onMessage: (message) => this.#hand(message),
    });
  }

  async #createConsumer(name: string): Promise<string | undefined> {
    const { stream, filterSubject } = this.#options;
    const config = {
      name,
      deliver_policy: 'by_start_sequence',
      opt_start_seq: this.#lastSequence + 1,
      ack_policy: 'none',
      max_deliver: 1,
      replay_policy: 'instant',
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: INACTIVE_MS * 1_000_000,
      ...(filterSubject === undefined ? {} : { filter_subject: filterSubject }),
    };
    const natsSubject = `$JS.API.CONSUMER.CREATE.${stream}.${name}${filterSubject === undefined ? '' : `.${filterSubject}`}`;
    const created = await askJetStream(this.#bus, natsSubject, { stream_name: stream, config }, ASK_MS);
    return created.ok ? undefined : refusalReason(created.error);
  }

  /** A stream that lost its end, or was made anew, would be followed in silence from a place it has not reached: that is not alive. */
  async #rolledBack(): Promise<string | undefined> {
    const head = await streamHead(this.#bus, this.#options.stream, { timeoutMs: ASK_MS });
    if (!head.ok) return head.error.reason;
    return head.value < this.#lastSequence
      ? `${this.#options.stream} ends at ${head.value}, before ${this.#lastSequence} which was seen`
      : undefined;
  }

  #hand(message: StoredMessage): void | Promise<void> {
    const handled = (): void => {
      this.#lastSequence = message.sequence;
    };
    try {
      const handling = this.#options.onMessage(message);
      if (handling === undefined) return handled();
      return handling.then(handled, (error: unknown) => this.#broken(error));
    } catch (error) {
      this.#broken(error);
    }
  }

  #broken(error: unknown): void {
    this.#stopped.abort();
    this.#setAlive(false);
    this.#options.onDefect(error, `following ${this.#options.stream}`);
  }

  #setAlive(alive: boolean): void {
    if (alive === this.#alive || (alive && this.#stopped.signal.aborted)) return;
    this.#alive = alive;
    this.#options.onAlive(alive);
  }
}
