import {
  type AuditEvent,
  type ClaimedRecord,
  type EndedRecord,
  type ExecutionResult,
  PROTOCOL_VERSION,
  type Result,
  err,
  ok,
  timestampOf,
} from '@sharedos/contracts';
import { type AuditMark, foldExecution, toolInvoked, turnEnded } from '@sharedos/kernel';
import type { OperationHistory, OperationKey } from '@sharedos/ledger';
import { measurements } from '@sharedos/telemetry';
import type { AcceptedRequest } from './accept-request.ts';
import type { Ports } from './ports.ts';

/**
 * Ends a turn whose owner is silent, or that nobody will run. It is never run again: what its open calls did is unknown, and
 * that is what is recorded.
 *
 * The write itself is the fence. It succeeds only at the revision that was read, and after it the old owner can write nothing.
 *
 * @returns `moved` when somebody wrote in between: read again.
 */
export const interruptTurn = async (
  { ledger, clock, ids }: Pick<Ports, 'ledger' | 'clock' | 'ids'>,
  key: OperationKey,
  history: OperationHistory,
  { context, request }: AcceptedRequest,
  by: 'recovery' | 'cancel',
): Promise<Result<EndedRecord, 'moved'>> => {
  const { claimed, openCalls } = foldExecution(history.records);
  const at = clock();
  const turnId = claimed?.turnId;
  const opened = history.records.find((record) => record.type === 'opened');
  let order = nextOrder(history);
  const mark = (): AuditMark => ({ id: ids(), at, context, place: { turnId, revision: opened?.revision, order: order++ } });
  const decided = decisionsOf(history);
  const record: EndedRecord = {
    type: 'ended',
    at: timestampOf(at),
    by,
    ...(opened === undefined ? {} : { revision: opened.revision }),
    result: cancelledResult(request.executionId, request.message.traceId, claimed, timestampOf(at)),
    audit: [
      ...openCalls.map((callId) => {
        const aborted = { operationId: callId, outcome: 'failed', reason: 'operation_aborted', source: 'kernel' } as const;
        return toolInvoked(mark(), { ...aborted, tool: 'unknown', ...decided.get(callId) });
      }),
      turnEnded(mark(), { executionId: request.executionId, status: 'cancelled', code: 'turn_cancelled', endedBy: 'envelope' }),
    ],
  };
  const written = await ledger.resume(key, history).append(record);
  if (written.ok) measurements.add('effectsUnknown', openCalls.length);
  return written.ok ? ok(record) : err('moved');
};

/** An interrupted turn may have done anything that it was allowed to, so trying again is not offered. */
const cancelledResult = (executionId: string, traceId: string, claimed: ClaimedRecord | undefined, at: string): ExecutionResult => ({
  version: PROTOCOL_VERSION,
  status: 'cancelled',
  executionId,
  traceId,
  events: [],
  startedAt: claimed?.at ?? at,
  completedAt: at,
  error: { code: 'turn_cancelled', message: 'The turn was interrupted.', retryable: false },
});

/** The number of the turn's next record, after those that its owner wrote. */
const nextOrder = ({ records }: OperationHistory): number =>
  records
    .flatMap((record) => ('audit' in record ? record.audit : []))
    .reduce((next, { metadata }) => Math.max(next, typeof metadata?.['order'] === 'number' ? metadata['order'] + 1 : 0), 0);

/** What each call was allowed to do, and by which grant, as its admission says. */
const decisionsOf = (
  history: OperationHistory,
): ReadonlyMap<string, { readonly tool?: string } & Pick<AuditEvent, 'resource' | 'action' | 'grantId'>> =>
  new Map(
    history.records.flatMap((record) => {
      if (record.type !== 'admitted') return [];
      const allowed = record.audit.find(
        ({ type, outcome, operationId }) => type === 'authorization.checked' && outcome === 'allowed' && operationId === record.callId,
      );
      const { resource, action, grantId } = allowed ?? {};
      return [[record.callId, { ...(record.tool === undefined ? {} : { tool: record.tool }), resource, action, grantId }] as const];
    }),
  );
