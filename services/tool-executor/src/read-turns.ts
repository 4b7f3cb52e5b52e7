import { type Delivery, latestHeaders } from '@sharedos/bus';
import {
  type ExecutionResult,
  type Reply,
  type TurnGet,
  type TurnList,
  TurnState,
  type TurnSummary,
  principalSubject,
  timestampOf,
  refused,
} from '@sharedos/contracts';
import { foldExecution, invariant } from '@sharedos/kernel';
import { queuedRequests } from './find-request.ts';
import type { Ports } from './ports.ts';
import { executionKey } from './take-turn.ts';
import { CODE_HEADER, type Requester, STATE_HEADER, codeOf } from './turn-answers.ts';

const PAGE = 50;
const READ_MS = 4_000;

const unavailable = () => refused('ledger_unavailable', 'the records did not answer in time; try again', true);

/** One turn of the caller, with its result once it has one. */
export const getTurn =
  (ports: Ports) =>
  async (
    { executionId }: TurnGet,
    { namespaceId, principal }: Delivery,
  ): Promise<Reply<{ summary: TurnSummary; result?: ExecutionResult | undefined }>> => {
    invariant(principal !== undefined, 'turns are read by principals');
    const from = { namespaceId, requester: principal };
    const read = await ports.ledger.read(executionKey(from, executionId));
    if (!read.ok) return unavailable();
    const { claimed, ended } = foldExecution(read.value?.records ?? []);
    if (claimed === undefined) return queuedTurn(ports, from, executionId);
    const facts = { executionId, agent: claimed.agent, traceId: claimed.traceId, at: claimed.at };
    if (ended === undefined) return { ok: true, value: { summary: { ...facts, state: 'running' } } };
    invariant('executionId' in ended.result, 'the end of a turn holds the result of a turn');
    const code = codeOf(ended.result);
    const summary = { ...facts, state: ended.result.status, ...(code === undefined ? {} : { code }) };
    return { ok: true, value: { summary, result: ended.result } };
  };

const queuedTurn = async (ports: Ports, from: Requester, executionId: string): Promise<Reply<{ summary: TurnSummary }>> => {
  const queued = await queuedRequests(ports, from);
  if (!queued.ok) return unavailable();
  const found = queued.value.find(({ accepted }) => accepted.request.executionId === executionId);
  if (found === undefined) return refused('turn_not_found', 'no turn of yours has this execution id');
  const { agent } = found.accepted.request;
  return { ok: true, value: { summary: { executionId, state: 'queued', agent, at: timestampOf(found.storedAt) } } };
};

/** The caller's turns as their answers tell it, newest first: what waits, what runs, what ended. */
export const listTurns =
  (ports: Ports) =>
  async ({ limit = PAGE, state }: TurnList, { namespaceId, principal }: Delivery): Promise<Reply<{ turns: TurnSummary[] }>> => {
    invariant(principal !== undefined, 'turns are read by principals');
    const from = { namespaceId, requester: principal };
    const latest = (verb: 'turn.event' | 'turn.result') =>
      latestHeaders(ports.bus, 'TURN_EVENTS', `${principalSubject(verb, namespaceId, principal)}.*`, { timeoutMs: READ_MS });
    const [queued, begun, ended] = await Promise.all([queuedRequests(ports, from), latest('turn.event'), latest('turn.result')]);
    if (!queued.ok || !begun.ok || !ended.ok) return unavailable();

    const turns = new Map<string, TurnSummary>();
    for (const { accepted, storedAt } of queued.value) {
      const { executionId, agent } = accepted.request;
      turns.set(executionId, { executionId, state: 'queued', agent, at: timestampOf(storedAt) });
    }
    for (const { rest, header, storedAt } of [...begun.value, ...ended.value]) {
      const [executionId] = rest;
      const told = TurnState.safeParse(header(STATE_HEADER));
      if (executionId === undefined || !told.success) continue;
      const code = header(CODE_HEADER);
      turns.set(executionId, {
        ...turns.get(executionId),
        executionId,
        state: told.data,
        at: timestampOf(storedAt),
        ...(code === undefined ? {} : { code }),
      });
    }
    const wanted = [...turns.values()].filter((turn) => state === undefined || turn.state === state);
    return { ok: true, value: { turns: wanted.sort((a, b) => ((a.at ?? '') < (b.at ?? '') ? 1 : -1)).slice(0, limit) } };
  };
