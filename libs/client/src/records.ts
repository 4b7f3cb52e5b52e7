import {
  type AuditRecord,
  RecordsQuery,
  RecordsQueryReply,
  RecordsSummary,
  RecordsSummaryReply,
  type Result,
  type SummaryOfRecords,
} from '@sharedos/contracts';
import type { ClientError } from './client-error.ts';
import { type Session, ask } from './session.ts';

export interface RecordQueries {
  /** Audit records as far as the read model has come (`upTo`); `next` continues. Needs a grant to read the audit. */
  query(
    query: RecordsQuery,
  ): Promise<Result<{ readonly records: readonly AuditRecord[]; readonly next?: number | undefined; readonly upTo: number }, ClientError>>;
  /** Counts over a time: decisions with outages apart, reasons, uses of grants, and the newest signed head. */
  summary(asked: RecordsSummary): Promise<Result<SummaryOfRecords, ClientError>>;
}

export const recordQueries = (session: Session): RecordQueries => ({
  query: (query) => ask(session, 'records.query', RecordsQuery, query, RecordsQueryReply),
  summary: (asked) => ask(session, 'records.summary', RecordsSummary, asked, RecordsSummaryReply),
});
