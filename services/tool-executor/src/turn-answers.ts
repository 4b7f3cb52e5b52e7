import { type Bus, backoffMs, lastOnSubject, pause } from '@sharedos/bus';
import {
  type Address,
  AgentAddress,
  type EndedRecord,
  type ExecutionEvent,
  type ExecutionResult,
  type Revision,
  TurnEvent,
  TurnRefused,
  TurnResult,
  principalSubject,
} from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';

export const STATE_HEADER = 'sharedos-turn-state';
export const CODE_HEADER = 'sharedos-turn-code';
export const AGENT_HEADER = 'sharedos-turn-agent';

const PUBLISH_MS = 5_000;
const PUBLISH_DEADLINE_MS = 30_000;
const READ_MS = 2_000;

/** Who asked, and where the answers of its turns go: to that requester and nobody else. */
export interface Requester {
  readonly namespaceId: string;
  readonly requester: Address;
}

/**
 * Publishes the one answer of a turn, as stored, however often it is asked for. It is tried until the broker has it.
 *
 * @returns Whether the broker took it. If not, the request stays in the queue and is answered at its next delivery.
 */
export const publishResult = async (
  bus: Bus,
  { namespaceId, requester }: Requester,
  { result, revision }: Pick<EndedRecord, 'result' | 'revision'>,
  agent: AgentAddress,
): Promise<boolean> => {
  invariant('executionId' in result, 'the end of a turn holds the result of a turn');
  const body: TurnResult = { result, ...(revision === undefined ? {} : { revision }) };
  const code = codeOf(result);
  const headers = { [STATE_HEADER]: result.status, ...agentHeader(agent), ...(code === undefined ? {} : { [CODE_HEADER]: code }) };
  return stored(bus, principalSubject('turn.result', namespaceId, requester, result.executionId), { message: TurnResult, body }, headers);
};

/** Whether an answer of the turn is stored for its requester; `false` when that could not be found out. */
export const isAnswered = async (bus: Bus, { namespaceId, requester }: Requester, executionId: string): Promise<boolean> => {
  const last = await lastOnSubject(bus, 'TURN_EVENTS', principalSubject('turn.result', namespaceId, requester, executionId), {
    timeoutMs: READ_MS,
  });
  return last.ok && last.value !== undefined;
};

/** Tells the requester that its request never became a turn. `sequence` is the place it had in the queue. */
export const publishRefusal = (bus: Bus, { namespaceId, requester }: Requester, body: TurnRefused): Promise<boolean> =>
  stored(bus, principalSubject('turn.refused', namespaceId, requester, String(body.sequence)), { message: TurnRefused, body }, {});

/** Lets the requester watch. Not acknowledged: every event is in the result as well. */
export const publishEvent = (bus: Bus, { namespaceId, requester }: Requester, event: ExecutionEvent, agent: AgentAddress): void => {
  const subject = principalSubject('turn.event', namespaceId, requester, event.executionId);
  bus.publish(subject, TurnEvent, event, { headers: { [STATE_HEADER]: 'running', ...agentHeader(agent) } });
};

/** A header is no place for any text whatever, and not every id of an agent can be a token. */
const agentHeader = ({ agentId }: AgentAddress) => ({ [AGENT_HEADER]: Buffer.from(JSON.stringify(agentId)).toString('base64url') });

/** The agent of a turn, as its last message names it. */
export const agentIn = (header: (name: string) => string | undefined): AgentAddress | undefined => {
  const encoded = header(AGENT_HEADER);
  if (encoded === undefined) return undefined;
  try {
    const agent = AgentAddress.safeParse({ kind: 'agent', agentId: JSON.parse(Buffer.from(encoded, 'base64url').toString('utf8')) });
    return agent.success ? agent.data : undefined;
  } catch {
    return undefined;
  }
};

export const codeOf = (result: ExecutionResult): string | undefined => ('error' in result ? result.error?.code : undefined);

export const answerOf = (result: ExecutionResult, revision: Revision | undefined): Pick<EndedRecord, 'result' | 'revision'> =>
  revision === undefined ? { result } : { result, revision };

const stored = async (
  bus: Bus,
  subject: string,
  content: Parameters<Bus['publishStored']>[1],
  headers: Record<string, string>,
): Promise<boolean> => {
  const deadline = performance.now() + PUBLISH_DEADLINE_MS;
  for (let attempt = 0; performance.now() < deadline; attempt += 1) {
    const published = await bus.publishStored(subject, content, { timeoutMs: PUBLISH_MS, headers });
    if (published.ok) return true;
    await pause(backoffMs(attempt));
  }
  return false;
};
