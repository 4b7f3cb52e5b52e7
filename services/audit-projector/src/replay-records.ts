import { type Delivery, withinOneAnswer } from '@sharedos/bus';
import {
  type Address,
  type ChainedRecord,
  type RecordsPage,
  type RecordsReplay,
  type Reply,
  addressKey,
  refused,
} from '@sharedos/contracts';
import { SPAN, withSpan } from '@sharedos/telemetry';
import { z } from 'zod';
import { mayRead } from './may-read.ts';
import type { Ports } from './ports.ts';

const PAGE = 200;
/** How long an answer spares the next question its own decision: a revoked grant reads on for no longer. */
const SESSION_MS = 30_000;

const Session = z.strictObject({ namespaceId: z.string(), principal: z.string(), authority: z.string(), until: z.number() });

/**
 * Hands out all records after a place, in order, with their links and heads; waits a while where there is none. Whoever asks
 * chooses when to ask again, so a slow reader costs nothing here, and goes on where it was after any interruption.
 *
 * Deciding about every page would make two records a page, which the reader would then be handed: for the length of a session
 * the decision stands.
 */
export const replayRecords =
  (ports: Ports) =>
  (asked: RecordsReplay, delivery: Delivery): Promise<Reply<RecordsPage>> =>
    withSpan(SPAN.recordsQuery, {}, async () => {
      const session = sessionOf(ports, asked, delivery) ?? (await newSession(ports, asked.authority, delivery));
      if (typeof session !== 'string') return session;
      const { after, headsAfter = 0, limit = PAGE } = asked;
      const deadline = performance.now() + (asked.waitMs ?? 0);
      let found: readonly ChainedRecord[] = [];
      for (;;) {
        if (ports.behind() !== undefined) return refused('records_unavailable', 'the read model is behind the records; try again', true);
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
          heldAfter: ports.records.heldAfter,
          session,
        },
      };
    });

/** The session that a question brought along, if a replica gave it to this reader and it has not ended. */
const sessionOf = ({ keys, clock }: Ports, { session, authority }: RecordsReplay, delivery: Delivery): string | undefined => {
  if (session === undefined || delivery.principal === undefined) return undefined;
  const claims = Session.safeParse(keys.claimsOf(session));
  if (!claims.success || clock() >= claims.data.until) return undefined;
  const { namespaceId, principal, authority: inNameOf } = claims.data;
  const isItsOwn = namespaceId === delivery.namespaceId && principal === addressKey(delivery.principal);
  return isItsOwn && (authority === undefined || addressKey(authority) === inNameOf) ? session : undefined;
};

const newSession = async (
  ports: Ports,
  authority: Address | undefined,
  delivery: Delivery,
): Promise<string | ReturnType<typeof refused>> => {
  const reader = await mayRead(ports, delivery, authority);
  if (!reader.ok) return reader as ReturnType<typeof refused>;
  return ports.keys.sessionOf({
    namespaceId: delivery.namespaceId,
    principal: addressKey(delivery.principal ?? reader.value),
    authority: addressKey(reader.value),
    until: ports.clock() + SESSION_MS,
  });
};
