import {
  PAYLOAD_BYTES_MAX,
  type Reply,
  type Result,
  SCHEMA_HEADER,
  type Unavailable,
  type WireMessage,
  decodeBody,
  parseSubject,
  ok,
  refused,
  unavailable,
} from '@sharedos/contracts';
import type { Msg } from 'nats';
import { type Bus, type BusSubscription, busMessage, drainSubscription } from './bus.ts';
import { contextFromHeaders, headerOf, toNatsHeaders } from './headers.ts';
import { SpanKind, inMessageSpan } from './trace-span.ts';

export interface AnswerOptions<Q, A> {
  readonly request: WireMessage<Q>;
  readonly reply: WireMessage<Reply<A>>;
  /** Requests answered at once; one more is answered `service_overloaded`. */
  readonly concurrencyMax: number;
  readonly handle: (body: Q) => Promise<Reply<A>>;
  /** The handler threw. Whoever asked was told `internal_error` and nothing else. */
  readonly onDefect: (error: unknown) => void;
}

/** Shared by the processes of one principal: each request goes to one of them. */
const QUEUE = 'answers';
const SUBSCRIBED_MS = 5_000;

/**
 * Answers, as a principal, what services ask it on its own subject. What is no `request` by its header is dropped unread: anybody may
 * have a service's answer to somebody else delivered here, and such an answer names another schema.
 *
 * @returns Once the broker has taken the subscription; `unavailable` where it does not permit it.
 */
export const answerRequests = async <Q, A>(
  bus: Bus,
  natsSubject: string,
  options: AnswerOptions<Q, A>,
): Promise<Result<BusSubscription, Unavailable>> => {
  const { request, reply, concurrencyMax } = options;
  const running = new Set<Promise<void>>();

  const respond = (message: Msg, answer: Reply<A>): void => {
    const headers = toNatsHeaders({ [SCHEMA_HEADER]: reply.name });
    const send = (body: Reply<A>, onRefused: (error: unknown) => void): void =>
      bus.outbox.publish(message.reply ?? '', JSON.stringify(body), { headers }, onRefused);
    // Larger than the broker takes: whoever asked still hears that something went wrong.
    send(answer, () => send(refused('internal_error', 'the answer could not be sent'), () => undefined));
  };

  const handle = async (message: Msg): Promise<void> => {
    const body = decodeBody(request, message.data, PAYLOAD_BYTES_MAX);
    if (!body.ok) return respond(message, body);
    const handled = {
      kind: SpanKind.SERVER,
      name: parseSubject(message.subject)?.verb ?? 'request',
      parsed: parseSubject(message.subject),
      bytes: message.data.byteLength,
      group: QUEUE,
    } as const;
    try {
      respond(message, await inMessageSpan(contextFromHeaders(busMessage(message)), handled, () => options.handle(body.value)));
    } catch (error) {
      options.onDefect(error);
      respond(message, refused('internal_error', 'the request could not be answered'));
    }
  };

  let isRefused = false;
  const subscription = bus.nats.subscribe(natsSubject, {
    queue: QUEUE,
    callback: (error, message) => {
      if (error !== null) {
        isRefused = true;
        return;
      }
      if (!message.reply || headerOf(message.headers, SCHEMA_HEADER) !== request.name) return;
      if (running.size >= concurrencyMax) {
        respond(message, refused('service_overloaded', 'too many requests at once', true));
        return;
      }
      const handling = handle(message).finally(() => running.delete(handling));
      running.add(handling);
    },
  });
  if (!(await bus.flush(SUBSCRIBED_MS)) || isRefused) {
    subscription.unsubscribe();
    return unavailable(isRefused ? `no permission to subscribe to ${natsSubject}` : 'NATS does not answer');
  }
  return ok({
    stop: async () => {
      await drainSubscription(subscription);
      await Promise.allSettled(running);
      await bus.flush(SUBSCRIBED_MS);
    },
  });
};
