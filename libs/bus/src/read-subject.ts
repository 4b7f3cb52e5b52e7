import { type Result, type Unavailable, ok, unavailable } from '@sharedos/contracts';
import type { ConsumerInfo, StreamInfo } from 'nats';
import type { Bus } from './bus.ts';
import { type StoredMessage, askJetStream, refusalReason } from './stored-message.ts';

export interface ReadOptions {
  /** For the whole reading. */
  readonly timeoutMs: number;
  /** Nothing before it is read; known, it spares the server a search from the beginning. */
  readonly fromSequence?: number;
  /** More than this is `unavailable`: nobody should hold a subject of that size at once. */
  readonly limitBytes?: number;
  /** Reading ends after so many; for a page of a long subject. */
  readonly limitMessages?: number;
}

const LIMIT_BYTES = 64 * 1024 * 1024;
const NO_MESSAGE = 10037;
/** A deletion of what is not there fails with one of these. */
const GONE: ReadonlySet<number> = new Set([NO_MESSAGE, 10057]);

interface RawMessage {
  readonly message: {
    readonly subject: string;
    readonly seq: number;
    readonly hdrs?: string;
    readonly data?: string;
    readonly time: string;
  };
}

type Question = { readonly seq: number } | { readonly last_by_subj: string } | { readonly next_by_subj: string; readonly seq: number };

/**
 * The last message on a subject, from the stream's leader.
 *
 * @returns `undefined` when there is none. In a cluster a leader that was cut off may still answer with an old one: enough to learn
 *   what to expect of the next write, never to conclude that something did not happen.
 */
export const lastOnSubject = (
  bus: Bus,
  stream: string,
  natsSubject: string,
  options: { readonly timeoutMs: number },
): Promise<Result<StoredMessage | undefined, Unavailable>> => getMessage(bus, stream, { last_by_subj: natsSubject }, options.timeoutMs);

/** The first message at or after a sequence on any subject that a filter covers; `undefined` when there is none. */
export const nextOnSubject = (
  bus: Bus,
  stream: string,
  filterSubject: string,
  sequence: number,
  options: { readonly timeoutMs: number },
): Promise<Result<StoredMessage | undefined, Unavailable>> =>
  getMessage(bus, stream, { next_by_subj: filterSubject, seq: sequence }, options.timeoutMs);

/** The message at a sequence, from the stream's leader; `undefined` when there is none, or none any more. */
export const messageAt = (
  bus: Bus,
  stream: string,
  sequence: number,
  options: { readonly timeoutMs: number },
): Promise<Result<StoredMessage | undefined, Unavailable>> => getMessage(bus, stream, { seq: sequence }, options.timeoutMs);

/**
 * All messages on a subject, or on all that a filter covers, oldest first, up to the last one there when reading began.
 *
 * One question a message: a turn has tens of records, and this needs no consumer, hence no right to make one, and no "pending" count.
 */
export const readSubject = async (
  bus: Bus,
  stream: string,
  filterSubject: string,
  options: ReadOptions,
): Promise<Result<StoredMessage[], Unavailable>> => {
  const deadline = performance.now() + options.timeoutMs;
  const last = await lastOnSubject(bus, stream, filterSubject, options);
  if (!last.ok) return last;
  const messages: StoredMessage[] = [];
  if (last.value === undefined) return ok(messages);
  let bytes = 0;
  let from = options.fromSequence ?? 1;
  const limitMessages = options.limitMessages ?? Infinity;
  while (from <= last.value.sequence && messages.length < limitMessages) {
    const remaining = deadline - performance.now();
    if (remaining <= 0) return unavailable(`${filterSubject} was not read within ${options.timeoutMs} ms`);
    const next: Result<StoredMessage | undefined, Unavailable> =
      from === last.value.sequence ? last : await getMessage(bus, stream, { next_by_subj: filterSubject, seq: from }, remaining);
    if (!next.ok) return next;
    // Purged since, or past what was the end when reading began.
    if (next.value === undefined || next.value.sequence > last.value.sequence) break;
    bytes += next.value.data.byteLength;
    if (bytes > (options.limitBytes ?? LIMIT_BYTES)) return unavailable(`${filterSubject} holds more than the limit of bytes`);
    messages.push(next.value);
    from = next.value.sequence + 1;
  }
  return ok(messages);
};

/** Takes one message out of a stream for good. @returns Whether it was there. */
export const deleteMessage = async (
  bus: Bus,
  stream: string,
  sequence: number,
  options: { readonly timeoutMs: number },
): Promise<Result<boolean, Unavailable>> => {
  const deleted = await askJetStream<unknown>(
    bus,
    `$JS.API.STREAM.MSG.DELETE.${stream}`,
    { seq: sequence, no_erase: true },
    options.timeoutMs,
  );
  if (deleted.ok) return ok(true);
  if (deleted.error.kind === 'unavailable') return deleted as Result<never, Unavailable>;
  return GONE.has(deleted.error.error.err_code ?? 0) ? ok(false) : unavailable(refusalReason(deleted.error));
};

/** Takes the messages of one subject, all but the last `keep`, out of a stream for good. */
export const purgeSubject = async (
  bus: Bus,
  stream: string,
  natsSubject: string,
  keep: number,
  options: { readonly timeoutMs: number },
): Promise<Result<void, Unavailable>> => {
  // A `keep` of nothing would be read as none given, which is the same.
  const question = { filter: natsSubject, ...(keep === 0 ? {} : { keep }) };
  const purged = await askJetStream<unknown>(bus, `$JS.API.STREAM.PURGE.${stream}`, question, options.timeoutMs);
  return purged.ok ? ok(undefined) : unavailable(refusalReason(purged.error));
};

/** The stream's last sequence. Current only where the stream has one replica: in a cluster this may be stale (design §5). */
export const streamHead = async (
  bus: Bus,
  stream: string,
  options: { readonly timeoutMs: number },
): Promise<Result<number, Unavailable>> => {
  const info = await streamInfo(bus, stream, options);
  return info.ok ? ok(info.value.state.last_seq) : info;
};

/** What the server says of a stream: its settings, when it was made, where it ends. No more current than {@link streamHead}. */
export const streamInfo = async (
  bus: Bus,
  stream: string,
  options: { readonly timeoutMs: number },
): Promise<Result<StreamInfo, Unavailable>> => {
  const info = await askJetStream<StreamInfo>(bus, `$JS.API.STREAM.INFO.${stream}`, undefined, options.timeoutMs);
  return info.ok ? info : unavailable(refusalReason(info.error));
};

/** What the server says of a durable consumer: what waits for it, and what was given out and not acknowledged. */
export const consumerInfo = async (
  bus: Bus,
  stream: string,
  consumer: string,
  options: { readonly timeoutMs: number },
): Promise<Result<ConsumerInfo, Unavailable>> => {
  const info = await askJetStream<ConsumerInfo>(bus, `$JS.API.CONSUMER.INFO.${stream}.${consumer}`, undefined, options.timeoutMs);
  return info.ok ? info : unavailable(refusalReason(info.error));
};

/** How many messages the stream holds on each subject that a filter covers, given out or not. */
export const subjectCounts = async (
  bus: Bus,
  stream: string,
  filterSubject: string,
  options: { readonly timeoutMs: number },
): Promise<Result<Readonly<Record<string, number>>, Unavailable>> => {
  const counts: Record<string, number> = {};
  for (let offset = 0; ;) {
    const question = { subjects_filter: filterSubject, offset };
    const info = await askJetStream<StreamInfo & { readonly total?: number }>(
      bus,
      `$JS.API.STREAM.INFO.${stream}`,
      question,
      options.timeoutMs,
    );
    if (!info.ok) return unavailable(refusalReason(info.error));
    const page = Object.entries(info.value.state.subjects ?? {});
    for (const [natsSubject, count] of page) counts[natsSubject] = count;
    offset += page.length;
    if (page.length === 0 || offset >= (info.value.total ?? 0)) return ok(counts);
  }
};

const getMessage = async (
  bus: Bus,
  stream: string,
  question: Question,
  timeoutMs: number,
): Promise<Result<StoredMessage | undefined, Unavailable>> => {
  const answer = await askJetStream<RawMessage>(bus, `$JS.API.STREAM.MSG.GET.${stream}`, question, timeoutMs);
  if (answer.ok) return ok(storedFromApi(answer.value));
  if (answer.error.kind === 'refused' && answer.error.error.err_code === NO_MESSAGE) return ok(undefined);
  return unavailable(refusalReason(answer.error));
};

const storedFromApi = ({ message }: RawMessage): StoredMessage => {
  let fields: ReadonlyMap<string, string> | undefined;
  return {
    subject: message.subject,
    sequence: message.seq,
    data: Buffer.from(message.data ?? '', 'base64'),
    storedAt: Date.parse(message.time),
    header: (name) => (fields ??= headerFields(message.hdrs)).get(name) || undefined,
  };
};

/** Reads `NATS/1.0\r\nname: value\r\n…`; the first of several values stands. */
const headerFields = (encoded: string | undefined): ReadonlyMap<string, string> => {
  const fields = new Map<string, string>();
  for (const line of Buffer.from(encoded ?? '', 'base64')
    .toString('utf8')
    .split('\r\n')
    .slice(1)) {
    const colon = line.indexOf(':');
    if (colon > 0 && !fields.has(line.slice(0, colon))) fields.set(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return fields;
};
