import { type Route, route } from '@sharedos/bus';
import {
  RecordsBlame,
  RecordsBlameReply,
  RecordsExplain,
  RecordsExplainReply,
  RecordsQuery,
  RecordsQueryReply,
  RecordsRecompute,
  RecordsRecomputeReply,
  RecordsReplay,
  RecordsReplayReply,
  RecordsSummary,
  RecordsSummaryReply,
} from '@sharedos/contracts';
import { blameOperation, explainRecord } from './explain-record.ts';
import { forwardOutcomes } from './forward-outcomes.ts';
import type { Ports } from './ports.ts';
import { queryRecords, summarizeRecords } from './query-records.ts';
import { recomputeRecords } from './recompute-records.ts';
import { replayRecords } from './replay-records.ts';

/** All that the audit-projector does, on one screen: it publishes what the ledger recorded, and answers questions about it. */
export const composeAuditProjector = (
  ports: Ports,
): { readonly forward: ReturnType<typeof forwardOutcomes>; readonly routes: readonly Route[] } => ({
  forward: forwardOutcomes(ports),
  routes: [
    route('records.query', { request: RecordsQuery, reply: RecordsQueryReply, handle: queryRecords(ports) }),
    route('records.replay', { request: RecordsReplay, reply: RecordsReplayReply, handle: replayRecords(ports) }),
    route('records.summary', { request: RecordsSummary, reply: RecordsSummaryReply, handle: summarizeRecords(ports) }),
    route('records.recompute', { request: RecordsRecompute, reply: RecordsRecomputeReply, handle: recomputeRecords(ports) }),
    route('records.explain', { request: RecordsExplain, reply: RecordsExplainReply, handle: explainRecord(ports) }),
    route('records.blame', { request: RecordsBlame, reply: RecordsBlameReply, handle: blameOperation(ports) }),
  ],
});
