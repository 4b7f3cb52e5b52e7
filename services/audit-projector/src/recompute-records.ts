import { type Delivery, withinOneAnswer } from '@sharedos/bus';
import type { AuditEvent, AuditRecord, Difference, NoBasis, RecomputedPage, RecordsRecompute, Reply } from '@sharedos/contracts';
import { SPAN, withSpan } from '@sharedos/telemetry';
import type { Ports } from './ports.ts';
import { caughtUp, isBehind } from './query-records.ts';
import { readerSession } from './reader-session.ts';

const PAGE = 200;

/** Has recorded decisions computed again, a page at a time, and tells those that differ. */
export const recomputeRecords =
  (ports: Ports) =>
  (asked: RecordsRecompute, delivery: Delivery): Promise<Reply<RecomputedPage>> =>
    withSpan(SPAN.recordsQuery, {}, async () => {
      const session = await readerSession(ports, asked, delivery);
      if (!session.ok) return session;
      if ((await caughtUp(ports)) === undefined) return isBehind(ports);
      const { namespaceId } = delivery;
      const { after, since, until, limit = PAGE, suppose } = asked;
      const page = ports.records.query(namespaceId, { type: 'authorization.checked', since, until }, { after, limit });
      const records = withinOneAnswer(page.records);
      const next = records.length < page.records.length ? records.at(-1)?.sequence : page.next;
      const told = {
        ...(next === undefined ? {} : { next }),
        heldAfter: ports.records.heldAfter(delivery.namespaceId),
        session: session.value,
      };
      if (records.length === 0) return { ok: true, value: { decisions: 0, same: 0, noBasis: {}, differing: [], ...told } };

      const decisions = records.map(({ event }) => event);
      const computed = await ports.log.recompute(namespaceId, { decisions, ...(suppose === undefined ? {} : { suppose }) });
      if (!computed.ok) return computed;
      const noBasis: Partial<Record<NoBasis, number>> = {};
      const differing: Difference[] = [];
      let same = 0;
      for (const [index, answer] of computed.value.answers.entries()) {
        const record = records[index] as AuditRecord;
        if (answer.status === 'same') same += 1;
        else if (answer.status === 'no_basis') noBasis[answer.why] = (noBasis[answer.why] ?? 0) + 1;
        else
          differing.push({ record, computed: answer.computed, fields: answer.fields, turnIsRunning: turnIsRunning(ports, record.event) });
      }
      return { ok: true, value: { decisions: records.length, same, noBasis, differing, ...told } };
    });

/** A turn was let in when it was admitted, and is over with its end; a single operation outside one has neither. */
const turnIsRunning = ({ records }: Ports, { namespaceId, metadata }: AuditEvent): boolean => {
  const turnId = metadata?.['turnId'];
  if (typeof turnId !== 'string') return false;
  const has = (type: AuditEvent['type'], more: object = {}): boolean =>
    records.query(namespaceId, { turnId, type, ...more }, { after: 0, limit: 1 }).records.length > 0;
  const isExecution = has('authorization.checked', { outcome: 'allowed', resource: { namespace: 'sharedos.execution', path: [] } });
  return isExecution && !has('turn.ended');
};
