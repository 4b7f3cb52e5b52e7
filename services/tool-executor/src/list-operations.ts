import type { Delivery } from '@sharedos/bus';
import {
  OPERATION_KINDS,
  type OperationList,
  type OperationState,
  type OperationSummary,
  type OperationsFound,
  type Reply,
  instantOf,
  sameAddress,
} from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';
import type { MarkedOperation } from '@sharedos/ledger';
import { mayAdminister } from './administer-turns.ts';
import { summaryOf } from './operation-views.ts';
import type { Ports } from './ports.ts';
import { ledgerUnavailable } from './show-operation.ts';

const PAGE = 50;
/** Operations whose records are read for one answer. */
const READ_MAX = 1_000;
const AT_ONCE = 16;
/** Unknown calls that are listed of one operation; all of them are shown with it. */
const UNKNOWN_MAX = 100;

/** What the last record of an operation can say of it, for each state that may be asked for. */
const MARKS: Readonly<Record<OperationState, readonly MarkedOperation['state'][]>> = {
  running: ['running'],
  ended: ['ended', 'perhaps_unknown', 'running'],
  unknown: ['perhaps_unknown'],
  expired: ['expired'],
};

/** Operations of the namespace, for whoever may read its ledger: above all those that left something unknown. */
export const listOperations =
  (ports: Ports) =>
  async ({ state, kind, requester, since, limit = PAGE }: OperationList, delivery: Delivery): Promise<Reply<OperationsFound>> => {
    const { namespaceId, principal } = delivery;
    invariant(principal !== undefined, 'the ledger is read by principals');
    const right = await mayAdminister(ports, { ...delivery, principal }, { area: 'ledger', action: 'read' }, 'operations');
    if (!right.ok) return right;
    const marked: MarkedOperation[] = [];
    let more = false;
    for (const one of kind === undefined ? OPERATION_KINDS : [kind]) {
      const listed = await ports.ledger.operations(namespaceId, one);
      if (!listed.ok) return ledgerUnavailable();
      marked.push(...listed.value.operations);
      more ||= !listed.value.complete;
    }
    const from = since === undefined ? undefined : instantOf(since);
    const candidates = marked
      .filter(({ at, state: mark }) => (from === undefined || at >= from) && (state === undefined || MARKS[state].includes(mark)))
      .toSorted((a, b) => b.at - a.at);
    const operations: OperationSummary[] = [];
    let read = 0;
    while (operations.length < limit && read < Math.min(candidates.length, READ_MAX)) {
      const some = candidates.slice(read, read + AT_ONCE);
      const found = await Promise.all(some.map((place) => ports.ledger.readAt(place)));
      for (const [index, history] of found.entries()) {
        if (operations.length >= limit) break;
        read += 1;
        if (!history.ok) return ledgerUnavailable();
        // Forgotten between the two.
        if (history.value === undefined) continue;
        const summary = summaryOf((some[index] as MarkedOperation).kind, history.value.records);
        const isWanted = state === undefined || summary.state === state;
        const isTheirs = requester === undefined || (summary.requester !== undefined && sameAddress(summary.requester, requester));
        if (isWanted && isTheirs) operations.push({ ...summary, unknownCalls: summary.unknownCalls.slice(0, UNKNOWN_MAX) });
      }
    }
    return { ok: true, value: { operations, more: more || read < candidates.length } };
  };
