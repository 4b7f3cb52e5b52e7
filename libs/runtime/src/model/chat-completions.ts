import OpenAI from 'openai';
import { Stream } from 'openai/streaming';
import { z } from 'zod';
import { SILENT_LOGGER, guardedFetch } from './guarded-fetch.ts';
import {
  type ConversationItem,
  type DeclaredTool,
  type ModelCall,
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

/** The providers' own client, without its environment, its retries and its logs. Each request brings its own headers. */
export const openAiClient = (baseUrl: string): OpenAI =>
  new OpenAI({
    apiKey: 'given with each request',
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    baseURL: baseUrl,
    maxRetries: 0,
    timeout: 600_000,
    fetch: guardedFetch,
    logLevel: 'off',
    logger: SILENT_LOGGER,
  });

/** Without an `authorization` of ours the client would send the one it was made with. */
export const onlyGiven = (headers: Readonly<Record<string, string>>): Record<string, string | null> => ({
  authorization: null,
  ...headers,
});

export const bearerKey = (apiKey: string): Readonly<Record<string, string>> => ({ authorization: `Bearer ${apiKey}` });

/** OpenAI-compatible Chat Completions. @see spec/runtimes.md §4 */
export const chatCompletions = (options: WireOptions): ModelWire => {
  const client = openAiClient(options.baseUrl);
  const { model, maxOutputTokens = OUTPUT_TOKENS_MAX, temperature = 0, stream = false } = options;
  return {
    name: 'chat-completions',
    settings: { wire: 'chat-completions', maxOutputTokens, temperature, stream },
    keyHeaders: bearerKey,
    send: ({ conversation, tools }, headers, signal) =>
      client.chat.completions
        .create(
          {
            model,
            messages: conversation.map(messageOf),
            ...(tools.length === 0 ? {} : { tools: tools.map(declared), tool_choice: 'auto' as const }),
            max_tokens: maxOutputTokens,
            temperature,
            ...(stream ? { stream: true as const, stream_options: { include_usage: true } } : {}),
          },
          { headers: onlyGiven(headers), signal },
        )
        .asResponse(),
    read: async (response) =>
      isEventStream(response)
        ? readStream(Stream.fromSSEResponse<unknown>(response, new AbortController(), client))
        : replyOf(Completion.parse(await response.json())),
  };
};

const messageOf = (item: ConversationItem): OpenAI.Chat.ChatCompletionMessageParam => {
  switch (item.role) {
    case 'system':
    case 'user':
      return { role: item.role, content: item.text };
    case 'tool':
      return { role: 'tool', tool_call_id: item.callId, content: item.text };
    case 'assistant':
      return {
        role: 'assistant',
        content: item.text === '' ? null : item.text,
        ...(item.calls.length === 0
          ? {}
          : {
              tool_calls: item.calls.map(({ id, name, argumentsText }) => ({
                id,
                type: 'function' as const,
                function: { name, arguments: argumentsText },
              })),
            }),
      };
  }
};

const declared = ({ name, description, inputSchema }: DeclaredTool): OpenAI.Chat.ChatCompletionTool => ({
  type: 'function',
  function: { name, description, parameters: inputSchema },
});

const Usage = z.object({ prompt_tokens: Unread, completion_tokens: Unread }).partial().nullish();
const Completion = z.object({
  model: Unread,
  choices: z
    .array(
      z.object({
        finish_reason: Unread,
        message: z.object({
          content: z.string().nullish(),
          tool_calls: z.array(z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) })).nullish(),
        }),
      }),
    )
    .min(1),
  usage: Usage,
});

const replyOf = ({ model, choices, usage }: z.infer<typeof Completion>): ModelReply => {
  const [choice] = choices;
  if (choice === undefined) throw new UnreadableReply('no choice');
  const { message, finish_reason: finishReason } = choice;
  return {
    text: message.content ?? '',
    calls: (message.tool_calls ?? []).map(({ id, function: called }): ModelCall => ({
      id,
      name: called.name,
      argumentsText: called.arguments,
    })),
    truncated: finishReason === 'length',
    model: providerWord(model),
    finishReason: providerWord(finishReason),
    inputTokens: tokenCount(usage?.prompt_tokens),
    outputTokens: tokenCount(usage?.completion_tokens),
  };
};

const Chunk = z.object({
  model: Unread,
  choices: z
    .array(
      z.object({
        index: z.int().optional(),
        finish_reason: Unread,
        delta: z
          .object({
            content: z.string().nullish(),
            tool_calls: z
              .array(
                z.object({
                  index: z.int().min(0),
                  id: z.string().nullish(),
                  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
                }),
              )
              .nullish(),
          })
          .nullish(),
      }),
    )
    .nullish(),
  usage: Usage,
});

/** Puts the pieces of the first choice together. A stream that ends before its choice has is no reply. */
const readStream = async (chunks: AsyncIterable<unknown>): Promise<ModelReply> => {
  const calls = new Map<number, { id: string; name: string; arguments: string }>();
  let content = '';
  let finishReason: unknown;
  let model: unknown;
  let usage: z.infer<typeof Usage>;
  for await (const raw of chunks) {
    const chunk = Chunk.parse(raw);
    model ??= chunk.model;
    usage = chunk.usage ?? usage;
    for (const choice of chunk.choices ?? []) {
      if ((choice.index ?? 0) !== 0) continue;
      finishReason = choice.finish_reason ?? finishReason;
      content += choice.delta?.content ?? '';
      for (const piece of choice.delta?.tool_calls ?? []) {
        const call = calls.get(piece.index) ?? { id: '', name: '', arguments: '' };
        call.id ||= piece.id ?? '';
        call.name += piece.function?.name ?? '';
        call.arguments += piece.function?.arguments ?? '';
        calls.set(piece.index, call);
      }
    }
  }
  if (typeof finishReason !== 'string') throw new UnreadableReply('the stream ended before the reply did');
  const toolCalls = [...calls]
    .sort(([a], [b]) => a - b)
    .map(([, { id, name, arguments: text }]) => ({ id, function: { name, arguments: text } }));
  return replyOf({ model, usage, choices: [{ finish_reason: finishReason, message: { content, tool_calls: toolCalls } }] });
};
