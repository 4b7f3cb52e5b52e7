import type { Delivery } from '@sharedos/bus';
import {
  type ExecutionResult,
  type Reply,
  type TimelineEntry,
  type TurnGet,
  type TurnSummary,
  timestampOf,
  refused,
} from '@sharedos/contracts';
import { answerAsResolved, foldExecution, invariant } from '@sharedos/kernel';
import { queuedRequests } from './find-request.ts';
import { timelineOf } from './operation-views.ts';
import type { Ports } from './ports.ts';
import { executionKey } from './take-turn.ts';
import { type Requester, codeOf } from './turn-answers.ts';

const unavailable = () => refused('ledger_unavailable', 'the records did not answer in time; try again', true);

/** One turn of the caller, with what was recorded of it, and its result once it has one. */
export const getTurn =
  (ports: Ports) =>
  async (
    { executionId }: TurnGet,
    { namespaceId, principal }: Delivery,
  ): Promise<Reply<{ summary: TurnSummary; result?: ExecutionResult | undefined; timeline?: TimelineEntry[] }>> => {
    invariant(principal !== undefined, 'turns are read by principals');
    const from = { namespaceId, requester: principal };
    const read = await ports.ledger.read(executionKey(from, executionId));
    if (!read.ok) return unavailable();
    const { state, claimed, ended, resolved } = foldExecution(read.value?.records ?? []);
    if (state === 'expired') return refused('replay_expired', 'the turn ended so long ago that its answer is gone');
    if (claimed === undefined) return queuedTurn(ports, from, executionId);
    const facts = { executionId, agent: claimed.agent, traceId: claimed.traceId, at: claimed.at };
    const timeline = timelineOf(read.value?.records ?? []);
    if (ended === undefined) return { ok: true, value: { summary: { ...facts, state: 'running' }, timeline } };
    const { result } = resolved === undefined ? ended : answerAsResolved(ended, resolved);
    invariant('executionId' in result, 'the end of a turn holds the result of a turn');
    const code = codeOf(result);
    const summary = { ...facts, state: result.status, ...(code === undefined ? {} : { code }) };
    return { ok: true, value: { summary, result, timeline } };
  };

const queuedTurn = async (ports: Ports, from: Requester, executionId: string): Promise<Reply<{ summary: TurnSummary }>> => {
  const queued = await queuedRequests(ports, from);
  if (!queued.ok) return unavailable();
  const found = queued.value.find(({ accepted }) => accepted.request.executionId === executionId);
  if (found === undefined) return refused('turn_not_found', 'no turn of yours has this execution id');
  const { agent } = found.accepted.request;
  return { ok: true, value: { summary: { executionId, state: 'queued', agent, at: timestampOf(found.storedAt) } } };
};
