import type { QueuedDelivery } from '@sharedos/bus';
import { ExecutionControl, ExecutionControlReply, namespaceSubject } from '@sharedos/contracts';
import { foldExecution, replayAnswer } from '@sharedos/kernel';
import type { OperationHistory, OperationKey } from '@sharedos/ledger';
import type { AcceptedRequest } from './accept-request.ts';
import { interruptTurn } from './interrupt-turn.ts';
import type { Ports } from './ports.ts';
import { answerRecipient } from './recipient-turn.ts';
import { ASK_AGAIN_MS, acknowledge, refuseRequest } from './refuse-request.ts';
import { releaseReserved } from './reserved-uses.ts';
import { type Requester, isAnswered, publishResult } from './turn-answers.ts';

const OWNER_ANSWER_MS = 2_000;

const CONFLICT = { code: 'replay_conflict', message: 'this execution id was used for another request', retryable: false };
const EXPIRED = {
  code: 'replay_expired',
  message: 'a turn of this execution id ended so long ago that its answer is gone',
  retryable: false,
};

/** Answers a request that the ledger knows. */
export const replayTurn = async (
  ports: Ports,
  delivery: QueuedDelivery,
  from: Requester,
  accepted: AcceptedRequest,
  key: OperationKey,
  fingerprint: string,
  history: OperationHistory,
): Promise<void> => {
  const state = foldExecution(history.records);
  const replayed = replayAnswer(state, { fingerprint, requestSequence: delivery.sequence });
  switch (replayed.answer) {
    case 'stored':
      // Delivered again, and not asked again: whoever ended the turn has answered, unless it died before that.
      if (state.claimed?.requestSequence === delivery.sequence) {
        const answered =
          (await isAnswered(ports.bus, from, accepted.request.executionId)) ||
          (await publishResult(ports.bus, from, replayed.ended, accepted.request.agent));
        // It may also have died before it gave back what the turn never used.
        return answered &&
          (await answerRecipient(ports, from, accepted, replayed.ended.result)) &&
          (await releaseReserved(ports, from.namespaceId, history.records))
          ? acknowledge(delivery)
          : delivery.nak(ASK_AGAIN_MS);
      }
      return (await publishResult(ports.bus, from, replayed.ended, accepted.request.agent))
        ? acknowledge(delivery)
        : delivery.nak(ASK_AGAIN_MS);
    case 'conflict':
    case 'expired':
      return refuseRequest(ports, delivery, from, {
        executionId: accepted.request.executionId,
        context: accepted.context,
        error: replayed.answer === 'conflict' ? CONFLICT : EXPIRED,
      });
    case 'duplicate_while_running':
      return acknowledge(delivery);
    case 'redelivery_of_running': {
      if (await ownerLives(ports, from.namespaceId, replayed.claimed)) return delivery.nak(ASK_AGAIN_MS);
      const interrupted = await interruptTurn(ports, key, history, accepted, 'recovery');
      // Somebody wrote in between, or the ledger takes nothing: what stands is read again, and not as fast as it can be.
      if (!interrupted.ok) return delivery.nak(ASK_AGAIN_MS);
      const ended = [...history.records, interrupted.value];
      return (await publishResult(ports.bus, from, interrupted.value, accepted.request.agent)) &&
        (await releaseReserved(ports, from.namespaceId, ended))
        ? acknowledge(delivery)
        : delivery.nak(ASK_AGAIN_MS);
    }
    case 'run':
      return delivery.nak(ASK_AGAIN_MS);
  }
};

/** Safety is the fence and not this answer: an owner that only seemed dead finds its next write refused. */
const ownerLives = async (
  { bus, running, instance }: Ports,
  namespaceId: string,
  { ownerId, turnId }: { ownerId: string; turnId: string },
): Promise<boolean> => {
  if (ownerId === instance) return running.has(turnId);
  const subject = namespaceSubject('execution.control', namespaceId, ownerId);
  const answer = await bus.request(subject, ExecutionControl, { turnId, ask: 'alive' }, ExecutionControlReply, {
    timeoutMs: OWNER_ANSWER_MS,
  });
  return answer.ok && answer.value.ok && answer.value.value.running;
};
