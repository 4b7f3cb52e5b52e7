import { type Address, type EscalationQuestion, addressPath, canonicalJson, timestampOf } from '@sharedos/contracts';
import { decideWith } from '@sharedos/kernel';
import type { Ports } from '../ports.ts';
import type { TurnAuthorities } from '../turns/turn-authorities.ts';
import type { UpToDate } from '../turns/up-to-date.ts';

/** What a grant is over that registers a reviewer: all questions about what its issuer owns, or those of one asker below it. */
export const REVIEW = { namespace: 'sharedos', path: ['escalation'], action: 'review' } as const;

export type ReviewRight = (here: UpToDate, namespaceId: string, principal: Address) => (question: EscalationQuestion) => Promise<boolean>;

/**
 * Whether somebody may answer a question in its owner's place: it holds a grant of that owner to review, for the purpose of the
 * question where the grant names any. A bounded grant registers nobody: no ledger stands behind an answer that its uses could be
 * taken in.
 */
export const reviewRight =
  ({ fold, clock }: Pick<Ports, 'fold' | 'clock'>, turns: TurnAuthorities): ReviewRight =>
  ({ position, revision }, namespaceId, principal) => {
    const at = Math.max(clock(), fold.index.latestInstant(position));
    // Whoever reads very many questions asks the same of few owners.
    const answers = new Map<string, Promise<boolean>>();
    const decide = async ({ owner, purpose, requester, traceId }: EscalationQuestion): Promise<boolean> => {
      const context = { namespaceId, actor: principal, authority: owner, owner, purpose, traceId, enabledToolNamespaces: [] };
      const { authority, held } = turns.frozen(revision, position, at, { ...context, now: timestampOf(at) });
      if (!authority.ok || authority.value.held.grants.length === 0) return false;
      const resource = { namespace: REVIEW.namespace, path: [...REVIEW.path, ...addressPath(requester)], owner };
      const rule = authority.value.decide(
        { resource, action: REVIEW.action },
        { now: at, consume: true, mode: 'execute', ceiling: held.ceiling },
      );
      return (await decideWith(rule, turns.ancestorsAt(position, at))).decision.allowed;
    };
    return (question) => {
      const { owner, purpose, requester } = question;
      const key = canonicalJson([owner, purpose, requester]);
      const known = answers.get(key) ?? decide(question);
      answers.set(key, known);
      return known;
    };
  };
