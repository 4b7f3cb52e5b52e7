import Anthropic from '@anthropic-ai/sdk';
import { Stream } from '@anthropic-ai/sdk/streaming';
import { parseJsonText } from '@sharedos/contracts';
import { z } from 'zod';
import { SILENT_LOGGER, guardedFetch } from './guarded-fetch.ts';
import {
  type ConversationItem,
  type DeclaredTool,
  type ModelReply,
  type ModelWire,
  UnreadableReply,
  Unread,
  type WireOptions,
  isEventStream,
  providerWord,
  tokenCount,
} from './model-wire.ts';

const OUTPUT_TOKENS_MAX = 4_096;
/** What the provider says of a reply that had no room to end. */
const TRUNCATED = new Set<unknown>(['max_tokens', 'model_context_window_exceeded']);

/** Anthropic's Messages. @see spec/runtimes.md §4, held to the same rules as the other two */
export const messages = (options: WireOptions): ModelWire => {
  const client = new Anthropic({
    apiKey: 'given with each request',
    webhookKey: null,
    baseURL: options.baseUrl,
    maxRetries: 0,
    timeout: 600_000,
    fetch: guardedFetch,
    logLevel: 'off',
    logger: SILENT_LOGGER,
    // The spans of a question are ours; the client's own could hold what was said.
    openTelemetry: { traces: false, propagation: false },
  });
  const { model, maxOutputTokens = OUTPUT_TOKENS_MAX, temperature, stream = true } = options;
  const chosen = temperature === undefined ? {} : { temperature };
  return {
    name: 'messages',
    settings: { wire: 'messages', maxOutputTokens, ...chosen, stream },
    keyHeaders: (apiKey) => ({ 'x-api-key': apiKey }),
    send: ({ conversation, tools }, headers, signal) => {
      const system = conversation.flatMap((item) => (item.role === 'system' ? [item.text] : [])).join('\n\n');
      return client.messages
        .create(
          {
            model,
            max_tokens: maxOutputTokens,
            ...(system === '' ? {} : { system }),
            messages: turnsOf(conversation),
            ...(tools.length === 0 ? {} : { tools: tools.map(declared), tool_choice: { type: 'auto' as const } }),
            ...chosen,
            stream,
          },
          // Without headers of ours the client would send the key it was made with.
          { headers: { 'x-api-key': null, authorization: null, ...headers }, signal },
        )
        .asResponse();
    },
    read: async (response) =>
      isEventStream(response)
        ? readStream(Stream.fromSSEResponse<unknown>(response, new AbortController(), client))
        : replyOf(Message.parse(await response.json())),
  };
};

/** The provider wants the two sides in turns, and all results of one reply in the one answer to it. */
const turnsOf = (conversation: readonly ConversationItem[]): Anthropic.MessageParam[] => {
  const turns: { role: 'user' | 'assistant'; content: Anthropic.ContentBlockParam[] }[] = [];
  for (const item of conversation) {
    const content = blocksOf(item);
    if (content.length === 0) continue;
    const role = item.role === 'assistant' ? 'assistant' : 'user';
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...content);
    else turns.push({ role, content });
  }
  return turns;
};

const blocksOf = (item: ConversationItem): Anthropic.ContentBlockParam[] => {
  switch (item.role) {
    case 'system':
      return [];
    case 'user':
      return [{ type: 'text', text: item.text }];
    case 'tool':
      return [{ type: 'tool_result', tool_use_id: item.callId, content: item.text }];
    case 'assistant':
      return [
        ...(item.text === '' ? [] : [{ type: 'text' as const, text: item.text }]),
        ...item.calls.map(({ id, name, argumentsText }) => ({ type: 'tool_use' as const, id, name, input: inputOf(argumentsText) })),
      ];
  }
};

/** What was said is repeated to who said it. The provider takes an object alone, so a text that is none goes inside one. */
const inputOf = (argumentsText: string): object => {
  const parsed = parseJsonText(argumentsText);
  return parsed.ok && typeof parsed.value === 'object' && parsed.value !== null && !Array.isArray(parsed.value)
    ? parsed.value
    : { INVALID_JSON: argumentsText };
};

const declared = ({ name, description, inputSchema }: DeclaredTool): Anthropic.Tool => ({
  name,
  description,
  input_schema: inputSchema as unknown as Anthropic.Tool.InputSchema,
});

const Usage = z.object({ input_tokens: Unread, output_tokens: Unread }).partial().nullish();
const Block = z.looseObject({ type: z.string() });
const TextBlock = z.object({ text: z.string() });
const CallBlock = z.object({ id: z.string(), name: z.string(), input: Unread });
const Message = z.object({ model: Unread, content: z.array(Block), stop_reason: Unread, usage: Usage });

const replyOf = ({ model, content, stop_reason: stopReason, usage }: z.infer<typeof Message>): ModelReply => {
  if (typeof stopReason !== 'string') throw new UnreadableReply('the reply has no end');
  return {
    text: content
      .filter(({ type }) => type === 'text')
      .map((block) => TextBlock.parse(block).text)
      .join(''),
    calls: content
      .filter(({ type }) => type === 'tool_use')
      .map((block) => {
        const { id, name, input } = CallBlock.parse(block);
        return { id, name, argumentsText: input instanceof PartialInput ? input.text : JSON.stringify(input ?? null) };
      }),
    truncated: TRUNCATED.has(stopReason),
    model: providerWord(model),
    finishReason: providerWord(stopReason),
    inputTokens: tokenCount(usage?.input_tokens),
    outputTokens: tokenCount(usage?.output_tokens),
  };
};

/** The input of a streamed call: text that came in pieces and may not be JSON in the end. */
class PartialInput {
  text = '';
}

const Event = z.discriminatedUnion('type', [
  z.object({ type: z.literal('message_start'), message: z.object({ model: Unread, usage: Usage }) }),
  z.object({ type: z.literal('content_block_start'), index: z.int().min(0), content_block: Block }),
  z.object({ type: z.literal('content_block_delta'), index: z.int().min(0), delta: Block }),
  z.object({ type: z.literal('content_block_stop') }),
  z.object({ type: z.literal('message_delta'), delta: z.object({ stop_reason: Unread }), usage: Usage }),
  z.object({ type: z.literal('message_stop') }),
]);
const TextDelta = z.object({ type: z.literal('text_delta'), text: z.string() });
const InputDelta = z.object({ type: z.literal('input_json_delta'), partial_json: z.string() });

/** Puts the pieces together. A stream that ends before the message does is no reply. */
const readStream = async (events: AsyncIterable<unknown>): Promise<ModelReply> => {
  const blocks = new Map<number, z.infer<typeof Block>>();
  const message: { model?: unknown; stop_reason?: unknown; usage: Record<string, unknown> } = { usage: {} };
  let complete = false;
  for await (const raw of events) {
    const parsed = Event.safeParse(raw);
    // A kind of event that is not known yet is nothing that was said.
    if (!parsed.success) continue;
    const event = parsed.data;
    switch (event.type) {
      case 'message_start':
        message.model = event.message.model;
        Object.assign(message.usage, event.message.usage);
        break;
      case 'content_block_start':
        blocks.set(event.index, event.content_block);
        break;
      case 'content_block_delta':
        append(blocks.get(event.index), event.delta);
        break;
      case 'message_delta':
        message.stop_reason = event.delta.stop_reason;
        Object.assign(message.usage, event.usage);
        break;
      case 'message_stop':
        complete = true;
        break;
      case 'content_block_stop':
        break;
    }
  }
  if (!complete) throw new UnreadableReply('the stream ended before the reply did');
  return replyOf(Message.parse({ ...message, content: [...blocks].sort(([a], [b]) => a - b).map(([, block]) => block) }));
};

const append = (block: z.infer<typeof Block> | undefined, delta: z.infer<typeof Block>): void => {
  if (block === undefined) throw new UnreadableReply('a piece of nothing');
  const text = TextDelta.safeParse(delta);
  if (text.success) {
    const before = block['text'];
    block['text'] = (typeof before === 'string' ? before : '') + text.data.text;
    return;
  }
  const input = InputDelta.safeParse(delta);
  // A call without arguments has one empty piece or none, and its input is what it began with.
  if (!input.success || input.data.partial_json === '') return;
  const partial = block['input'] instanceof PartialInput ? block['input'] : new PartialInput();
  partial.text += input.data.partial_json;
  block['input'] = partial;
};
