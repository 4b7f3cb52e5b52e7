import { hash } from 'node:crypto';
import {
  type Result,
  SUBJECT_ROOT,
  type SubjectVerb,
  type Unavailable,
  decodeToken,
  encodeToken,
  ok,
  unavailable,
} from '@sharedos/contracts';
import { AckPolicy, type ConsumerInfo, DeliverPolicy, ReplayPolicy, nanos } from 'nats';
import type { Bus } from './bus.ts';
import { subjectPatterns } from './permissions.ts';
import { askJetStream, refusalReason } from './stored-message.ts';
import type { Waiting } from './turn-order.ts';
import { within } from './waiting.ts';

/** What one lane holds: the messages of one verb in one namespace. */
export interface LaneName {
  readonly namespaceId: string;
  readonly verb: SubjectVerb;
}

const ANSWER_MS = 5_000;
/** The server forgets a lane that nobody asks for so long. What it held stays in the stream, for the lane's next consumer. */
const UNUSED_MS = 3_600_000;
/** How long a limit that was changed may still count as it was, while the lane is in use. */
const CHECKED_MS = 5_000;
const LIMIT_MS = 500;
const UNLIMITED = 1_024;

/**
 * The lane of a subject of the stream, or `undefined` for one whose namespace is not spelled as ours are: as a filter, a token that
 * is a wildcard would take in the messages of everybody.
 */
export const laneOf = (natsSubject: string, verbs: readonly SubjectVerb[]): LaneName | undefined => {
  const prefix = `${SUBJECT_ROOT}.`;
  if (!natsSubject.startsWith(prefix)) return undefined;
  const [token = '', ...rest] = natsSubject.slice(prefix.length).split('.');
  const namespaceId = decodeToken(token);
  const verb = verbs.find((candidate) => rest.join('.').startsWith(`${candidate}.`));
  return namespaceId.ok && verb !== undefined ? { namespaceId: namespaceId.value, verb } : undefined;
};

/** All subjects of a lane. A work queue's consumers may not overlap, so nothing else of ours reads the stream by a consumer. */
export const laneFilter = ({ namespaceId, verb }: LaneName): string => {
  const [pattern = ''] = subjectPatterns(verb);
  return pattern.replace(`${SUBJECT_ROOT}.*.`, `${SUBJECT_ROOT}.${encodeToken(namespaceId)}.`);
};

/** A name of one short token, whatever the namespace is called. */
export const laneConsumer = (lane: LaneName): string => `lane-${hash('sha256', laneFilter(lane)).slice(0, 32)}`;

export interface LaneSettings {
  readonly stream: string;
  readonly leaseMs: number;
  /** Messages of the namespace that may be in hand at once, over all processes. `undefined`: as it was, at first 1 024. */
  readonly runningMax?: (namespaceId: string) => Promise<number | undefined>;
}

/** What one process knows of one lane, and the lane's durable consumer, which all processes share. */
export class QueueLane implements Waiting {
  readonly consumer: string;
  readonly namespaceId: string;
  expected = 0;
  asking = 0;
  lastAsked = 0;
  /** Messages of it that this process has in hand. */
  running = 0;
  /** When it was last heard of. */
  usedAt = 0;
  /** Why it could not be asked the last time. */
  failure: string | undefined;
  readonly #bus: Bus;
  readonly #settings: LaneSettings;
  readonly #filter: string;
  #limit = UNLIMITED;
  #madeAt = -Infinity;
  #checkedAt = -Infinity;
  #making: Promise<Result<void, Unavailable>> | undefined;

  constructor(bus: Bus, settings: LaneSettings, name: LaneName) {
    this.#bus = bus;
    this.#settings = settings;
    this.#filter = laneFilter(name);
    this.consumer = laneConsumer(name);
    this.namespaceId = name.namespaceId;
  }

  /** Makes the consumer if it may not be there; brings it to the present limit now and then, which nobody waits for. */
  ready(): Promise<Result<void, Unavailable>> {
    const now = performance.now();
    if (now - this.#checkedAt >= CHECKED_MS) this.#making ??= this.#bring().finally(() => (this.#making = undefined));
    return now - this.#madeAt < UNUSED_MS / 4 || this.#making === undefined ? Promise.resolve(ok(undefined)) : this.#making;
  }

  /** It may be gone: it is made before it is asked again. */
  distrust(): void {
    this.#madeAt = this.#checkedAt = -Infinity;
  }

  async #bring(): Promise<Result<void, Unavailable>> {
    const { runningMax } = this.#settings;
    // Without an answer the limit stays as it was: turns are not held up for it.
    const limit = (runningMax === undefined ? undefined : await within(runningMax(this.namespaceId), LIMIT_MS)) ?? this.#limit;
    const isStanding = performance.now() - this.#madeAt < UNUSED_MS / 4;
    const made = isStanding && limit === this.#limit ? ok(undefined) : await this.#make(limit);
    if (made.ok) this.#checkedAt = performance.now();
    else this.distrust();
    return made;
  }

  async #make(limit: number): Promise<Result<void, Unavailable>> {
    const { stream, leaseMs } = this.#settings;
    const config = {
      durable_name: this.consumer,
      name: this.consumer,
      filter_subject: this.#filter,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
      replay_policy: ReplayPolicy.Instant,
      // After a last delivery a message would stay for ever with nobody to answer it.
      max_deliver: -1,
      ack_wait: nanos(leaseMs),
      max_ack_pending: limit,
      max_waiting: 512,
      inactive_threshold: nanos(UNUSED_MS),
    };
    const made = await askJetStream<ConsumerInfo>(
      this.#bus,
      `$JS.API.CONSUMER.CREATE.${stream}.${this.consumer}.${this.#filter}`,
      { stream_name: stream, config },
      ANSWER_MS,
    );
    if (!made.ok) return unavailable(`the queue of a namespace could not be made: ${refusalReason(made.error)}`);
    this.#limit = limit;
    this.#madeAt = performance.now();
    return ok(undefined);
  }
}
