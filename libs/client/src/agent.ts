import { answerRequests } from '@sharedos/bus';
import {
  type Json,
  type JsonObj,
  type RemoteDecision,
  type RemoteInput,
  type RemoteTurn,
  type Reply,
  type Result,
  RuntimeStep,
  RuntimeStepReply,
  STEP_ANSWER_BYTES_MAX,
  type StepAnswer,
  ok,
  principalSubject,
  refused,
} from '@sharedos/contracts';
import type { ClientError } from './client-error.ts';
import type { Session } from './session.ts';

/** One question of a turn, and the decisions there are. */
export interface AgentStep {
  readonly turn: RemoteTurn;
  /** The start, or the result of the call that was decided upon last. */
  readonly input: RemoteInput;
  /** Counts the questions of the turn from 0. */
  readonly number: number;
  /** Nobody waits for the decision after this, milliseconds since the epoch. */
  readonly deadline: number;
  /** What the agent kept with its last decision; another of its processes may have taken that. */
  readonly memory: JsonObj;
  /** Keeps `memory` for the next step. What is not kept anew stays as it was. */
  remember(memory: JsonObj): void;
  /** Decides upon one call; it is decided again, from these arguments, by the kernel. The id is by the step when absent. */
  call(tool: string, args: JsonObj, id?: string): RemoteDecision;
  complete(output: Json): RemoteDecision;
  escalate(reason: string): RemoteDecision;
  fail(code: string, message: string): RemoteDecision;
}

export type Decide = (step: AgentStep) => RemoteDecision | Promise<RemoteDecision>;

export interface AgentOptions {
  /** Steps decided at once, of different turns; 16 when absent. One more is turned away. */
  readonly stepsAtOnce?: number;
  /** Told of what `decide` threw. The executor hears only that this step has no answer, and the turn ends `driver_failed`. */
  readonly onError?: (error: unknown) => void;
}

export interface RunningAgent {
  /** Takes no further step, and finishes those begun. */
  stop(): Promise<void>;
}

const STEPS_AT_ONCE = 16;

/**
 * Decides the steps of this agent's turns until stopped. Several processes may: each step goes to one of them.
 *
 * @returns Once the broker lets steps through; `unavailable` where it does not, as for whoever is no agent.
 */
export const runAgent = async (session: Session, decide: Decide, options: AgentOptions = {}): Promise<Result<RunningAgent, ClientError>> =>
  answerRequests<RuntimeStep, StepAnswer>(session.bus, principalSubject('runtime.step', session.namespaceId, session.principal), {
    request: RuntimeStep,
    reply: RuntimeStepReply,
    concurrencyMax: options.stepsAtOnce ?? STEPS_AT_ONCE,
    handle: async (asked): Promise<Reply<StepAnswer>> => {
      let memory = asked.memory;
      const decision = await decide(stepOf(asked, (kept) => (memory = kept)));
      const { token, step } = asked;
      // The schema of decisions is the stricter one; a member left `undefined` is left away on the wire.
      const answer: StepAnswer = { token, step, decision: decision as unknown as Json, ...(memory === undefined ? {} : { memory }) };
      const bytes = Buffer.byteLength(JSON.stringify(answer));
      return bytes < STEP_ANSWER_BYTES_MAX
        ? ok(answer)
        : refused('request_too_large', `the answer is ${bytes} bytes, and less than ${STEP_ANSWER_BYTES_MAX} are taken`);
    },
    onDefect: (error) => options.onError?.(error),
  });

const stepOf = ({ turn, input, step, deadline, memory = {} }: RuntimeStep, remember: AgentStep['remember']): AgentStep => ({
  turn,
  input,
  number: step,
  deadline: Date.parse(deadline),
  memory,
  remember,
  call: (tool, args, id = `call-${step + 1}`) => ({ type: 'tool_call', call: { id, tool, arguments: args } }),
  complete: (output) => ({ type: 'complete', output }),
  escalate: (reason) => ({ type: 'escalate', reason }),
  fail: (code, message) => ({ type: 'fail', error: { code, message } }),
});
