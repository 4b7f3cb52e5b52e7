import {
  type EndedRecord,
  type LedgerRecord,
  LedgerRecordMessage,
  type Result,
  type UseClaim,
  UseClaimMessage,
  type UseReleased,
  UseReleasedMessage,
  type WireMessage,
  err,
  ok,
  parseValue,
} from '@sharedos/contracts';

/** What a reader of the ledger is given: the bytes, and the name of their schema from the `sharedos-schema` header. */
export interface EncodedRecord {
  readonly schema: string;
  readonly data: Uint8Array;
  readonly mark?: RecordMark;
}

/** What a list learns of a record without its body: its kind, and of an end whether it left a call that nobody can tell of. */
export type RecordMark = LedgerRecord['type'] | 'ended.unknown' | 'settled.late';

const markOf = (record: LedgerRecord): RecordMark => {
  if (record.type === 'settled') return record.late === true ? 'settled.late' : 'settled';
  return record.type === 'ended' && leavesUnknown(record) ? 'ended.unknown' : record.type;
};

/** Whoever ends an operation says so of each call that it leaves open. */
const leavesUnknown = ({ result, audit }: EndedRecord): boolean =>
  'messageId' in result
    ? result.status === 'failed' && result.error.code === 'replay_interrupted'
    : audit.some(({ type, reason }) => type === 'tool.invoked' && reason === 'operation_aborted');

export const encodeLedgerRecord = (record: LedgerRecord): EncodedRecord => ({
  ...encodeRecord(LedgerRecordMessage, record),
  mark: markOf(record),
});

export const encodeRecord = <T>(message: WireMessage<T>, body: T): EncodedRecord => ({
  schema: message.name,
  data: Buffer.from(JSON.stringify(body), 'utf8'),
});

/** Parses a record of an operation strictly. @returns Why it is none, without anything of its content. */
export const decodeLedgerRecord = (record: EncodedRecord): Result<LedgerRecord, string> => decode(LedgerRecordMessage, record);

/** Parses a claimed use strictly. */
export const decodeUseClaim = (record: EncodedRecord): Result<UseClaim, string> => decode(UseClaimMessage, record);

/** Parses a released use strictly. */
export const decodeUseReleased = (record: EncodedRecord): Result<UseReleased, string> => decode(UseReleasedMessage, record);

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Not `decodeBody`: its limits are those of one request. A record wraps results that may be as deep and as large as the contracts
 * allow by themselves, and it was written by `encodeRecord`; its schema still judges every field.
 */
const decode = <T>(message: WireMessage<T>, { schema, data }: EncodedRecord): Result<T, string> => {
  if (schema !== message.name) return err(`a ${message.name} was expected`);
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(data));
  } catch {
    return err(`a ${message.name} that is not JSON`);
  }
  const parsed = parseValue(message, value);
  return parsed.ok ? ok(parsed.value) : err(parsed.error.message);
};
