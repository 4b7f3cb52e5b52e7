import { type AuditRecord, RecordsQuery, RecordsQueryReply, type Result } from '@sharedos/contracts';
import type { ClientError } from './client-error.ts';
import { type Session, ask } from './session.ts';

export interface RecordQueries {
  /** Audit records as far as the read model has come (`upTo`); `next` continues. Needs a grant to read the audit. */
  query(
    query: RecordsQuery,
  ): Promise<Result<{ readonly records: readonly AuditRecord[]; readonly next?: number | undefined; readonly upTo: number }, ClientError>>;
}

export const recordQueries = (session: Session): RecordQueries => ({
  query: (query) => ask(session, 'records.query', RecordsQuery, query, RecordsQueryReply),
});
