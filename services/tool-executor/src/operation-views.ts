import {
  type LedgerRecord,
  type OperationAt,
  type OperationKind,
  type OperationSummary,
  TIMELINE_MAX,
  type TimelineEntry,
} from '@sharedos/contracts';
import { foldExecution, unknownCallsOf } from '@sharedos/kernel';
import type { OperationHistory } from '@sharedos/ledger';

/** An operation as an operator may see it: what it was called and how it stands, and nothing that anybody passed or got. */
export const operationAt = (kind: OperationKind, history: OperationHistory): OperationAt => ({
  operation: summaryOf(kind, history.records),
  timeline: timelineOf(history.records),
  ledgerRevision: history.revision,
});

export const summaryOf = (kind: OperationKind, records: readonly [LedgerRecord, ...LedgerRecord[]]): OperationSummary => {
  const { state, claimed, ended, expired } = foldExecution(records);
  const known = claimed ?? expired?.claim;
  const unknownCalls = [...unknownCallsOf(records)];
  const endedAt = ended?.at ?? expired?.endedAt;
  const code = ended === undefined ? undefined : codeIn(ended.result);
  return {
    kind,
    state: state === 'ended' && unknownCalls.length > 0 ? 'unknown' : state === 'absent' ? 'running' : state,
    at: records[0].at,
    unknownCalls,
    ...(known === undefined ? {} : { requester: known.requester, operationId: known.operationId, traceId: known.traceId }),
    ...(known?.agent === undefined ? {} : { agent: known.agent }),
    ...(endedAt === undefined ? {} : { endedAt }),
    ...(ended === undefined ? {} : { status: ended.result.status }),
    ...(code === undefined ? {} : { code }),
  };
};

/** What was recorded, oldest first; of very much, the last. */
export const timelineOf = (records: readonly LedgerRecord[]): TimelineEntry[] => {
  const tools = new Map(records.flatMap((record) => (record.type === 'admitted' ? [[record.callId, record.tool] as const] : [])));
  return records.slice(-TIMELINE_MAX).map((record) => entryOf(record, tools));
};

const entryOf = (record: LedgerRecord, tools: ReadonlyMap<string, string | undefined>): TimelineEntry => {
  const { at, type: what } = record;
  switch (record.type) {
    case 'claimed':
      return { at, what, by: record.ownerId };
    case 'settled': {
      const { callId, tool, status } = record.result;
      return stated({ at, what, callId, tool, status, code: codeIn(record.result) });
    }
    case 'ended':
      return stated({ at, what, status: record.result.status, code: codeIn(record.result), by: record.by });
    case 'resolved':
      return { at, what, callId: record.callId, outcome: record.outcome, by: record.by };
    case 'delivery':
      return { at, what, status: record.event.type };
    case 'admitted':
    case 'released':
      return stated({ at, what, callId: record.callId, tool: tools.get(record.callId) });
    default:
      return { at, what };
  }
};

const codeIn = (result: object): string | undefined =>
  'error' in result && result.error !== undefined ? (result.error as { readonly code: string }).code : undefined;

const stated = (entry: { readonly [K in keyof TimelineEntry]: TimelineEntry[K] | undefined }): TimelineEntry =>
  Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined)) as unknown as TimelineEntry;
