import { randomBytes } from 'node:crypto';
import {
  type Address,
  type Instant,
  type JsonObj,
  RemoteDecision,
  type RemoteTurn,
  type Reply,
  type Result,
  type RuntimeExecutionRequest,
  type RuntimeStep,
  type StepAnswer,
  type Unavailable,
  addressPath,
  timestampOf,
} from '@sharedos/contracts';
import { publishToolDefinition, toolCatalogHash } from '@sharedos/kernel';
import { ATTRIBUTE, SPAN, SpanKind, withSpan } from '@sharedos/telemetry';
import type { Driver, DriverDecision, DriverInput, DriverSession } from '../driver.ts';
import { type SessionClaims, mintSessionToken, verifySessionToken } from '../mcp/session-token.ts';

/** Puts one step to an agent and waits for its one answer, at most `timeoutMs`. `unavailable` for everything but an answer. */
export type AskAgent = (
  agent: { readonly namespaceId: string; readonly principal: Address },
  step: RuntimeStep,
  timeoutMs: number,
) => Promise<Result<Reply<StepAnswer>, Unavailable>>;

export interface RemoteDriverOptions {
  readonly ask: AskAgent;
  readonly clock: () => Instant;
  /** How long one step may take, in milliseconds. */
  readonly stepTimeoutMs: number;
}

/** An agent elsewhere gave no answer to the step it was asked. `reason` is for operators and holds nothing of what was sent. */
export class RemoteAgentFailure extends Error {
  override readonly name = 'RemoteAgentFailure';
  readonly reason: string;

  constructor(reason: string) {
    super(`the agent gave no answer: ${reason}`);
    this.reason = reason;
  }
}

const KEY_BYTES = 32;

/**
 * An agent in another process in the driver's seat of the standard loop. It sees of a turn what a runtime may see, its tools without
 * what they require; what it decides goes the way of every decision.
 */
export const remoteDriver = (options: RemoteDriverOptions): Driver => ({
  open: async (request) => new RemoteSession(options, request),
});

class RemoteSession implements DriverSession {
  readonly #options: RemoteDriverOptions;
  readonly #turn: RemoteTurn;
  readonly #session: Omit<SessionClaims, 'expiresAt'>;
  /** Of this turn alone, so a token of another turn, or of another process's, is none here. */
  readonly #key = randomBytes(KEY_BYTES);
  #step = 0;
  #memory: JsonObj | undefined;

  constructor(options: RemoteDriverOptions, request: RuntimeExecutionRequest) {
    this.#options = options;
    const { tools: definitions, ...visible } = request;
    const tools = definitions.map(publishToolDefinition);
    const catalogHash = toolCatalogHash(tools);
    this.#turn = { ...visible, tools, catalogHash };
    this.#session = {
      executionId: request.executionId,
      namespaceId: request.context.namespaceId,
      actor: addressPath(request.agent).join(':'),
      catalogHash,
    };
  }

  async next(input: DriverInput): Promise<DriverDecision> {
    const { clock, stepTimeoutMs } = this.#options;
    const deadline = timestampOf(clock() + stepTimeoutMs);
    const step: RuntimeStep = {
      token: mintSessionToken({ ...this.#session, expiresAt: deadline }, this.#key),
      step: this.#step,
      deadline,
      turn: this.#turn,
      input,
      ...(this.#memory === undefined ? {} : { memory: this.#memory }),
    };
    const answer = await this.#ask(step);
    this.#step += 1;
    this.#memory = answer.memory;
    const decision = RemoteDecision.safeParse(answer.decision);
    // The loop knows what becomes of a decision that is none.
    if (!decision.success) return NO_DECISION;
    if (decision.data.type !== 'tool_call') return decision.data;
    const { traceId, now } = this.#turn.context;
    return { ...decision.data, call: { ...decision.data.call, traceId, requestedAt: now } };
  }

  /** @returns What was answered to exactly this step, in time. Throws {@link RemoteAgentFailure} for everything else. */
  async #ask(step: RuntimeStep): Promise<StepAnswer> {
    const { ask, clock, stepTimeoutMs } = this.#options;
    const { agent, context } = this.#turn;
    const attributes = { [ATTRIBUTE.executionId]: this.#turn.executionId, [ATTRIBUTE.genAiAgentId]: agent.agentId };
    const asked = await withSpan(SPAN.runtimeStep, { kind: SpanKind.CLIENT, attributes }, () =>
      ask({ namespaceId: context.namespaceId, principal: agent }, step, stepTimeoutMs),
    );
    if (!asked.ok) throw new RemoteAgentFailure(asked.error.reason);
    if (!asked.value.ok) throw new RemoteAgentFailure(`it refused the step with ${asked.value.error.code}`);
    const answer = asked.value.value;
    const verified = verifySessionToken(answer.token, { key: this.#key, now: clock(), expected: this.#session });
    if (!verified.ok) throw new RemoteAgentFailure(`the token of its answer is ${verified.error}`);
    if (answer.step !== step.step) throw new RemoteAgentFailure('it answered another step');
    return answer;
  }
}

const NO_DECISION = { type: 'none' } as unknown as DriverDecision;
