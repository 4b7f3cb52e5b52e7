import {
  type Address,
  type DeliveryResult,
  type EndedRecord,
  type ExecutionResult,
  type Json,
  type JsonObj,
  type LedgerRecord,
  type OperationOutcome,
  type ResolvedRecord,
  type Result,
  canonicalJson,
  err,
  ok,
} from '@sharedos/contracts';
import { jsonBytes } from './contract-value.ts';

/** What a message that may or may not have been delivered is answered with. */
const INTERRUPTED = 'replay_interrupted';

/**
 * What is known of one call whose effect could happen.
 *
 * - `running`: the operation goes on.
 * - `unknown`: the operation ended without its answer, and nobody can tell whether the effect happened.
 * - `known`: it has an answer on record, in time or late.
 * - `resolved`: an operator found it out.
 */
export type CallState =
  | { readonly state: 'running' | 'unknown' | 'known' }
  | { readonly state: 'resolved'; readonly outcome: OperationOutcome; readonly output?: Json | undefined; readonly by: Address };

/** The calls of an operation that were admitted, by id. A message that was interrupted is one call under its own id. */
export const callsOf = (records: readonly LedgerRecord[]): ReadonlyMap<string, CallState> => {
  const calls = new Map<string, CallState>();
  let operationId: string | undefined;
  for (const record of records) {
    switch (record.type) {
      case 'claimed':
        operationId ??= record.operationId;
        break;
      case 'admitted':
        calls.set(record.callId, { state: 'running' });
        break;
      case 'settled':
        // A refused call had no effect to know of.
        if (calls.has(record.callId)) calls.set(record.callId, { state: 'known' });
        break;
      case 'ended':
        endCalls(calls, record, operationId);
        break;
      case 'resolved': {
        const { callId, outcome, output, by } = record;
        if (calls.get(callId)?.state === 'unknown')
          calls.set(callId, { state: 'resolved', outcome, by, ...(output === undefined ? {} : { output }) });
        break;
      }
      default:
        break;
    }
  }
  return calls;
};

const endCalls = (calls: Map<string, CallState>, { result }: EndedRecord, operationId: string | undefined): void => {
  // A message is one call, which its answer speaks for.
  if ('messageId' in result) {
    const isUnknown = result.status === 'failed' && result.error.code === INTERRUPTED;
    if (isUnknown) calls.set(operationId ?? result.messageId, { state: 'unknown' });
    else for (const callId of calls.keys()) calls.set(callId, { state: 'known' });
    return;
  }
  for (const [callId, { state }] of calls) if (state === 'running') calls.set(callId, { state: 'unknown' });
};

/** The calls that nobody can tell of. */
export const unknownCallsOf = (records: readonly LedgerRecord[]): readonly string[] =>
  [...callsOf(records)].flatMap(([callId, { state }]) => (state === 'unknown' ? [callId] : []));

export interface CallFinding {
  readonly callId: string;
  readonly outcome: OperationOutcome;
  readonly output?: Json | undefined;
}

export interface CallFindingRefusal {
  readonly code: 'operation_not_unknown' | 'operation_resolved_otherwise' | 'operation_expired';
}

/**
 * Whether an operator may state what became of a call: of one that is unknown, once.
 *
 * @returns `recorded` when the same was stated before: it changes nothing.
 */
export const judgeFinding = (records: readonly LedgerRecord[], found: CallFinding): Result<'new' | 'recorded', CallFindingRefusal> => {
  if (records.some(({ type }) => type === 'expired')) return err({ code: 'operation_expired' });
  const call = callsOf(records).get(found.callId);
  if (call?.state === 'unknown') return ok('new');
  if (call?.state !== 'resolved') return err({ code: 'operation_not_unknown' });
  const same = call.outcome === found.outcome && canonicalJson(call.output ?? null) === canonicalJson(found.output ?? null);
  return same ? ok('recorded') : err({ code: 'operation_resolved_otherwise' });
};

/**
 * The stored answer in view of what an operator found out. A message is answered by it. A turn stays as it ended, which nobody can
 * undo, and its answer says of each call that was left unknown what became of it.
 */
export const answerAsResolved = (ended: EndedRecord, resolved: readonly ResolvedRecord[]): EndedRecord => ({
  ...ended,
  result: 'messageId' in ended.result ? receiptAsResolved(ended.result, resolved) : resultAsResolved(ended.result, resolved),
});

const receiptAsResolved = (receipt: DeliveryResult, [first]: readonly ResolvedRecord[]): DeliveryResult => {
  if (first === undefined) return receipt;
  const { messageId, metadata } = receipt;
  const known = { messageId, timestamp: first.at, ...(metadata === undefined ? {} : { metadata }) };
  if (first.outcome === 'happened') return { status: 'accepted', ...known };
  const error = { code: 'message_not_delivered', message: 'An operator found that the message was not delivered.', retryable: false };
  return { status: 'failed', ...known, error };
};

/** What operators stated together may take of an answer; what is beyond it, the records alone tell. */
const OUTPUTS_BYTES_MAX = 1024 * 1024;

const resultAsResolved = (result: ExecutionResult, resolved: readonly ResolvedRecord[]): ExecutionResult => {
  const found = new Map<string, JsonObj>();
  let bytes = 0;
  for (const { callId, outcome, output } of resolved) {
    // The first finding stands.
    if (found.has(callId)) continue;
    bytes += output === undefined ? 0 : jsonBytes(output);
    found.set(callId, { callId, outcome, ...(output === undefined || bytes > OUTPUTS_BYTES_MAX ? {} : { output }) });
  }
  return { ...result, metadata: { ...result.metadata, resolved: [...found.values()] } };
};
