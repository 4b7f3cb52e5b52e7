import {
  type Bus,
  DURABLE_CONSUMERS,
  type StoredMessage,
  consumerInfo,
  followStream,
  lastOnSubject,
  latestHeaders,
  nextOnSubject,
  purgeSubject,
  readSubject,
  within,
} from '@sharedos/bus';
import { type Result, SCHEMA_HEADER, SUBJECT_ROOT, type StreamName, type Unavailable, ok, unavailable } from '@sharedos/contracts';
import { type LedgerOptions, ledgerOver } from './ledger-over.ts';
import type { Ledger } from './ledger.ts';
import type { RecordLog, StoredRecord, WriteOutcome } from './record-log.ts';

export interface JetStreamLedgerOptions extends LedgerOptions {
  /** How long an acknowledgement is waited for before the record is read back. Default 2 000. */
  readonly ackTimeoutMs?: number;
  /** Up to where the audit in the records was published; what the audit-projector has acknowledged when absent. */
  readonly publishedUpTo?: () => Promise<Result<number, Unavailable>>;
  /** For reading every use. Default 60 000. */
  readonly usesTimeoutMs?: number;
}

const STREAM: StreamName = 'LEDGER';
const ALL_USES = `${SUBJECT_ROOT}.*.ledger.use.>`;
/** Of this one write, minted by us. The broker's de-duplication by it never takes effect, since nothing is sent twice. */
const WRITE_ID_HEADER = 'Nats-Msg-Id';

/** The mark of a record: see `RecordMark`. */
const MARK_HEADER = 'sharedos-record';

const ACK_TIMEOUT_MS = 2_000;
const USES_TIMEOUT_MS = 60_000;
/** Operations that are listed at once, oldest first. */
const OPERATIONS_MAX = 50_000;
/** One turn's records at once: a thousand calls of ordinary size, or some tens of the largest. */
const OPERATION_BYTES_MAX = 256 * 1024 * 1024;

/** A ledger in the stream LEDGER. The bus stays its owner's: `close` leaves it open. @see design §6 */
export const jetStreamLedger = (bus: Bus, options: JetStreamLedgerOptions = {}): Ledger =>
  ledgerOver(jetStreamRecordLog(bus, options), options);

export const jetStreamRecordLog = (bus: Bus, options: JetStreamLedgerOptions = {}): RecordLog => ({
  write: async ({ natsSubject, schema, writeId, data, mark, expected }): Promise<WriteOutcome> => {
    const stored = await bus.publishStored(natsSubject, data, {
      expectedLastSubjectSequence: expected,
      messageId: writeId,
      headers: { [SCHEMA_HEADER]: schema, ...(mark === undefined ? {} : { [MARK_HEADER]: mark }) },
      timeoutMs: options.ackTimeoutMs ?? ACK_TIMEOUT_MS,
    });
    if (stored.ok)
      return stored.value.duplicate
        ? { kind: 'unknown', reason: 'the broker has seen this write before' }
        : { kind: 'stored', sequence: stored.value.sequence };
    switch (stored.error.kind) {
      case 'wrong_sequence':
        return { kind: 'moved' };
      case 'unavailable':
        return { kind: 'unknown', reason: stored.error.reason };
      default:
        return { kind: stored.error.kind };
    }
  },

  read: async (natsSubject, after, timeoutMs) => {
    const read = await readSubject(bus, STREAM, natsSubject, { timeoutMs, fromSequence: after + 1, limitBytes: OPERATION_BYTES_MAX });
    return read.ok ? ok(read.value.map(storedRecord)) : read;
  },

  last: async (natsSubject, timeoutMs) => storedIn(await lastOnSubject(bus, STREAM, natsSubject, { timeoutMs })),

  next: async (filter, after, timeoutMs) => storedIn(await nextOnSubject(bus, STREAM, filter, after + 1, { timeoutMs })),

  marks: async (filter, timeoutMs) => {
    const found = await latestHeaders(bus, STREAM, filter, { timeoutMs, subjectsMax: OPERATIONS_MAX });
    if (!found.ok) return found;
    const marks = found.value.map(({ subject, storedAt, header }) => ({ natsSubject: subject, mark: header(MARK_HEADER), storedAt }));
    return ok({ marks, complete: marks.length < OPERATIONS_MAX });
  },

  forget: (natsSubject, keep, timeoutMs) => purgeSubject(bus, STREAM, natsSubject, keep, { timeoutMs }),

  publishedUpTo: async (timeoutMs) => {
    if (options.publishedUpTo !== undefined) return options.publishedUpTo();
    const projector = await consumerInfo(bus, STREAM, DURABLE_CONSUMERS['audit-projector'].name, { timeoutMs });
    return projector.ok ? ok(projector.value.ack_floor.stream_seq) : projector;
  },

  readUses: () => readUses(bus, options.usesTimeoutMs ?? USES_TIMEOUT_MS),
});

const storedIn = (read: Result<StoredMessage | undefined, Unavailable>): Result<StoredRecord | undefined, Unavailable> =>
  read.ok ? ok(read.value === undefined ? undefined : storedRecord(read.value)) : read;

const storedRecord = (message: StoredMessage): StoredRecord => ({
  natsSubject: message.subject,
  sequence: message.sequence,
  schema: message.header(SCHEMA_HEADER) ?? '',
  writeId: message.header(WRITE_ID_HEADER) ?? '',
  data: message.data,
  storedAt: message.storedAt,
});

/**
 * Follows the claims of uses up to the last one there is now. A feed that breaks goes on after what it has handed over; reaching
 * that last sequence is the only end, so a deadline gives nothing rather than a part.
 *
 * In a cluster the last sequence may be an old one. Then a spent ordinal is handed out again and its claim answers `taken`.
 */
const readUses = async (bus: Bus, timeoutMs: number): Promise<Result<readonly StoredRecord[], Unavailable>> => {
  const startedAt = performance.now();
  const last = await lastOnSubject(bus, STREAM, ALL_USES, { timeoutMs });
  if (!last.ok) return last;
  if (last.value === undefined) return ok([]);
  const upTo = last.value.sequence;
  const records: StoredRecord[] = [];
  let trouble = 'it was too slow';
  const follow = Promise.withResolvers<true>();
  const feed = followStream(bus, {
    stream: STREAM,
    filterSubject: ALL_USES,
    fromSequence: 1,
    onMessage: (message) => {
      if (message.sequence <= upTo) records.push(storedRecord(message));
      if (message.sequence >= upTo) follow.resolve(true);
    },
    onAlive: () => undefined,
    onTrouble: (reason) => {
      trouble = reason;
    },
    onDefect: (error) => follow.reject(error),
  });
  try {
    const complete = await within(follow.promise, timeoutMs - (performance.now() - startedAt));
    return complete === true ? ok(records) : unavailable(`the uses were not read within ${timeoutMs} ms: ${trouble}`);
  } finally {
    await feed.stop();
  }
};
