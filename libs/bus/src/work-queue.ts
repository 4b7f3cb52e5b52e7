import { type ParsedSubject, type Result, type SubjectVerb, type Unavailable, ok } from '@sharedos/contracts';
import type { Msg } from 'nats';
import type { Bus, BusSubscription } from './bus.ts';
import { type WithHeaders, contextFromHeaders } from './headers.ts';
import { OnePull, type Pulled } from './one-pull.ts';
import { subjectPatterns } from './permissions.ts';
import { QueueLane, laneFilter, laneOf } from './queue-lane.ts';
import { subjectCounts } from './read-subject.ts';
import { type DeliveryPlace, placeOf } from './stored-message.ts';
import { Taken } from './taken.ts';
import { SpanKind, inMessageSpan } from './trace-span.ts';
import { nextInTurn } from './turn-order.ts';
import { pause, within } from './waiting.ts';

/** One message of a work queue, in the hands of one handler. It is settled by the first of `ack`, `nak` and `term`. */
export interface QueuedDelivery extends WithHeaders {
  readonly subject: string;
  /** `undefined` for a subject that is not spelled as ours are: settle it with `term`. */
  readonly parsed: ParsedSubject | undefined;
  readonly data: Uint8Array;
  /** Place in the stream: the same however often the message is delivered. */
  readonly sequence: number;
  readonly redelivered: boolean;
  /** Messages of the same namespace and verb behind it that nobody was given yet. */
  readonly waitingBehind: number;
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
  /** A stream with work-queue retention. */
  readonly stream: string;
  /** What of it is worked off, each namespace in a lane of its own. */
  readonly verbs: readonly SubjectVerb[];
  /** Who works it off, for spans and words about it. */
  readonly group: string;
  /** Handlers at once. Nothing is fetched ahead: a message is asked for only when a handler is free. */
  readonly concurrency: number;
  /** How long a message stays with whoever got it without a sign of life. It is extended at each third while a handler runs. */
  readonly leaseMs: number;
  /** Messages of a namespace that may be in hand at once, in all processes together; asked again while it is in use. */
  readonly runningMax?: (namespaceId: string) => Promise<number | undefined>;
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
const LOOK_MS = 500;
/** A look may take this part of the time at most, however many have something queued. */
const LOOK_SHARE = 20;
const LOOK_ANSWER_MS = 5_000;
const LANE_KEPT_MS = 300_000;

/**
 * Works off a stream fairly: each namespace has a consumer of its own, which this makes, and whenever a handler is free, the namespace
 * that was asked longest ago is asked next. So what one has queued delays another by no more than what already runs.
 *
 * A lane is asked when something was published for it, heard as it happens, or when a look at the stream, every half second, shows
 * that something of it is there: what was handed back, what a dead process held, what was published while nobody listened. So it comes
 * back by itself after a lost connection, a restart of the broker, and a consumer that was deleted.
 */
export const workQueue = (bus: Bus, options: WorkQueueOptions): WorkQueue => new FairQueue(bus, options);

class FairQueue implements WorkQueue {
  readonly #bus: Bus;
  readonly #options: WorkQueueOptions;
  readonly #stopping = new AbortController();
  readonly #aborted = new AbortController();
  readonly #lanes = new Map<string, QueueLane>();
  readonly #pulls: readonly OnePull[];
  readonly #free: OnePull[];
  readonly #busy = new Set<Promise<void>>();
  readonly #looking: Promise<void>;
  readonly #unwatch: () => void;
  readonly #bells = new Map<SubjectVerb, BusSubscription>();
  #wake = new AbortController();
  #questions = 0;
  #running = 0;
  #alive = false;

  constructor(bus: Bus, options: WorkQueueOptions) {
    this.#bus = bus;
    this.#options = options;
    this.#pulls = Array.from({ length: options.concurrency }, () => new OnePull(bus, options.stream));
    this.#free = [...this.#pulls];
    this.#unwatch = bus.watch((connected) => {
      if (connected) this.#wake.abort();
      else this.#trouble('the connection to NATS was lost');
    });
    this.#looking = this.#keepLooking();
  }

  get running(): number {
    return this.#running;
  }

  get alive(): boolean {
    return this.#alive && this.#bus.connected;
  }

  async stop({ graceMs }: { readonly graceMs: number }): Promise<void> {
    this.#stopping.abort();
    this.#unwatch();
    await Promise.all([...this.#pulls.map((pull) => pull.stop()), ...[...this.#bells.values()].map((bell) => bell.stop())]);
    await this.#looking;
    const ended = Promise.allSettled(this.#busy);
    if ((await within(ended, graceMs)) === undefined) {
      this.#aborted.abort();
      await within(ended, ABORTED_MS);
    }
  }

  /** Gives every free handler somebody to ask. */
  #assign(): void {
    while (!this.#stopping.signal.aborted && this.#free.length > 0) {
      const lane = nextInTurn(this.#lanes.values());
      const pull = lane === undefined ? undefined : this.#free.pop();
      if (lane === undefined || pull === undefined) return;
      lane.asking += 1;
      lane.lastAsked = this.#questions += 1;
      const taking = this.#take(lane, pull).finally(() => {
        this.#free.push(pull);
        this.#busy.delete(taking);
        this.#assign();
      });
      this.#busy.add(taking);
    }
  }

  async #take(lane: QueueLane, pull: OnePull): Promise<void> {
    const ready = await lane.ready();
    const pulled: Pulled = ready.ok ? await pull.next(lane.consumer) : { kind: 'failed', reason: ready.error.reason };
    lane.asking -= 1;
    lane.failure = pulled.kind === 'failed' ? pulled.reason : undefined;
    if (pulled.kind === 'message') return this.#taken(lane, pulled.message);
    lane.expected = 0;
    if (pulled.kind === 'nothing' || this.#stopping.signal.aborted) return;
    lane.distrust();
    this.#trouble(pulled.reason);
  }

  async #taken(lane: QueueLane, message: Msg): Promise<void> {
    const place = placeOf(message.reply);
    lane.expected = Math.max(lane.expected - 1, place?.pending ?? 0);
    lane.running += 1;
    await this.#handle(message, place);
    lane.running -= 1;
  }

  async #keepLooking(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const began = performance.now();
      this.#wake = new AbortController();
      await this.#look();
      const pauseMs = Math.max(LOOK_MS, LOOK_SHARE * (performance.now() - began));
      await pause(this.#alive ? pauseMs : LOOK_MS, AbortSignal.any([signal, this.#wake.signal]));
    }
  }

  /** Listens, if it does not yet, and finds out which lanes hold something. */
  async #look(): Promise<void> {
    const { stream, verbs } = this.#options;
    for (const verb of verbs) {
      const heard = await this.#listen(verb);
      if (!heard.ok) return this.#trouble(heard.error.reason);
      for (const pattern of subjectPatterns(verb)) {
        const held = await subjectCounts(this.#bus, stream, pattern, { timeoutMs: LOOK_ANSWER_MS });
        if (!held.ok) return this.#trouble(held.error.reason);
        this.#found(held.value);
      }
    }
    this.#forget();
    // One tenant whose lane cannot be made is no reason to say that nobody is served.
    const lanes = [...this.#lanes.values()];
    this.#alive = lanes.length === 0 || lanes.some(({ failure }) => failure === undefined);
    this.#assign();
  }

  async #listen(verb: SubjectVerb): Promise<Result<void, Unavailable>> {
    if (this.#bells.has(verb)) return ok(undefined);
    for (const pattern of subjectPatterns(verb)) {
      const heard = await this.#bus.subscribe(pattern, ({ subject }) => this.#rung(subject));
      if (!heard.ok) return heard;
      this.#bells.set(verb, heard.value);
    }
    return ok(undefined);
  }

  #rung(natsSubject: string): void {
    const lane = this.#laneOf(natsSubject);
    if (lane === undefined) return;
    lane.expected += 1;
    this.#assign();
  }

  #found(counts: Readonly<Record<string, number>>): void {
    const held = new Map<QueueLane, number>();
    for (const [natsSubject, count] of Object.entries(counts)) {
      const lane = this.#laneOf(natsSubject);
      if (lane !== undefined) held.set(lane, (held.get(lane) ?? 0) + count);
    }
    // What this process has in hand is still in the stream.
    for (const [lane, count] of held) if (count > lane.running) lane.expected = Math.max(lane.expected, 1);
  }

  #laneOf(natsSubject: string): QueueLane | undefined {
    const name = laneOf(natsSubject, this.#options.verbs);
    if (name === undefined) return undefined;
    const key = laneFilter(name);
    let lane = this.#lanes.get(key);
    if (lane === undefined) this.#lanes.set(key, (lane = new QueueLane(this.#bus, this.#options, name)));
    lane.usedAt = performance.now();
    return lane;
  }

  #forget(): void {
    for (const [key, { usedAt, expected, asking, running }] of this.#lanes) {
      if (expected + asking + running === 0 && performance.now() - usedAt > LANE_KEPT_MS) this.#lanes.delete(key);
    }
  }

  #trouble(reason: string): void {
    if (this.#alive && !this.#stopping.signal.aborted) this.#options.onTrouble?.(reason);
    this.#alive = false;
  }

  async #handle(message: Msg, place: DeliveryPlace | undefined): Promise<void> {
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
      group: this.#options.group,
    } as const;
    try {
      await inMessageSpan(contextFromHeaders(delivery), handled, () => this.#options.handle(delivery));
      if (!delivery.settled) throw new Error('the handler ended without settling its message');
    } catch (error) {
      this.#options.onDefect(error, `work queue ${this.#options.group}`);
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
