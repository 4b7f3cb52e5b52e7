import { type Delivery, withinOneAnswer } from '@sharedos/bus';
import { type AuditRecord, type RecordsQuery, type RecordsSummary, type Reply, type SummaryOfRecords, refused } from '@sharedos/contracts';
import { SPAN, withSpan } from '@sharedos/telemetry';
import { mayRead } from './may-read.ts';
import type { Ports } from './ports.ts';

const PAGE = 100;
const CATCH_UP_MS = 3_000;
/** Grants of a summary whose limits are looked up. */
const LIMITS_ASKED = 32;

type QueryReply = Reply<{ records: AuditRecord[]; next?: number | undefined; upTo: number }>;

/** Answers a question about the records of the caller's namespace; everything recorded before the question is in the answer. */
export const queryRecords =
  (ports: Ports) =>
  (query: RecordsQuery, delivery: Delivery): Promise<QueryReply> =>
    withSpan(SPAN.recordsQuery, {}, async () => {
      const reader = await mayRead(ports, delivery, query.authority);
      if (!reader.ok) return reader;
      const upTo = await caughtUp(ports);
      if (upTo === undefined) return isBehind(ports);
      const { limit = PAGE, after = 0 } = query;
      const page = ports.records.query(delivery.namespaceId, query, { after, limit });
      const records = withinOneAnswer(page.records);
      const next = records.length < page.records.length ? records.at(-1)?.sequence : page.next;
      return { ok: true, value: { records: [...records], upTo, ...(next === undefined ? {} : { next }) } };
    });

/** Counts over the records of a time: decisions, reasons with outages apart, uses of each grant beside what the log allows it. */
export const summarizeRecords =
  (ports: Ports) =>
  (asked: RecordsSummary, delivery: Delivery): Promise<Reply<SummaryOfRecords>> =>
    withSpan(SPAN.recordsQuery, {}, async () => {
      const reader = await mayRead(ports, delivery, asked.authority);
      if (!reader.ok) return reader;
      if ((await caughtUp(ports)) === undefined) return isBehind(ports);
      const summary = ports.records.summary(delivery.namespaceId, asked);
      return { ok: true, value: { ...summary, uses: await againstTheLog(ports, delivery.namespaceId, summary.uses) } };
    });

/** What the log says the most used grants may be used in all. Where it cannot be asked, the counts stand by themselves. */
const againstTheLog = async (
  { log }: Pick<Ports, 'log'>,
  namespaceId: string,
  uses: SummaryOfRecords['uses'],
): Promise<SummaryOfRecords['uses']> => {
  const lineages = await Promise.all(uses.slice(0, LIMITS_ASKED).map(({ grantId }) => log.lineage(namespaceId, { grantId })));
  return uses.map((use, index) => {
    const lineage = lineages[index];
    const max = lineage?.ok === true ? lineage.value.links[0]?.grant.constraints.maxUses : undefined;
    return max === undefined ? use : { ...use, max };
  });
};

/** The refusal of whoever cannot be answered yet; says how far a model is that is being built. */
export const isBehind = ({ building }: Pick<Ports, 'building'>): ReturnType<typeof refused> =>
  refused('records_unavailable', `${building() ?? 'the read model is behind the records'}; try again`, true);

/** Waits until the read model has seen the record that is the last one now. */
export const caughtUp = async ({ head: lastOne, records, folded, behind }: Ports): Promise<number | undefined> => {
  const head = await lastOne();
  if (!head.ok) return undefined;
  const deadline = performance.now() + CATCH_UP_MS;
  while (records.position < head.value) {
    if (behind() !== undefined || !(await folded(deadline - performance.now()))) return undefined;
  }
  return head.value;
};
