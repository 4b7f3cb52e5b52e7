import {
  type LogEvent,
  LogRecord,
  LogRecordMessage,
  PAYLOAD_BYTES_MAX,
  type Result,
  decodeOwnBody,
  describeIssues,
  err,
  ok,
  parseJsonText,
} from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';

/** Largest append, in bytes of its JSON. Half of what a broker takes by default, so no broker's setting changes the answer. */
export const APPEND_BYTES_MAX = 512 * 1024;
/** Most events in one append. */
export const APPEND_EVENTS_MAX = 256;

/**
 * Writes the events of one append as one record.
 *
 * What a reader would park is never written: events that are not of the schema are a defect of the caller, and `too_large` is said
 * of what nests too deep as well.
 */
export const encodeRecord = (events: readonly LogEvent[]): Result<Uint8Array, { readonly kind: 'too_large' }> => {
  if (events.length > APPEND_EVENTS_MAX) return err({ kind: 'too_large' });
  const record = LogRecord.safeParse(events);
  invariant(record.success, `an append holds events of the schema (${record.success ? '' : describeIssues(record.error)})`);
  const body = Buffer.from(JSON.stringify(record.data), 'utf8');
  if (body.byteLength > APPEND_BYTES_MAX) return err({ kind: 'too_large' });
  // Data that is as deep as it may be by itself is too deep inside a record, and one such record would park the log for everybody.
  return parseJsonText(body.toString('utf8')).ok ? ok(body) : err({ kind: 'too_large' });
};

/** Reads a record back, or says why it is none of ours. Whoever may append to a log is one of us; its schema is held all the same. */
export const decodeRecord = (body: Uint8Array): Result<readonly LogEvent[], string> => {
  const record = decodeOwnBody(LogRecordMessage, body, PAYLOAD_BYTES_MAX);
  return record.ok ? record : err(record.error.message);
};
