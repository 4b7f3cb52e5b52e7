import type OpenAI from 'openai';
import { Stream } from 'openai/streaming';
import { z } from 'zod';
import { bearerKey, onlyGiven, openAiClient } from './chat-completions.ts';
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

/** Reasoning counts against it. */
const OUTPUT_TOKENS_MAX = 32_768;

/** OpenAI's Responses. The provider stores nothing: the whole conversation goes with each question. @see spec/runtimes.md §4 */
export const responses = (options: WireOptions): ModelWire => {
  const client = openAiClient(options.baseUrl);
  const { model, maxOutputTokens = OUTPUT_TOKENS_MAX, temperature, stream = true } = options;
  const chosen = temperature === undefined ? {} : { temperature };
  return {
    name: 'responses',
    settings: { wire: 'responses', maxOutputTokens, ...chosen, stream },
    keyHeaders: bearerKey,
    send: ({ conversation, tools }, headers, signal) =>
      client.responses
        .create(
          {
            model,
            input: conversation.flatMap(itemsOf),
            ...(tools.length === 0 ? {} : { tools: tools.map(declared), tool_choice: 'auto' as const }),
            max_output_tokens: maxOutputTokens,
            ...chosen,
            store: false,
            stream,
          },
          { headers: onlyGiven(headers), signal },
        )
        .asResponse(),
    read: async (response) => {
      if (!isEventStream(response)) return replyOf(await response.json());
      let last: unknown;
      for await (const event of Stream.fromSSEResponse<unknown>(response, new AbortController(), client)) {
        // Deltas say nothing that the response at the end does not say whole.
        if (typeof event === 'object' && event !== null && 'response' in event) last = event.response;
      }
      if (last === undefined) throw new UnreadableReply('the stream ended without a response');
      return replyOf(last);
    },
  };
};

const itemsOf = (item: ConversationItem): OpenAI.Responses.ResponseInputItem[] => {
  switch (item.role) {
    case 'system':
    case 'user':
      return [{ type: 'message', role: item.role, content: [{ type: 'input_text', text: item.text }] }];
    case 'tool':
      return [{ type: 'function_call_output', call_id: item.callId, output: item.text }];
    case 'assistant': {
      const said = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: item.text }] };
      return [
        // The client's type asks for the id of a stored item, and nothing is stored.
        ...(item.text === '' ? [] : [said as unknown as OpenAI.Responses.ResponseInputItem]),
        ...item.calls.map(({ id, name, argumentsText }) => ({
          type: 'function_call' as const,
          call_id: id,
          name,
          arguments: argumentsText,
        })),
      ];
    }
  }
};

const declared = ({ name, description, inputSchema }: DeclaredTool): OpenAI.Responses.Tool => ({
  type: 'function',
  name,
  description,
  parameters: inputSchema as Record<string, unknown>,
  strict: false,
});

const Answered = z.object({
  model: Unread,
  status: z.enum(['completed', 'incomplete']),
  incomplete_details: z.object({ reason: Unread }).nullish(),
  output: z.array(z.looseObject({ type: z.string() })).nullable(),
  usage: z.object({ input_tokens: Unread, output_tokens: Unread }).partial().nullish(),
});
const Said = z.object({ content: z.array(z.looseObject({ type: z.string() })) });
const Part = z.object({ text: z.string() });
const Called = z.object({ call_id: z.string(), name: z.string(), arguments: z.string() });

const replyOf = (given: unknown): ModelReply => {
  const { model, status, incomplete_details: details, output, usage } = Answered.parse(given);
  const items = output ?? [];
  const truncated = status === 'incomplete';
  return {
    text: items
      .filter(({ type }) => type === 'message')
      .flatMap((item) => Said.parse(item).content.filter(({ type }) => type === 'output_text'))
      .map((part) => Part.parse(part).text)
      .join(''),
    calls: items
      .filter(({ type }) => type === 'function_call')
      .map((item) => {
        const { call_id: id, name, arguments: argumentsText } = Called.parse(item);
        return { id, name, argumentsText };
      }),
    truncated,
    model: providerWord(model),
    finishReason: truncated ? (providerWord(details?.reason) ?? status) : status,
    inputTokens: tokenCount(usage?.input_tokens),
    outputTokens: tokenCount(usage?.output_tokens),
  };
};
