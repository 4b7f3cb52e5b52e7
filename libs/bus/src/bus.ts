import {
  type Reply,
  type Result,
  SCHEMA_HEADER,
  type Unavailable,
  type WireMessage,
  decodeBody,
  decodeOwnBody,
  ok,
  unavailable,
} from '@sharedos/contracts';
import { type Msg, type MsgHdrs, type NatsConnection, type Subscription } from 'nats';
import type { BusStatus } from './connect.ts';
import { type HeaderFields, type WithHeaders, headerOf, toNatsHeaders, traceHeaders } from './headers.ts';
import type { Outbox } from './outbox.ts';
import { type PublishStoredOptions, type StoredAck, type StoreRefusal, readAck, storeHeaders } from './publish-stored.ts';
import type { Replies } from './replies.ts';
import { within } from './waiting.ts';

export interface RequestOptions {
  readonly timeoutMs: number;
  readonly headers?: HeaderFields;
  /** Of a question that a principal answers: most bytes of the answer, which is then read as strictly as a principal's request. */
  readonly outsideBytesMax?: number;
}

/** A message as it came from the broker: nothing of it but the subject can be trusted. */
export interface BusMessage extends WithHeaders {
  readonly subject: string;
  readonly data: Uint8Array;
}

export interface BusSubscription {
  /** Ends after what has arrived was handed over. */
  stop(): Promise<void>;
}

/** What is stored: bytes as they are, under a schema name of the caller's, or a body of a known schema. */
export type Storable<T = unknown> = Uint8Array | { readonly message: WireMessage<T>; readonly body: T };

const DRAIN_MS = 5_000;

/** One connection to NATS. Made by `connectBus`. @see design §4 */
export class Bus {
  /** The raw connection, for the JetStream adapters only. */
  readonly nats: NatsConnection;
  /** Every answer this connection waits for. Inside this lib only. */
  readonly replies: Replies;
  /** The way out for whatever is sent often. Inside this lib only. */
  readonly outbox: Outbox;
  readonly #watchers = new Set<(connected: boolean) => void>();
  #connected = true;

  constructor(nats: NatsConnection, outbox: Outbox, replies: Replies) {
    this.nats = nats;
    this.outbox = outbox;
    this.replies = replies;
  }

  get connected(): boolean {
    return this.#connected;
  }

  /**
   * Asks and waits for the one answer.
   *
   * @returns What was answered, a typed refusal included. `unavailable` for everything else: nobody serves the subject, no answer
   *   in time, no connection, or an answer that is not `reply`. Then the request may have been carried out.
   */
  async request<Q, A>(
    natsSubject: string,
    message: WireMessage<Q>,
    body: Q,
    reply: WireMessage<Reply<A>>,
    options: RequestOptions,
  ): Promise<Result<Reply<A>, Unavailable>> {
    if (!this.#connected) return unavailable('not connected to NATS');
    const headers = toNatsHeaders({ [SCHEMA_HEADER]: message.name }, traceHeaders(), options.headers);
    const answer = await this.replies.send(natsSubject, JSON.stringify(body), headers, options.timeoutMs);
    if (!answer.ok) return unavailable(answer.error.reason);
    if (headerOf(answer.value.headers, SCHEMA_HEADER) !== reply.name)
      return unavailable(`the answer on ${natsSubject} is not a ${reply.name}`);
    // Only the services may answer on the inbox, whoever asked, and the agents that a service asked itself.
    const { data } = answer.value;
    const { outsideBytesMax } = options;
    const decoded = outsideBytesMax === undefined ? decodeOwnBody(reply, data) : decodeBody(reply, data, outsideBytesMax);
    return decoded.ok ? decoded : unavailable(`the answer on ${natsSubject} is malformed: ${decoded.error.message}`);
  }

  /** Publishes without any acknowledgement: it is lost when nobody listens, when it is too large, or with the connection. */
  publish<T>(natsSubject: string, message: WireMessage<T>, body: T, options: { readonly headers?: HeaderFields } = {}): void {
    if (!this.#connected) return;
    const headers = toNatsHeaders({ [SCHEMA_HEADER]: message.name }, traceHeaders(), options.headers);
    this.outbox.publish(natsSubject, JSON.stringify(body), { headers }, () => undefined);
  }

  /**
   * Publishes into whichever stream holds the subject and waits until it is stored.
   *
   * @returns Its place in the stream. `wrong_sequence`, `full` and `too_large`: certainly not stored. `unavailable`: it may have been
   *   stored, so read the subject back. `duplicate`: the stream has had this message id, perhaps of another subject; read back too.
   */
  async publishStored<T>(
    natsSubject: string,
    content: Storable<T>,
    options: PublishStoredOptions,
  ): Promise<Result<StoredAck, StoreRefusal>> {
    if (!this.#connected) return unavailable('not connected to NATS');
    const raw = content instanceof Uint8Array;
    const headers = toNatsHeaders(
      raw ? undefined : { [SCHEMA_HEADER]: content.message.name },
      traceHeaders(),
      storeHeaders(options),
      options.headers,
    );
    const answer = await this.replies.send(natsSubject, raw ? content : JSON.stringify(content.body), headers, options.timeoutMs);
    return readAck(natsSubject, answer);
  }

  /** Subscribes; resolves once the broker has taken it, so nothing published afterwards is missed. */
  async subscribe(
    natsSubject: string,
    onMessage: (message: BusMessage) => void,
    options: { readonly queue?: string; readonly timeoutMs?: number } = {},
  ): Promise<Result<BusSubscription, Unavailable>> {
    if (!this.#connected) return unavailable('not connected to NATS');
    let refused = false;
    const callback = (error: Error | null, message: Msg): void => {
      if (error === null) onMessage(busMessage(message));
      else refused = true;
    };
    const subscription = this.nats.subscribe(natsSubject, { callback, ...(options.queue === undefined ? {} : { queue: options.queue }) });
    if (!(await this.flush(options.timeoutMs ?? DRAIN_MS)) || refused) {
      subscription.unsubscribe();
      return unavailable(refused ? `no permission to subscribe to ${natsSubject}` : 'NATS does not answer');
    }
    return ok({ stop: () => drainSubscription(subscription) });
  }

  /** Whether the broker has read all that was sent so far. */
  async flush(timeoutMs: number): Promise<boolean> {
    this.outbox.send();
    return (
      (await within(
        this.nats.flush().then(() => true),
        timeoutMs,
      )) ?? false
    );
  }

  /** Calls `watcher` whenever the connection is lost or back. @returns A function that ends it. */
  watch(watcher: (connected: boolean) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Takes in what is on its way, then closes. */
  async drain(): Promise<void> {
    this.outbox.send();
    if (!this.nats.isClosed()) await within(this.nats.drain(), DRAIN_MS);
    await this.close();
  }

  async close(): Promise<void> {
    if (!this.nats.isClosed()) await within(this.nats.close(), DRAIN_MS);
  }

  /** From the connection's own events. Inside this lib only. */
  statusChanged(status: BusStatus): void {
    if (status.kind === 'not_permitted') {
      if (status.operation === 'publish') this.replies.notPermitted(status.natsSubject);
      return;
    }
    const connected = status.kind === 'connected';
    if (connected === this.#connected) return;
    this.#connected = connected;
    if (!connected) {
      this.outbox.discard();
      this.replies.disconnected();
    }
    for (const watcher of [...this.#watchers]) watcher(connected);
  }
}

export const busMessage = (message: {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers?: MsgHdrs | undefined;
}): BusMessage => ({
  subject: message.subject,
  data: message.data,
  header: (name) => headerOf(message.headers, name),
});

export const drainSubscription = async (subscription: Subscription): Promise<void> => {
  if (!subscription.isClosed()) await within(subscription.drain(), DRAIN_MS);
};
