import { type Delivery, withinOneAnswer } from '@sharedos/bus';
import {
  type AccessContext,
  type Address,
  type AuditRecord,
  type RecordsQuery,
  type Reply,
  sameAddress,
  timestampOf,
  refused,
} from '@sharedos/contracts';
import { adminRefused, invariant } from '@sharedos/kernel';
import { SPAN, withSpan } from '@sharedos/telemetry';
import type { Ports } from './ports.ts';

const PAGE = 100;
const VALID_FOR_MS = 30_000;
const CATCH_UP_MS = 3_000;
const LOOK_AGAIN_MS = 5;

/** What reading the records is for; a grant that names purposes must name this one. */
export const AUDIT_PURPOSE = 'sharedos.audit';

type QueryReply = Reply<{ records: AuditRecord[]; next?: number | undefined; upTo: number }>;

/**
 * Answers a question about the records of the caller's namespace, if a root principal of that namespace granted it `read` on
 * `sharedos` / `["audit"]`. The decision is recorded like any other, and everything recorded before the question is in the answer.
 */
export const queryRecords =
  (ports: Ports) =>
  async (query: RecordsQuery, { namespaceId, principal, traceId, verb }: Delivery): Promise<QueryReply> => {
    invariant(principal !== undefined, 'records are read by principals');
    const root = rootOf(ports, namespaceId, query.authority);
    if (root === undefined) {
      const act = { id: ports.ids(), at: ports.clock(), namespaceId, principal, traceId: traceId ?? ports.ids(), command: verb };
      await ports.audit(adminRefused(act, 'not_a_root'));
      return refused('not_a_root', 'records are granted by a root principal of the namespace, and this is none');
    }
    return withSpan(SPAN.recordsQuery, {}, async () => {
      const now = timestampOf(ports.clock());
      const context: AccessContext = {
        namespaceId,
        actor: principal,
        authority: root,
        owner: root,
        purpose: AUDIT_PURPOSE,
        traceId: traceId ?? ports.ids(),
        enabledToolNamespaces: [],
        now,
      };
      const denied = await mayRead(ports, context);
      if (denied !== undefined) return denied;
      const upTo = await caughtUp(ports);
      if (upTo === undefined) return refused('records_unavailable', 'the read model is behind the records; try again', true);
      const { limit = PAGE, after = 0 } = query;
      const page = ports.records.query(namespaceId, query, { after, limit });
      const records = withinOneAnswer(page.records);
      const next = records.length < page.records.length ? records.at(-1)?.sequence : page.next;
      return { ok: true, value: { records: [...records], upTo, ...(next === undefined ? {} : { next }) } };
    });
  };

/** Anybody may issue grants over resources called `sharedos`; only those of the namespace's roots open its records. */
const rootOf = ({ roots }: Ports, namespaceId: string, authority: Address | undefined): Address | undefined => {
  const known = Object.hasOwn(roots, namespaceId) ? (roots[namespaceId] ?? []) : [];
  return authority === undefined ? known[0] : known.find((root) => sameAddress(root, authority));
};

/** Reading spends nothing: a grant bounded in uses is asked whether one is left. */
const mayRead = async ({ authority, ids, audit }: Ports, context: AccessContext): Promise<QueryReply | undefined> => {
  const opened = await authority.open({ turnId: ids(), context, validForMs: VALID_FOR_MS, auditId: ids() });
  if (!opened.ok) return refused(opened.error.code, 'it could not be found out whether you may read the records', true);
  const request = { resource: { namespace: 'sharedos', path: ['audit'], owner: context.owner }, action: 'read' };
  const verdict = await authority.decide(opened.value.token, context, { kind: 'authorize', request, consume: false }, [ids(), ids()]);
  if (!verdict.ok) return refused(verdict.error.code, 'it could not be found out whether you may read the records', true);
  for (const event of verdict.value.audit) {
    if (!(await audit(event)).ok) return refused('audit_unavailable', 'the decision could not be recorded', true);
  }
  return verdict.value.status === 'allowed' ? undefined : refused(verdict.value.code, 'you may not read the records of this namespace');
};

/** Waits until the read model has seen the record that is the last one now. */
const caughtUp = async ({ head: lastOne, records, behind }: Ports): Promise<number | undefined> => {
  const head = await lastOne();
  if (!head.ok) return undefined;
  const deadline = performance.now() + CATCH_UP_MS;
  while (records.position < head.value) {
    if (performance.now() > deadline || behind() !== undefined) return undefined;
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
  return head.value;
};
