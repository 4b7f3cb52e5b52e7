import type { QueuedDelivery, Route } from '@sharedos/bus';
import { within } from '@sharedos/bus';
import { type NamespaceSettings, type ProtocolError, SETTINGS_DEFAULT, SUBJECTS } from '@sharedos/contracts';
import { adminRefused } from '@sharedos/kernel';
import type { Ports } from './ports.ts';

export type Limits = Pick<NamespaceSettings, 'turnsQueuedMax' | 'requestsPerSecondMax'>;

/** How long a limit that was changed may still count as it was. */
const READ_EVERY_MS = 5_000;
/** How long the first request of a namespace waits to learn its limits. Without an answer the usual ones hold. */
const FIRST_READ_MS = 500;
/** Namespaces that are counted at once. Beyond it the one heard of longest ago is forgotten. */
const NAMESPACES_MAX = 10_000;
/** Those over a limit of the queue are told to wait so long: what is in front of them is refused, or runs, meanwhile. */
const QUEUE_RETRY_MS = 1_000;

interface Counted {
  limits: Limits;
  readAt: number;
  reading: Promise<void> | undefined;
  /** Requests that may still be taken, and as of when. */
  tokens: number;
  filledAt: number;
  /** When a refusal for the rate was last put on record. */
  recordedAt: number;
}

/**
 * What each namespace may ask of this process: the settings of the namespace, and how many requests it has taken. Every process counts for
 * itself, and none knows of one namespace when it judges another.
 */
export class NamespaceLimits {
  readonly #read: (namespaceId: string) => Promise<Limits | undefined>;
  readonly #now: () => number;
  readonly #counted = new Map<string, Counted>();

  /** @param read The limits of a namespace; `undefined` while nobody can say, and then they stay as they were. */
  constructor(read: (namespaceId: string) => Promise<Limits | undefined>, now: () => number = () => performance.now()) {
    this.#read = read;
    this.#now = now;
  }

  /** Why a request from the queue may not become a turn now; `undefined` when it may. It counts as taken unless it is refused. */
  async judgeTurn(namespaceId: string, waitingBehind: number): Promise<ProtocolError | undefined> {
    const counted = await this.#of(namespaceId);
    const { turnsQueuedMax } = counted.limits;
    if (waitingBehind >= turnsQueuedMax) {
      const message = `more than ${turnsQueuedMax} turns of the namespace wait: the first of them are refused until no more do`;
      return { code: 'turns_queued_limit_exceeded', message, retryable: true, details: { retryAfterMs: QUEUE_RETRY_MS } };
    }
    return this.#take(counted);
  }

  /** Why a request may not be answered now. `isFirst`: it is the first refused within a second. */
  async judgeRequest(namespaceId: string): Promise<{ readonly error: ProtocolError; readonly isFirst: boolean } | undefined> {
    const counted = await this.#of(namespaceId);
    const error = this.#take(counted);
    if (error === undefined) return undefined;
    const isFirst = this.#now() - counted.recordedAt >= 1_000;
    if (isFirst) counted.recordedAt = this.#now();
    return { error, isFirst };
  }

  /** A second's worth at once, and then as fast as they come back. */
  #take(counted: Counted): ProtocolError | undefined {
    const { requestsPerSecondMax: perSecond } = counted.limits;
    const now = this.#now();
    counted.tokens = Math.min(perSecond, counted.tokens + ((now - counted.filledAt) * perSecond) / 1_000);
    counted.filledAt = now;
    if (counted.tokens >= 1) {
      counted.tokens -= 1;
      return undefined;
    }
    const retryAfterMs = Math.ceil(((1 - counted.tokens) * 1_000) / perSecond);
    const message = `the principals of the namespace asked more than ${perSecond} times within a second`;
    return { code: 'request_rate_exceeded', message, retryable: true, details: { retryAfterMs } };
  }

  async #of(namespaceId: string): Promise<Counted> {
    let counted = this.#counted.get(namespaceId);
    const isNew = counted === undefined;
    if (counted === undefined) {
      const { requestsPerSecondMax } = SETTINGS_DEFAULT;
      const never = { readAt: -Infinity, filledAt: this.#now(), recordedAt: -Infinity };
      counted = { limits: SETTINGS_DEFAULT, tokens: requestsPerSecondMax, reading: undefined, ...never };
    }
    // Heard of last, so forgotten last.
    this.#counted.delete(namespaceId);
    this.#counted.set(namespaceId, counted);
    if (isNew) this.#forget();
    if (this.#now() - counted.readAt >= READ_EVERY_MS) this.#bring(namespaceId, counted);
    if (counted.readAt === -Infinity && counted.reading !== undefined) await within(counted.reading, FIRST_READ_MS);
    return counted;
  }

  #bring(namespaceId: string, counted: Counted): void {
    counted.reading ??= this.#read(namespaceId)
      .then((limits) => {
        if (limits !== undefined) counted.limits = limits;
      })
      .finally(() => {
        counted.readAt = this.#now();
        counted.reading = undefined;
      });
  }

  #forget(): void {
    for (const namespaceId of this.#counted.keys()) {
      if (this.#counted.size <= NAMESPACES_MAX) return;
      this.#counted.delete(namespaceId);
    }
  }
}

/** Why a request of a principal's may not become a turn now. One that was given out before was judged then. */
export const turnOverLimit = async (
  { limits }: Pick<Ports, 'limits'>,
  { parsed, redelivered, waitingBehind }: Pick<QueuedDelivery, 'parsed' | 'redelivered' | 'waitingBehind'>,
): Promise<ProtocolError | undefined> =>
  limits === undefined || redelivered || parsed?.verb !== 'turn.request' ? undefined : limits.judgeTurn(parsed.namespaceId, waitingBehind);

/**
 * The same route, for no more requests a second than the namespace of its principal may make. Of those refused the first of a second is
 * put on record: a flood must not become one of records.
 */
export const withinRate = (ports: Pick<Ports, 'limits' | 'audit' | 'clock' | 'ids'>, route: Route): Route =>
  SUBJECTS[route.verb].use !== 'principal-request'
    ? route
    : {
        ...route,
        answer: async (body, delivery) => {
          const { namespaceId, principal, verb, traceId } = delivery;
          const over = await ports.limits?.judgeRequest(namespaceId);
          if (over === undefined) return route.answer(body, delivery);
          if (over.isFirst && principal !== undefined) {
            const act = { id: ports.ids(), at: ports.clock(), namespaceId, principal, traceId: traceId ?? ports.ids(), command: verb };
            await ports.audit(adminRefused(act, over.error.code));
          }
          return { ok: false, error: over.error };
        },
      };
