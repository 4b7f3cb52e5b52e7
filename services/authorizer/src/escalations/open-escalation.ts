import type { Delivery } from '@sharedos/bus';
import {
  type EscalationOpen,
  type EscalationQuestion,
  type Reply,
  type Revision,
  canonicalJson,
  instantOf,
  refused,
  revisionOf,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';
import type { Ports } from '../ports.ts';
import { runStreamCommand } from '../changes/stream-command.ts';
import { questionStream } from './question.ts';
import type { Tidings } from './tidings.ts';

/** How long a question may be answered that says nothing of it. */
const QUESTION_LASTS_MS = 7 * 86_400_000;

/** Questions that one asker may have open: an agent that asks without end is not to bury the others’. */
export const OPEN_QUESTIONS_MAX = 100;

/** Keeps a question that a turn ends on. It is in the log before the turn is told as escalated; asked again while open, it is one. */
export const openEscalation =
  ({ store, fold, clock, questionLastsMs = QUESTION_LASTS_MS }: Ports, tidings: Tidings) =>
  async (
    { question: asked }: EscalationOpen,
    delivery: Delivery,
  ): Promise<Reply<{ readonly escalationId: string; readonly revision: Revision }>> => {
    const { namespaceId } = delivery;
    const question = withEnd(asked, questionLastsMs);
    const open = fold.namespaces.escalationsAt(namespaceId, fold.position).filter(({ status }) => status === 'open');
    const isThere = open.some(({ question: { id } }) => id === question.id);
    const ofAsker = open.filter(({ question: { requester } }) => sameAddress(requester, question.requester));
    if (!isThere && ofAsker.length >= OPEN_QUESTIONS_MAX)
      return refused('too_many_questions', `whoever asks has ${OPEN_QUESTIONS_MAX} questions open`);
    const commandId = question.executionId ?? question.traceId;
    const commander = { commandId, principal: question.requester, at: clock() };
    // One turn may ask about several of its calls, and about one of them again once it was answered.
    const named = canonicalJson([commandId, question.id, question.call?.id ?? null]);
    const command = { type: 'OpenEscalation', question } as const;
    const ran = await runStreamCommand(store, delivery, commander, { ...questionStream(namespaceId, question.id), named }, command);
    if (!ran.ok) return refused('log_unavailable', 'the question could not be kept; ask again', true);
    const { acts, position } = ran.value;
    if (acts.length > 0) tidings.opened(namespaceId, question);
    return { ok: true, value: { escalationId: question.id, revision: revisionOf(store.storeId, position) } };
  };

const withEnd = (question: EscalationQuestion, lastsMs: number): EscalationQuestion =>
  question.expiresAt !== undefined ? question : { ...question, expiresAt: timestampOf((instantOf(question.requestedAt) ?? 0) + lastsMs) };
