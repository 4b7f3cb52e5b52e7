import type { Delivery } from '@sharedos/bus';
import {
  ExecutionControl,
  ExecutionControlReply,
  type Reply,
  type TurnCancel,
  namespaceSubject,
  timestampOf,
  refused,
  sameAddress,
} from '@sharedos/contracts';
import { foldExecution, invariant } from '@sharedos/kernel';
import { mayAdministerTurns } from './administer-turns.ts';
import { queuedRequests } from './find-request.ts';
import { interruptTurn } from './interrupt-turn.ts';
import type { Ports } from './ports.ts';
import { executionKey, fingerprintOf } from './take-turn.ts';

const OWNER_ANSWER_MS = 2_000;

type CancelReply = Reply<{ outcome: 'cancelling' | 'cancelled' | 'ended' }>;

/**
 * Cancels one of the caller's turns, or, for whoever administers turns, one of the requester named. A running one is stopped by its owner, which writes the end. One that nobody has taken is
 * ended here, before anybody can: whoever takes it then finds its answer on record.
 */
export const cancelTurn =
  (ports: Ports) =>
  async ({ executionId, requester }: TurnCancel, delivery: Delivery): Promise<CancelReply> => {
    const { namespaceId, principal } = delivery;
    invariant(principal !== undefined, 'turns are cancelled by principals');
    if (requester !== undefined && !sameAddress(requester, principal)) {
      const right = await mayAdministerTurns(ports, { ...delivery, principal }, 'cancel', executionId);
      if (!right.ok) return right;
    }
    const from = { namespaceId, requester: requester ?? principal };
    const read = await ports.ledger.read(executionKey(from, executionId));
    if (!read.ok) return unavailable();
    const { state, claimed } = foldExecution(read.value?.records ?? []);
    if (state === 'ended' || state === 'expired') return { ok: true, value: { outcome: 'ended' } };
    if (state === 'absent' || claimed === undefined) return cancelUntaken(ports, executionId, from);

    const control = namespaceSubject('execution.control', namespaceId, claimed.ownerId);
    const body: ExecutionControl = { turnId: claimed.turnId, ask: 'cancel' };
    const answer = await ports.bus.request(control, ExecutionControl, body, ExecutionControlReply, { timeoutMs: OWNER_ANSWER_MS });
    const reached = answer.ok && answer.value.ok && answer.value.value.running;
    return reached
      ? { ok: true, value: { outcome: 'cancelling' } }
      : refused('turn_owner_unreachable', 'the process that runs the turn did not answer; it is interrupted when its lease ends', true);
  };

/** Claims the turn in the place of an executor and ends it at once. */
const cancelUntaken = async (ports: Ports, executionId: string, from: Parameters<typeof executionKey>[0]): Promise<CancelReply> => {
  const queued = await queuedRequests(ports, from);
  if (!queued.ok) return unavailable();
  const waiting = queued.value.find(({ accepted }) => accepted.request.executionId === executionId);
  if (waiting === undefined) return refused('turn_not_found', 'no turn of yours has this execution id');
  const key = executionKey(from, executionId);
  const { request, context, requester } = waiting.accepted;
  const claimed = await ports.ledger.claim(key, {
    type: 'claimed',
    at: timestampOf(ports.clock()),
    ownerId: ports.instance,
    turnId: ports.ids(),
    fingerprint: fingerprintOf(ports, waiting.accepted),
    requester,
    operationId: executionId,
    traceId: context.traceId,
    agent: request.agent,
    requestSequence: waiting.sequence,
  });
  if (!claimed.ok)
    return claimed.error.kind === 'exists' ? refused('turn_taken', 'the turn was taken this moment; cancel it again', true) : unavailable();
  const history = await ports.ledger.read(key);
  if (!history.ok || history.value === undefined) return unavailable();
  const ended = await interruptTurn(ports, key, history.value, waiting.accepted, 'cancel');
  return ended.ok ? { ok: true, value: { outcome: 'cancelled' } } : unavailable();
};

const unavailable = () => refused('ledger_unavailable', 'the ledger did not answer in time; try again', true);
