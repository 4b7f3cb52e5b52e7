import { type Result, SCHEMA_HEADER, type Unavailable, err, ok, unavailable } from '@sharedos/contracts';
import { ErrorCode, type MsgHdrs, MsgHdrsImpl, type NatsConnection, NatsError, headers } from 'nats';
import { z } from 'zod';

/** The broker answered, and its answer was no. */
export interface ApiRefusal {
  readonly kind: 'refused';
  /** The broker's own number of the refusal; its text may change between versions, this does not. */
  readonly code: number;
  readonly description: string;
}

/** One stored message, as the broker keeps it. */
export interface StoredMessage {
  readonly natsSubject: string;
  readonly position: number;
  readonly headers: MsgHdrs | undefined;
  readonly body: Uint8Array;
}

export type StreamInfo = z.infer<typeof StreamInfo>;

/** Every call ends by `timeoutMs`. Rights of the user that calls: `STREAM.INFO`, `STREAM.MSG.GET`, `CONSUMER.CREATE` and its own subjects. */
export interface JetStreamApi {
  info(timeoutMs: number): Promise<Result<StreamInfo, Unavailable>>;
  lastOn(natsSubject: string, timeoutMs: number): Promise<Result<StoredMessage | undefined, Unavailable>>;
  messageAt(position: number, timeoutMs: number): Promise<Result<StoredMessage | undefined, Unavailable>>;
  /** An ordered reader's consumer: in memory, never acknowledged, dropped by the server when nobody pulls. */
  createConsumer(name: string, startAt: number, timeoutMs: number): Promise<Result<void, Unavailable>>;
  /** Stores `body` if the last message on its subject is at `expected`; answers the position it got. */
  publish(record: {
    readonly natsSubject: string;
    readonly schema: string;
    readonly body: Uint8Array;
    readonly expected: number;
    readonly timeoutMs: number;
  }): Promise<Result<number, 'conflict' | 'too_large' | Unavailable>>;
}

/** The server keeps this header with the message, so a record names the one before it on its subject. */
export const EXPECTED_HEADER = 'Nats-Expected-Last-Subject-Sequence';
/** The broker refuses a message that came to another stream than the one meant. */
const EXPECTED_STREAM_HEADER = 'Nats-Expected-Stream';

const NO_MESSAGE = 10_037;
const WRONG_LAST_SEQUENCE = 10_071;
const MESSAGE_TOO_LARGE = 10_054;
/** How long the server keeps a consumer that nobody pulls from. */
const CONSUMER_IDLE_MS = 10_000;
const NANOS_PER_MS = 1_000_000;

const Failure = z.object({ error: z.object({ err_code: z.int().optional(), code: z.int(), description: z.string().default('') }) });
const Sequence = z.int().min(0);
const StreamInfo = z.object({
  created: z.string().min(1),
  config: z.object({
    name: z.string(),
    retention: z.string(),
    discard: z.string().default('old'),
    max_age: z.number().default(0),
    max_msgs: z.number().default(-1),
    max_bytes: z.number().default(-1),
    max_msgs_per_subject: z.number().default(-1),
    num_replicas: z.int().default(1),
  }),
  state: z.object({ last_seq: Sequence }),
});
const PubAck = z.object({ stream: z.string(), seq: Sequence });
const StoredAnswer = z.object({
  message: z.object({ subject: z.string(), seq: Sequence, hdrs: z.base64().optional(), data: z.base64().default('') }),
});

export const jetStreamApi = (nats: NatsConnection, streamName: string): JetStreamApi => {
  const request = async <T>(
    natsSubject: string,
    body: Uint8Array,
    timeoutMs: number,
    shape: z.ZodType<T>,
    messageHeaders?: MsgHdrs,
  ): Promise<Result<T, ApiRefusal | 'too_large' | Unavailable>> => {
    let answer: unknown;
    try {
      const timeout = Math.max(1, Math.ceil(timeoutMs));
      answer = (await nats.request(natsSubject, body, { timeout, ...(messageHeaders === undefined ? {} : { headers: messageHeaders }) })).json();
    } catch (error) {
      if (error instanceof SyntaxError) return unavailable('the broker answered something that is not JSON');
      if (!(error instanceof NatsError)) throw error;
      if (error.code === ErrorCode.MaxPayloadExceeded) return err('too_large');
      return unavailable(error.code === ErrorCode.Timeout ? `no answer of JetStream within ${timeoutMs} ms` : `JetStream: ${error.message} (${error.code})`);
    }
    const failure = Failure.safeParse(answer);
    if (failure.success) {
      const { err_code, code, description } = failure.data.error;
      return err({ kind: 'refused', code: err_code ?? code, description });
    }
    const parsed = shape.safeParse(answer);
    return parsed.success ? ok(parsed.data) : unavailable('JetStream answered in a shape that we do not know');
  };

  const ask = async <T>(verb: string, body: object | undefined, timeoutMs: number, shape: z.ZodType<T>): Promise<Result<T, ApiRefusal | Unavailable>> => {
    const bytes = body === undefined ? new Uint8Array() : Buffer.from(JSON.stringify(body), 'utf8');
    const answer = await request(`$JS.API.${verb}`, bytes, timeoutMs, shape);
    if (answer.ok) return answer;
    return answer.error === 'too_large' ? unavailable('a request to JetStream was too large') : err(answer.error);
  };

  const message = async (query: object, timeoutMs: number): Promise<Result<StoredMessage | undefined, Unavailable>> => {
    const answer = await ask(`STREAM.MSG.GET.${streamName}`, query, timeoutMs, StoredAnswer);
    if (!answer.ok) return answer.error.kind === 'refused' && answer.error.code === NO_MESSAGE ? ok(undefined) : notNow(answer.error);
    const { subject, seq, hdrs, data } = answer.value.message;
    return ok({
      natsSubject: subject,
      position: seq,
      headers: hdrs === undefined ? undefined : MsgHdrsImpl.decode(Buffer.from(hdrs, 'base64')),
      body: Buffer.from(data, 'base64'),
    });
  };

  return {
    info: async (timeoutMs) => {
      const info = await ask(`STREAM.INFO.${streamName}`, undefined, timeoutMs, StreamInfo);
      return info.ok ? info : notNow(info.error);
    },
    lastOn: (natsSubject, timeoutMs) => message({ last_by_subj: natsSubject }, timeoutMs),
    messageAt: (position, timeoutMs) => message({ seq: position }, timeoutMs),
    createConsumer: async (name, startAt, timeoutMs) => {
      const config = {
        name,
        deliver_policy: 'by_start_sequence',
        opt_start_seq: startAt,
        ack_policy: 'none',
        replay_policy: 'instant',
        mem_storage: true,
        num_replicas: 1,
        inactive_threshold: CONSUMER_IDLE_MS * NANOS_PER_MS,
      };
      const created = await ask(`CONSUMER.CREATE.${streamName}.${name}`, { stream_name: streamName, config }, timeoutMs, z.object({ name: z.literal(name) }));
      return created.ok ? ok(undefined) : notNow(created.error);
    },
    publish: async ({ natsSubject, schema, body, expected, timeoutMs }) => {
      const messageHeaders = headers();
      messageHeaders.set(SCHEMA_HEADER, schema);
      messageHeaders.set(EXPECTED_STREAM_HEADER, streamName);
      messageHeaders.set(EXPECTED_HEADER, String(expected));
      const ack = await request(natsSubject, body, timeoutMs, PubAck, messageHeaders);
      if (ack.ok) return ack.value.stream === streamName ? ok(ack.value.seq) : unavailable('another stream took the record');
      if (ack.error === 'too_large') return err('too_large');
      if (ack.error.kind === 'refused' && ack.error.code === WRONG_LAST_SEQUENCE) return err('conflict');
      if (ack.error.kind === 'refused' && ack.error.code === MESSAGE_TOO_LARGE) return err('too_large');
      return notNow(ack.error);
    },
  };
};

/** A refusal that we have no use for is "not now": the stream is missing, full, or not yet there. */
const notNow = (error: ApiRefusal | Unavailable): Result<never, Unavailable> =>
  error.kind === 'unavailable' ? err(error) : unavailable(`JetStream: ${error.description} (${error.code})`);
