import { type Delivery, type LatestHeaders, latestHeaders } from '@sharedos/bus';
import {
  type AgentAddress,
  type Address,
  type Reply,
  type TurnList,
  TurnState,
  type TurnSummary,
  addressKey,
  canonicalJson,
  instantOf,
  namespaceSubject,
  principalSubject,
  refused,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';
import { foldExecution, invariant } from '@sharedos/kernel';
import { mayAdministerTurns } from './administer-turns.ts';
import { type Asked, queuedRequests } from './find-request.ts';
import type { Ports } from './ports.ts';
import { executionKey } from './take-turn.ts';
import { CODE_HEADER, STATE_HEADER, agentIn } from './turn-answers.ts';

const PAGE = 50;
const READ_MS = 4_000;
const AT_ONCE = 16;

/**
 * Turns as their answers tell it, newest first: what waits, what runs, what ended. The caller's own, or, for whoever administers
 * turns, those of another principal or of everybody.
 */
export const listTurns =
  (ports: Ports) =>
  async ({ limit = PAGE, state, requester, agent, since }: TurnList, delivery: Delivery): Promise<Reply<{ turns: TurnSummary[] }>> => {
    const { namespaceId, principal } = delivery;
    invariant(principal !== undefined, 'turns are read by principals');
    const isOwn = requester === undefined || (requester !== 'everyone' && sameAddress(requester, principal));
    if (!isOwn) {
      const about = requester === 'everyone' ? 'turns of everyone' : `turns of ${requester.kind}`;
      const right = await mayAdministerTurns(ports, { ...delivery, principal }, 'read', about);
      if (!right.ok) return right;
    }
    const asked: Asked = { namespaceId, requester: isOwn ? principal : requester === 'everyone' ? undefined : requester };
    const found = await turnsOf(ports, asked);
    if (found === undefined) return refused('ledger_unavailable', 'the records did not answer in time; try again', true);
    const from = since === undefined ? undefined : instantOf(since);
    const narrowed = found.filter(
      (turn) => (state === undefined || turn.state === state) && (from === undefined || (instantOf(turn.at ?? '') ?? 0) >= from),
    );
    const wanted = agent === undefined ? narrowed : await turnsOfAgent(ports, namespaceId, agent, narrowed);
    if (wanted === undefined) return refused('ledger_unavailable', 'the ledger did not answer in time; try again', true);
    const newest = wanted.sort((a, b) => ((a.at ?? '') < (b.at ?? '') ? 1 : -1)).slice(0, limit);
    // Who asked is known to whoever asks about its own.
    return { ok: true, value: { turns: isOwn ? newest.map(({ requester: _, ...turn }) => turn) : newest } };
  };

type Found = TurnSummary & { readonly requester: Address };

const turnsOf = async (ports: Ports, asked: Asked): Promise<Found[] | undefined> => {
  const latest = (verb: 'turn.event' | 'turn.result') =>
    latestHeaders(ports.bus, 'TURN_EVENTS', filterOf(verb, asked), { timeoutMs: READ_MS });
  const [queued, begun, ended] = await Promise.all([queuedRequests(ports, asked), latest('turn.event'), latest('turn.result')]);
  if (!queued.ok || !begun.ok || !ended.ok) return undefined;
  const turns = new Map<string, Found>();
  for (const { accepted, storedAt } of queued.value) {
    const { executionId, agent } = accepted.request;
    const { requester } = accepted;
    turns.set(nameOf(requester, executionId), { executionId, requester, state: 'queued', agent, at: timestampOf(storedAt) });
  }
  for (const told of [...begun.value, ...ended.value]) {
    const turn = toldTurn(told);
    if (turn === undefined) continue;
    const name = nameOf(turn.requester, turn.executionId);
    turns.set(name, { ...turns.get(name), ...turn });
  }
  return [...turns.values()];
};

const nameOf = (requester: Address, executionId: string): string => canonicalJson([addressKey(requester), executionId]);

const filterOf = (verb: 'turn.event' | 'turn.result', { namespaceId, requester }: Asked): string =>
  requester === undefined ? `${namespaceSubject(verb, namespaceId)}.*.*.*` : `${principalSubject(verb, namespaceId, requester)}.*`;

const toldTurn = ({ principal, rest, header, storedAt }: LatestHeaders): Found | undefined => {
  const [executionId] = rest;
  const told = TurnState.safeParse(header(STATE_HEADER));
  if (principal === undefined || executionId === undefined || !told.success) return undefined;
  const code = header(CODE_HEADER);
  const agent = agentIn(header);
  return {
    executionId,
    requester: principal,
    state: told.data,
    at: timestampOf(storedAt),
    ...(agent === undefined ? {} : { agent }),
    ...(code === undefined ? {} : { code }),
  };
};

/** Of these turns those of one agent. Where nothing that was told of a running one says so, its claim in the ledger does. */
const turnsOfAgent = async (
  { ledger }: Pick<Ports, 'ledger'>,
  namespaceId: string,
  agent: AgentAddress,
  turns: readonly Found[],
): Promise<Found[] | undefined> => {
  const told = turns.filter((turn) => turn.agent !== undefined || turn.state === 'running');
  const found: Found[] = [];
  for (let first = 0; first < told.length; first += AT_ONCE) {
    const some = await Promise.all(
      told.slice(first, first + AT_ONCE).map(async (turn) => {
        if (turn.agent !== undefined) return turn;
        const read = await ledger.read(executionKey({ namespaceId, requester: turn.requester }, turn.executionId));
        if (!read.ok) return undefined;
        const { claimed } = foldExecution(read.value?.records ?? []);
        return { ...turn, ...(claimed?.agent === undefined ? {} : { agent: claimed.agent }) };
      }),
    );
    for (const turn of some) {
      if (turn === undefined) return undefined;
      if (turn.agent !== undefined && sameAddress(turn.agent, agent)) found.push(turn);
    }
  }
  return found;
};
