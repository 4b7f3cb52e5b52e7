import type { Delivery } from '@sharedos/bus';
import {
  type AuditRecord,
  BLAMED_MAX,
  type BlamedOperation,
  type ExplainedRecord,
  type Lineage,
  type RecordsBlame,
  type RecordsExplain,
  type Reply,
  byCodeUnit,
  refused,
} from '@sharedos/contracts';
import { SPAN, withSpan } from '@sharedos/telemetry';
import { mayRead } from './may-read.ts';
import type { Ports } from './ports.ts';
import { caughtUp, isBehind } from './query-records.ts';

const GRANTS_MAX = 16;

/** Why one recorded decision came out as it did, from the log alone. */
export const explainRecord =
  (ports: Ports) =>
  (asked: RecordsExplain, delivery: Delivery): Promise<Reply<ExplainedRecord>> =>
    withSpan(SPAN.recordsQuery, {}, async () => {
      const reader = await mayRead(ports, delivery, asked.authority);
      if (!reader.ok) return reader;
      if ((await caughtUp(ports)) === undefined) return isBehind(ports);
      const record = ports.records.withId(delivery.namespaceId, asked.id);
      if (record?.event.type !== 'authorization.checked') return refused('record_not_found', 'no decision is recorded under this id');
      const retraced = await ports.log.retrace(delivery.namespaceId, { decision: record.event });
      return retraced.ok ? { ok: true, value: { record, retraced: retraced.value } } : retraced;
    });

/** Who is answerable for an operation: what became of it, who decided, by which grant, from whom, by which commands. */
export const blameOperation =
  (ports: Ports) =>
  (asked: RecordsBlame, delivery: Delivery): Promise<Reply<BlamedOperation>> =>
    withSpan(SPAN.recordsQuery, {}, async () => {
      const { namespaceId } = delivery;
      const reader = await mayRead(ports, delivery, asked.authority);
      if (!reader.ok) return reader;
      if ((await caughtUp(ports)) === undefined) return isBehind(ports);
      const find = (filter: Parameters<Ports['records']['query']>[1]): readonly AuditRecord[] =>
        ports.records.query(namespaceId, filter, { after: 0, limit: BLAMED_MAX }).records;
      const records = find({ operationId: asked.operationId });
      const named = new Set(records.flatMap(({ event }) => (event.grantId === undefined ? [] : [event.grantId])));
      const grants: Lineage[] = [];
      for (const grantId of [...named].sort(byCodeUnit).slice(0, GRANTS_MAX)) {
        const lineage = await ports.log.lineage(namespaceId, { grantId });
        if (!lineage.ok) return lineage;
        grants.push(lineage.value);
      }
      const ids = new Set(grants.flatMap(({ links }) => links.map(({ grant }) => grant.id)));
      const acts = [...ids].flatMap((grantId) => find({ grantId, type: 'admin.changed' })).slice(0, BLAMED_MAX);
      return { ok: true, value: { records: [...records], grants, acts } };
    });
