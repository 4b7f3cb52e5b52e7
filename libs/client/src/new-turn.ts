import { randomUUID } from 'node:crypto';
import {
  type Address,
  type AgentAddress,
  type Json,
  type JsonObj,
  type TurnRequest,
  addressId,
  hashOf,
  timestampOf,
} from '@sharedos/contracts';

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
  /** When it is asked, a timestamp; now when absent. With `executionId` and all else the same, the request is the same. */
  readonly at?: string;
  /** Whose resources are meant, when they are not the caller's own. */
  readonly owner?: Address;
  readonly tools?: readonly string[];
  readonly options?: TurnRequest['options'];
}

/**
 * Fills in what a turn request repeats: ids, times and the message that starts the turn.
 *
 * Ids that are not given follow from who asks, the execution id and the time. So whoever gives both makes the same request again,
 * and the same request runs once.
 */
export const newTurn = (turn: NewTurn): TurnRequest => {
  const at = turn.at ?? timestampOf(Date.now());
  const executionId = turn.executionId ?? randomUUID();
  const idOf = (what: string): string => hashOf([what, turn.from, executionId, at]).slice(0, 32);
  const agent: AgentAddress = typeof turn.agent === 'string' ? { kind: 'agent', agentId: turn.agent } : turn.agent;
  // Completing is a step of its own, so a script needs one more than it has calls.
  const steps = turn.calls === undefined ? {} : { maxSteps: turn.calls.length + 1 };
  const options = { ...steps, ...turn.options };
  return {
    version: '1',
    executionId,
    agent,
    message: {
      version: '1',
      id: idOf('message'),
      sender: turn.from,
      receiver: agent,
      purpose: turn.purpose,
      payload: turn.payload ?? `A turn for ${addressId(agent)}`,
      traceId: turn.traceId ?? idOf('trace'),
      createdAt: at,
    },
    requestedAt: at,
    ...(turn.owner === undefined ? {} : { owner: turn.owner }),
    ...(turn.tools === undefined ? {} : { tools: [...turn.tools] }),
    ...(turn.calls === undefined ? {} : { state: { script: turn.calls.map((call) => ({ ...call })) } }),
    ...(Object.keys(options).length === 0 ? {} : { options }),
  };
};
