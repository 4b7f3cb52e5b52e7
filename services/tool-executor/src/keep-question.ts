import type { Bus } from '@sharedos/bus';
import { type AccessContext, EscalationOpen, EscalationOpenReply, instantOf, namespaceSubject, timestampOf } from '@sharedos/contracts';
import { escalationIdOf } from '@sharedos/kernel';

const ANSWER_MS = 10_000;
/** How long a question may be answered. */
const OPEN_MS = 7 * 86_400_000;

export type KeepQuestion = (context: AccessContext, reason: string, executionId: string) => Promise<boolean>;

/** Opens the item that a reviewer answers. The same question, asked again while it is open, is the same item. */
export const keepQuestion =
  (bus: Pick<Bus, 'request'>): KeepQuestion =>
  async ({ namespaceId, actor, owner, authority, purpose, traceId, now }, reason, executionId) => {
    const question = {
      id: escalationIdOf(namespaceId, { requester: actor, owner, authority, purpose, reason }),
      requester: actor,
      owner,
      authority,
      reviewer: owner,
      purpose,
      reason,
      traceId,
      executionId,
      requestedAt: now,
      expiresAt: timestampOf((instantOf(now) ?? 0) + OPEN_MS),
    };
    const subject = namespaceSubject('escalation.open', namespaceId);
    const kept = await bus.request(subject, EscalationOpen, { question }, EscalationOpenReply, { timeoutMs: ANSWER_MS });
    return kept.ok && kept.value.ok;
  };
