import {
  type Json,
  type JsonObj,
  JsonObj as JsonObject,
  type RuntimeExecutionRequest,
  type ToolResult,
  parseJsonText,
} from '@sharedos/contracts';
import { ATTRIBUTE, SPAN, SpanKind, recordOutcome, withSpan } from '@sharedos/telemetry';
import type { Driver, DriverDecision, DriverInput, DriverSession } from '../driver.ts';
import { ESCALATE_TOOL } from '../escalate-tool.ts';
import { escalationReason } from '../escalation-reason.ts';
import type { Timers } from '../timers.ts';
import { type AskedModel, askModel } from './ask-model.ts';
import type { ResolvedAuth } from './model-auth.ts';
import type { ConversationItem, ModelCall, ModelReply, ModelWire } from './model-wire.ts';
import { type Prompt, type PromptOptions, promptOf } from './prompt.ts';
import { type ToolNames, portableNames } from './tool-names.ts';

export interface ModelDriverOptions extends PromptOptions {
  readonly wire: ModelWire;
  readonly auth: ResolvedAuth;
  readonly provider: string;
  readonly model: string;
  readonly maxMalformedCalls: number;
  readonly timers: Timers;
}

/** What one turn may say to a model in all, in characters; more than any model takes. */
export const CONVERSATION_LENGTH_MAX = 16 * 1024 * 1024;
const ID_LENGTH_MAX = 256;

/**
 * A model in the driver's seat of the standard loop. It converts formats and nothing more: every call it hears of is passed on to be
 * decided, and every refusal goes back as an ordinary result.
 *
 * @see spec/runtimes.md §4
 */
export const modelDriver = (options: ModelDriverOptions): Driver => ({
  open: async (request) => new ModelSession(options, request),
});

class ModelSession implements DriverSession {
  readonly promptHash: string;
  readonly #options: ModelDriverOptions;
  readonly #names: ToolNames;
  /** Stamped on every call: when the turn was opened, and under which trace. */
  readonly #stamp: { readonly traceId: string; readonly requestedAt: string };
  readonly #conversation: ConversationItem[];
  readonly #told = new ToldByProvider();
  /** Calls of the last reply that were not released yet. The model is asked again only when there are none. */
  #waiting: readonly ModelCall[] = [];
  #malformed = 0;

  constructor(options: ModelDriverOptions, request: RuntimeExecutionRequest) {
    this.#options = options;
    this.#names = portableNames(request.tools);
    this.#stamp = { traceId: request.context.traceId, requestedAt: request.context.now };
    const { instructions, prompt, promptHash }: Prompt = promptOf(request, options);
    this.promptHash = promptHash;
    this.#conversation = [
      { role: 'system', text: instructions },
      { role: 'user', text: prompt },
    ];
  }

  async next(input: DriverInput, signal: AbortSignal): Promise<DriverDecision> {
    if (input.type === 'tool_result') this.#answer(input.result.callId, bodyOf(input.result));
    for (;;) {
      const [call, ...rest] = this.#waiting;
      this.#waiting = rest;
      const decision = call === undefined ? await this.#ask(signal) : this.#release(call);
      if (decision !== undefined) return decision;
    }
  }

  /** @returns Nothing when the reply has calls to release. */
  async #ask(signal: AbortSignal): Promise<DriverDecision | undefined> {
    const said = this.#conversation.reduce((length, item) => length + item.text.length, 0);
    if (said > CONVERSATION_LENGTH_MAX) return this.#fail('model_call_failed', NO_ANSWER, false);
    const { outcome } = await this.#question(signal);
    if (!outcome.ok) return this.#fail('model_call_failed', NO_ANSWER, outcome.error.transient);
    const reply = outcome.value;
    this.#told.add(reply);
    if (reply.truncated) return this.#fail('model_output_truncated', 'The model stopped at its limit and not at its end.');
    if (!reply.calls.every(isReadable)) return this.#fail('model_call_failed', NO_ANSWER, false);
    if (reply.calls.length === 0) return { type: 'complete', output: { text: reply.text }, metadata: this.#metadata() };
    this.#conversation.push({ role: 'assistant', text: reply.text, calls: reply.calls });
    this.#waiting = reply.calls;
    return undefined;
  }

  /** One request to the provider as one span: what was asked of whom and how large it was, and nothing of what was said. */
  #question(signal: AbortSignal): Promise<AskedModel> {
    const { wire, auth, provider, model, timers } = this.#options;
    const attributes = {
      [ATTRIBUTE.genAiOperationName]: 'chat',
      [ATTRIBUTE.genAiProviderName]: provider,
      [ATTRIBUTE.genAiRequestModel]: model,
    };
    return withSpan(`${SPAN.modelChat} ${model}`, { kind: SpanKind.CLIENT, attributes }, async (span) => {
      const question = { conversation: this.#conversation, tools: this.#names.declared };
      const asked = await askModel(wire, auth, question, timers, signal);
      const { outcome, resent } = asked;
      if (resent > 0) span.setAttribute(ATTRIBUTE.httpResendCount, resent);
      if (!outcome.ok) {
        if (outcome.error.status !== undefined) span.setAttribute(ATTRIBUTE.httpStatusCode, outcome.error.status);
        recordOutcome(span, 'failed', 'model_call_failed');
        return asked;
      }
      const { model: served, finishReason, inputTokens, outputTokens } = outcome.value;
      if (served !== undefined) span.setAttribute(ATTRIBUTE.genAiResponseModel, served);
      if (finishReason !== undefined) span.setAttribute(ATTRIBUTE.genAiFinishReasons, [finishReason]);
      if (inputTokens !== undefined) span.setAttribute(ATTRIBUTE.genAiInputTokens, inputTokens);
      if (outputTokens !== undefined) span.setAttribute(ATTRIBUTE.genAiOutputTokens, outputTokens);
      return asked;
    });
  }

  /** @returns Nothing when the call was answered here. */
  #release(call: ModelCall): DriverDecision | undefined {
    const parsed = parseJsonText(call.argumentsText);
    if (this.#names.names(call.name, ESCALATE_TOOL)) {
      // The turn ends with it, and so does what was queued behind: that would run ahead of the human answer.
      return { type: 'escalate', reason: escalationReason(parsed.ok ? parsed.value : undefined), metadata: this.#metadata() };
    }
    const given = JsonObject.safeParse(parsed.ok ? parsed.value : undefined);
    if (!given.success) return this.#refuseMalformed(call);
    const tool = this.#names.toolOf(call.name);
    return { type: 'tool_call', call: { id: call.id, tool, arguments: given.data, ...this.#stamp } };
  }

  /** Never replaced by `{}`: a call that runs with other arguments than were written is another call. */
  #refuseMalformed(call: ModelCall): DriverDecision | undefined {
    this.#malformed += 1;
    if (this.#malformed > this.#options.maxMalformedCalls) {
      return this.#fail('model_malformed_call_limit_exceeded', 'The model wrote too many calls that could not be read.');
    }
    this.#answer(call.id, {
      status: 'failed',
      error: { code: 'invalid_tool_arguments', message: 'The arguments are not a JSON object.' },
    });
    return undefined;
  }

  #answer(callId: string, body: Json): void {
    this.#conversation.push({ role: 'tool', callId, text: JSON.stringify(body) });
  }

  #fail(code: string, message: string, retryable?: boolean): DriverDecision {
    return {
      type: 'fail',
      error: { code, message, ...(retryable === undefined ? {} : { retryable }) },
      metadata: this.#metadata(),
    };
  }

  /** On every ending that the driver reports. */
  #metadata(): JsonObj {
    const { model, provider, auth, wire } = this.#options;
    return {
      model: this.#told.model ?? model,
      modelProvider: provider,
      requestedModel: model,
      malformedToolCalls: this.#malformed,
      ...this.#told.counts(),
      auth: auth.described,
      modelSettings: wire.settings,
    };
  }
}

/** A fixed sentence: what a provider or its client says may hold prompts and secrets. */
const NO_ANSWER = 'The model did not answer in a way that can be used.';

/** An id or a name that no call can carry. */
const isReadable = ({ id, name }: ModelCall): boolean =>
  [id, name].every((text) => text !== '' && text === text.trim() && text.length <= ID_LENGTH_MAX);

const bodyOf = (result: ToolResult): Json =>
  result.status === 'succeeded'
    ? { status: result.status, output: result.output }
    : { status: result.status, error: { code: result.error.code, message: result.error.message } };

/** What the provider said of itself over the turn. What it did not say stays absent: zero tokens would be a statement. */
class ToldByProvider {
  model: string | undefined;
  #finishReason: string | undefined;
  #inputTokens: number | undefined;
  #outputTokens: number | undefined;

  add({ model, finishReason, inputTokens, outputTokens }: ModelReply): void {
    this.model = model ?? this.model;
    this.#finishReason = finishReason;
    this.#inputTokens = sum(this.#inputTokens, inputTokens);
    this.#outputTokens = sum(this.#outputTokens, outputTokens);
  }

  counts(): JsonObj {
    return {
      ...(this.#finishReason === undefined ? {} : { finishReason: this.#finishReason }),
      ...(this.#inputTokens === undefined ? {} : { inputTokens: this.#inputTokens }),
      ...(this.#outputTokens === undefined ? {} : { outputTokens: this.#outputTokens }),
    };
  }
}

const sum = (before: number | undefined, more: number | undefined): number | undefined =>
  more === undefined ? before : (before ?? 0) + more;
