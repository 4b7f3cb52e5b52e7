import { type Delivery, withinOneAnswer } from '@sharedos/bus';
import { type ChainedRecord, type RecordsPage, type RecordsReplay, type Reply } from '@sharedos/contracts';
import { SPAN, withSpan } from '@sharedos/telemetry';
import type { Ports } from './ports.ts';
import { caughtUp, isBehind } from './query-records.ts';
import { readerSession } from './reader-session.ts';

const PAGE = 200;
/**
 * Hands out all records after a place, in order, with their links and heads; waits a while where there is none. Whoever asks
 * chooses when to ask again, so a slow reader costs nothing here, and goes on where it was after any interruption.
 */
export const replayRecords =
  (ports: Ports) =>
  (asked: RecordsReplay, delivery: Delivery): Promise<Reply<RecordsPage>> =>
    withSpan(SPAN.recordsQuery, {}, async () => {
      const session = await readerSession(ports, asked, delivery);
      if (!session.ok) return session;
      // What a model has that is being built would end before the records do.
      if (ports.building() !== undefined && (await caughtUp(ports)) === undefined) return isBehind(ports);
      const { after, headsAfter = 0, limit = PAGE } = asked;
      const deadline = performance.now() + (asked.waitMs ?? 0);
      let found: readonly ChainedRecord[] = [];
      for (;;) {
        if (ports.behind() !== undefined) return isBehind(ports);
        found = ports.records.chained(delivery.namespaceId, after, limit);
        const remaining = deadline - performance.now();
        const isNews = found.length > 0 || ports.records.heads(delivery.namespaceId, headsAfter, after).length > 0;
        if (isNews || remaining <= 0 || delivery.signal.aborted) break;
        await ports.folded(remaining);
      }
      const records = withinOneAnswer(found);
      const last = records.at(-1)?.sequence ?? after;
      const heads = ports.records.heads(delivery.namespaceId, headsAfter, last);
      return {
        ok: true,
        value: {
          records: [...records],
          heads: heads.map(({ sealed }) => sealed),
          after: last,
          headsAfter: heads.at(-1)?.position ?? headsAfter,
          heldAfter: ports.records.heldAfter(delivery.namespaceId),
          session: session.value,
        },
      };
    });
