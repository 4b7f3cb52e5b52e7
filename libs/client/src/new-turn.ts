import { randomUUID } from 'node:crypto';
import { type Address, type AgentAddress, type Json, type JsonObj, type TurnRequest, addressId, timestampOf } from '@sharedos/contracts';

/** One call of a script: a tool and its exact arguments. */
export interface ScriptedCall {
  readonly tool: string;
  readonly arguments: JsonObj;
}

export interface NewTurn {
  /** Who asks: whose grants the agent exercises. */
  readonly from: Address;
  readonly agent: string | AgentAddress;
  readonly purpose: string;
  /** What the agent is told. */
  readonly payload?: Json;
  /** Calls for an agent that runs a script; they become the `state` of the request. */
  readonly calls?: readonly ScriptedCall[];
  readonly executionId?: string;
  readonly traceId?: string;
  /** Whose resources are meant, when they are not the caller's own. */
  readonly owner?: Address;
  readonly tools?: readonly string[];
  readonly options?: TurnRequest['options'];
}

/** Fills in what a turn request repeats: ids, times and the message that starts the turn. */
export const newTurn = (turn: NewTurn): TurnRequest => {
  const at = timestampOf(Date.now());
  const agent: AgentAddress = typeof turn.agent === 'string' ? { kind: 'agent', agentId: turn.agent } : turn.agent;
  // Completing is a step of its own, so a script needs one more than it has calls.
  const steps = turn.calls === undefined ? {} : { maxSteps: turn.calls.length + 1 };
  const options = { ...steps, ...turn.options };
  return {
    version: '1',
    executionId: turn.executionId ?? randomUUID(),
    agent,
    message: {
      version: '1',
      id: randomUUID(),
      sender: turn.from,
      receiver: agent,
      purpose: turn.purpose,
      payload: turn.payload ?? `A turn for ${addressId(agent)}`,
      traceId: turn.traceId ?? randomUUID(),
      createdAt: at,
    },
    requestedAt: at,
    ...(turn.owner === undefined ? {} : { owner: turn.owner }),
    ...(turn.tools === undefined ? {} : { tools: [...turn.tools] }),
    ...(turn.calls === undefined ? {} : { state: { script: turn.calls.map((call) => ({ ...call })) } }),
    ...(Object.keys(options).length === 0 ? {} : { options }),
  };
};
