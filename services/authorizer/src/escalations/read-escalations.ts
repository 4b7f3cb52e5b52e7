import { type Delivery, withinOneAnswer } from '@sharedos/bus';
import {
  type EscalationAt,
  type EscalationList,
  type EscalationShow,
  type EscalationsAt,
  type Reply,
  instantOf,
  refused,
} from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';
import type { Ports } from '../ports.ts';
import { atLeast } from '../turns/up-to-date.ts';
import { type Known, concerns, itemOf } from './question.ts';
import type { ReviewRight } from './review-right.ts';

const PAGE = 50;

/** The questions that concern the caller, and those that it may answer for somebody, newest first. */
export const listEscalations =
  (ports: Ports, mayReview: ReviewRight) =>
  async ({ status, limit = PAGE }: EscalationList, { namespaceId, principal }: Delivery): Promise<Reply<EscalationsAt>> => {
    invariant(principal !== undefined, 'questions are read by principals');
    const here = await atLeast(ports, undefined);
    if (!here.ok) return here;
    const now = ports.clock();
    const reviews = mayReview(here.value, namespaceId, principal);
    const newest = ports.fold.namespaces.escalationsAt(namespaceId, here.value.position).toSorted(byNewest);
    const items = [];
    for (const state of newest) {
      const item = itemOf(state, now);
      if (status !== undefined && item.status !== status) continue;
      if (concerns(state.question, principal) || (await reviews(state.question))) items.push(item);
      if (items.length >= limit) break;
    }
    return { ok: true, value: { escalations: [...withinOneAnswer(items)], revision: here.value.revision } };
  };

/** One question; to others than those it concerns, or who may answer it, it is not there. */
export const showEscalation =
  (ports: Ports, mayReview: ReviewRight) =>
  async ({ escalationId }: EscalationShow, { namespaceId, principal }: Delivery): Promise<Reply<EscalationAt>> => {
    invariant(principal !== undefined, 'questions are read by principals');
    const here = await atLeast(ports, undefined);
    if (!here.ok) return here;
    const state = ports.fold.namespaces.escalationAt(namespaceId, escalationId, here.value.position);
    const isThere =
      state.status !== 'absent' &&
      (concerns(state.question, principal) || (await mayReview(here.value, namespaceId, principal)(state.question)));
    if (!isThere) return refused('escalation_not_found', 'there is no such question for you in this namespace');
    return { ok: true, value: { escalation: itemOf(state, ports.clock()), revision: here.value.revision } };
  };

const byNewest = (one: Known, other: Known): number => askedAt(other) - askedAt(one);
const askedAt = ({ question }: Known): number => instantOf(question.requestedAt) ?? 0;
