import { type Route, route } from '@sharedos/bus';
import { RecordsQuery, RecordsQueryReply } from '@sharedos/contracts';
import { forwardOutcomes } from './forward-outcomes.ts';
import type { Ports } from './ports.ts';
import { queryRecords } from './query-records.ts';

/** All that the audit-projector does, on one screen: it publishes what the ledger recorded, and answers questions about it. */
export const composeAuditProjector = (
  ports: Ports,
): { readonly forward: ReturnType<typeof forwardOutcomes>; readonly routes: readonly Route[] } => ({
  forward: forwardOutcomes(ports),
  routes: [route('records.query', { request: RecordsQuery, reply: RecordsQueryReply, handle: queryRecords(ports) })],
});
