import {
  type Address,
  type InternalRequestVerb,
  PAYLOAD_BYTES_MAX,
  type ParsedSubject,
  type PrincipalRequestVerb,
  REQUEST_BYTES_MAX,
  type Reply,
  SCHEMA_HEADER,
  SUBJECTS,
  SUBJECT_ROOT,
  type ServiceName,
  type WireMessage,
  decodeBody,
  decodeOwnBody,
  encodeToken,
  parseSubject,
  refused,
} from '@sharedos/contracts';
import type { Msg, ServiceMsg } from 'nats';
import { type Bus, busMessage } from './bus.ts';
import { countReply } from './count-reply.ts';
import { contextFromHeaders, headerOf, toNatsHeaders } from './headers.ts';
import type { ReplicaState } from './replicas.ts';
import { Slots } from './slots.ts';
import { SpanKind, inMessageSpan, traceIdOf } from './trace-span.ts';
import { within } from './waiting.ts';

export type RequestVerb = PrincipalRequestVerb | InternalRequestVerb;

/** What is known of a request besides its body. All of it comes from the subject the broker let through, none from the body. */
export interface Delivery {
  readonly verb: RequestVerb;
  readonly namespaceId: string;
  /** Who asks; present exactly for the verbs of principals. */
  readonly principal?: Address;
  readonly rest: readonly string[];
  readonly traceId?: string;
  /** Aborted when the service stops and its grace is over. */
  readonly signal: AbortSignal;
}

export interface RouteSpec<Q, A> {
  readonly request: WireMessage<Q>;
  readonly reply: WireMessage<Reply<A>>;
  /** Largest body; 64 KiB for principals and the broker's limit for services when absent. */
  readonly bytesMax?: number;
  readonly handle: (body: Q, delivery: Delivery) => Promise<Reply<A>>;
}

/** One verb and what answers it. */
export interface Route {
  readonly verb: RequestVerb;
  readonly requestName: string;
  readonly replyName: string;
  readonly answer: (body: Uint8Array, delivery: Delivery) => Promise<Reply<unknown>>;
}

export const route = <Q, A>(verb: RequestVerb, spec: RouteSpec<Q, A>): Route => {
  const fromPrincipal = SUBJECTS[verb].use === 'principal-request';
  const bytesMax = spec.bytesMax ?? (fromPrincipal ? REQUEST_BYTES_MAX : PAYLOAD_BYTES_MAX);
  return {
    verb,
    requestName: spec.request.name,
    replyName: spec.reply.name,
    answer: async (bytes, delivery) => {
      const body = fromPrincipal ? decodeBody(spec.request, bytes, bytesMax) : decodeOwnBody(spec.request, bytes, bytesMax);
      return body.ok ? spec.handle(body.value, delivery) : body;
    },
  };
};

export interface ServeOptions {
  readonly service: ServiceName;
  /** A semantic version, shown by `nats micro`. */
  readonly version: string;
  /** Name of this process; `execution.control` is served under it. */
  readonly instance: string;
  readonly routes: readonly Route[];
  /** Requests handled at once, over all routes. */
  readonly concurrencyMax: number;
  /** Requests that wait for a slot; four times `concurrencyMax` when absent. */
  readonly waitingMax?: number;
  /** How long a request waits for a slot before it is answered `service_overloaded`. */
  readonly waitMs?: number;
  /** A handler threw, or the serving itself failed. The caller was told `internal_error` and nothing else. */
  readonly onDefect: (error: unknown, where: string) => void;
  /** What this process says of itself when an operator asks. */
  readonly state?: () => Promise<ReplicaState>;
}

export interface ServeCounts {
  answered: number;
  /** Not a subject of ours, or nobody to answer: said nothing. */
  dropped: number;
  overloaded: number;
  defects: number;
}

export interface ServedRoutes {
  readonly counts: Readonly<ServeCounts>;
  /** Takes nothing more, waits for what runs, and after `graceMs` aborts it. */
  stop(options: { readonly graceMs: number }): Promise<void>;
}

/** Served by one process under its own name, not by whichever replica comes first. */
const PER_INSTANCE: ReadonlySet<RequestVerb> = new Set(['execution.control']);

const WAIT_MS = 500;
const SUBSCRIBED_MS = 5_000;
const DRAINED_MS = 2_000;

/**
 * Answers requests, each replica of a service in one queue group, with the services framework so that `nats micro` shows them.
 *
 * Every subject is parsed strictly before anything else: what does not parse, or names another verb, is dropped unanswered. A
 * malformed body, a wrong schema, a handler that throws and an overload are answered with a typed refusal, and the service lives on.
 *
 * @throws When the broker does not take the subscriptions within 5 s: the service must not look ready.
 */
export const serveRoutes = async (bus: Bus, options: ServeOptions): Promise<ServedRoutes> => {
  const server = new RouteServer(bus, options);
  const { state, routes } = options;
  const first = routes[0] === undefined ? undefined : servedSubject(routes[0].verb, options.instance);
  const service = await bus.nats.services.add({
    name: options.service,
    version: options.version,
    queue: options.service,
    // Asked for each endpoint: it is said once.
    ...(state === undefined ? {} : { statsHandler: async ({ subject }) => (subject === first ? state() : null) }),
  });
  let stopping = false;
  void service.stopped.then((error) => {
    if (!stopping && !bus.nats.isClosed()) options.onDefect(error ?? new Error('the service stopped by itself'), 'serving');
  });
  for (const one of routes) {
    service.addEndpoint(one.verb.replaceAll('.', '-'), {
      subject: servedSubject(one.verb, options.instance),
      handler: (error, message) => (error === null ? void server.serve(one, message) : undefined),
    });
  }
  if (!(await bus.flush(SUBSCRIBED_MS)) || service.isStopped) throw new Error(`${options.service} could not subscribe to what it serves`);
  return {
    counts: server.counts,
    stop: async ({ graceMs }) => {
      stopping = true;
      await within(service.stop(), DRAINED_MS);
      await server.finish(graceMs);
    },
  };
};

/** The subject of a verb's row with a wildcard for each token that a caller fills. */
export const servedSubject = (verb: RequestVerb, instance: string): string => {
  const tokens = [SUBJECT_ROOT, '*', verb];
  if (SUBJECTS[verb].use === 'principal-request') tokens.push('*', '*');
  if (PER_INSTANCE.has(verb)) tokens.push(encodeToken(instance));
  return tokens.join('.');
};

class RouteServer {
  readonly counts: ServeCounts = { answered: 0, dropped: 0, overloaded: 0, defects: 0 };
  readonly #bus: Bus;
  readonly #options: ServeOptions;
  readonly #slots: Slots;
  readonly #running = new Set<Promise<void>>();
  readonly #stopped = new AbortController();

  constructor(bus: Bus, options: ServeOptions) {
    this.#bus = bus;
    this.#options = options;
    const { concurrencyMax } = options;
    this.#slots = new Slots({ concurrencyMax, waitingMax: options.waitingMax ?? 4 * concurrencyMax, waitMs: options.waitMs ?? WAIT_MS });
  }

  /** Never rejects. */
  serve(one: Route, message: ServiceMsg): Promise<void> {
    const serving = this.#serve(one, message).finally(() => this.#running.delete(serving));
    this.#running.add(serving);
    return serving;
  }

  async finish(graceMs: number): Promise<void> {
    const all = Promise.allSettled([...this.#running]);
    await within(all, graceMs);
    this.#stopped.abort();
    if (this.#running.size > 0) await within(all, DRAINED_MS);
  }

  async #serve(one: Route, message: ServiceMsg): Promise<void> {
    const parsed = this.#accepted(one, message);
    if (parsed === undefined) {
      this.counts.dropped += 1;
      return;
    }
    const began = performance.now();
    const answer = (reply: Reply<unknown>): void => {
      countReply(one.verb, parsed.namespaceId, reply, performance.now() - began);
      this.#reply(one, message, reply);
    };
    const schema = headerOf(message.headers, SCHEMA_HEADER);
    // Absent is what a plain `nats` command line sends; another schema's body must not be read as this one's.
    if (schema !== undefined && schema !== one.requestName) return answer(refused('invalid_request', `expected a ${one.requestName}`));
    const entered = this.#slots.enter();
    if (entered !== true && !(await entered)) {
      this.counts.overloaded += 1;
      return answer(refused('service_overloaded', 'too many requests at once', true));
    }
    try {
      answer(await this.#answer(one, message, parsed));
    } finally {
      this.#slots.leave();
    }
  }

  #accepted(one: Route, message: ServiceMsg): ParsedSubject | undefined {
    const parsed = parseSubject(message.subject);
    if (parsed === undefined || parsed.verb !== one.verb) return undefined;
    const rest = PER_INSTANCE.has(one.verb) ? [this.#options.instance] : [];
    if (parsed.rest.length !== rest.length || parsed.rest[0] !== rest[0]) return undefined;
    // Without an answer nobody could learn what became of the request.
    return replyOf(message) === undefined ? undefined : parsed;
  }

  async #answer(one: Route, message: ServiceMsg, parsed: ParsedSubject): Promise<Reply<unknown>> {
    const handled = {
      kind: SpanKind.SERVER,
      name: one.verb,
      parsed,
      bytes: message.data.byteLength,
      group: this.#options.service,
    } as const;
    try {
      return await inMessageSpan(contextFromHeaders(busMessage(message)), handled, async (span) => {
        const traceId = traceIdOf(span);
        const reply = await one.answer(message.data, {
          verb: one.verb,
          namespaceId: parsed.namespaceId,
          ...(parsed.principal === undefined ? {} : { principal: parsed.principal }),
          rest: parsed.rest,
          ...(traceId === undefined ? {} : { traceId }),
          signal: this.#stopped.signal,
        });
        if (!reply.ok) span.setAttribute('error.type', reply.error.code);
        return reply;
      });
    } catch (error) {
      return this.#defect(error, one);
    }
  }

  #reply(one: Route, message: ServiceMsg, reply: Reply<unknown>): void {
    if (!this.#bus.connected) return;
    // Larger than the broker takes, or not JSON: the caller still hears that something went wrong.
    const instead = (error: unknown): void => {
      const told = this.#defect(error, one);
      if (!this.#bus.nats.isClosed()) this.#send(one, message, told, () => undefined);
    };
    try {
      this.#send(one, message, reply, instead);
      this.counts.answered += 1;
    } catch (error) {
      instead(error);
    }
  }

  #send(one: Route, message: ServiceMsg, answer: Reply<unknown>, onRefused: (error: unknown) => void): void {
    const headers = toNatsHeaders({ [SCHEMA_HEADER]: one.replyName });
    this.#bus.outbox.publish(replyOf(message) ?? '', JSON.stringify(answer), { headers }, onRefused);
  }

  #defect(error: unknown, one: Route): Reply<never> {
    this.counts.defects += 1;
    this.#options.onDefect(error, one.verb);
    return refused('internal_error', 'the service could not complete the request');
  }
}

const replyOf = (message: ServiceMsg | Msg): string | undefined => message.reply || undefined;
