/** One reply of a model, in no provider's words; {@link ModelServer} writes it down in the shape that was asked for. */
export interface ScriptedReply {
  readonly text?: string;
  /** `arguments` as text goes out as it is, whatever it is. */
  readonly calls?: readonly { readonly name: string; readonly arguments: string | object; readonly id?: string }[];
  /** Stopped at the limit. */
  readonly truncated?: boolean;
  /** The model that says it answers; left out when `null`. */
  readonly model?: string | null;
  readonly usage?: { readonly input: number; readonly output: number };
  /** Answers with this status instead, and with a body that tells too much. */
  readonly status?: number;
  /** Where a redirect points. */
  readonly location?: string;
  /** The stream is cut before its end; of a reply that is no stream the last half is missing. */
  readonly cut?: boolean;
  /** Nothing is ever answered. */
  readonly silent?: boolean;
  /** Answers with exactly this body, of this content type. */
  readonly raw?: { readonly body: string; readonly contentType: string };
  /** As a stream, or not, whatever was asked for. */
  readonly stream?: boolean;
}

type Call = NonNullable<ScriptedReply['calls']>[number];
type Named = Call & { readonly id: string };

const textOf = (call: Call): string => (typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments));
const named = (reply: ScriptedReply, prefix: string): readonly Named[] =>
  (reply.calls ?? []).map((call, index) => ({ ...call, id: call.id ?? `${prefix}-${index + 1}` }));
const halves = (text: string): readonly string[] => {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((part) => part !== '');
};
const modelOf = (reply: ScriptedReply, model: string): object => (reply.model === null ? {} : { model: reply.model ?? model });

/** How one family of providers writes replies down: whole, or as the data of server-sent events, with their names where it has any. */
export interface Shape {
  whole(reply: ScriptedReply, model: string, id: string): object;
  events(reply: ScriptedReply, model: string, id: string): readonly { readonly event?: string; readonly data: object | '[DONE]' }[];
}

const chatUsage = ({ usage }: ScriptedReply): object =>
  usage === undefined
    ? {}
    : { usage: { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: usage.input + usage.output } };
const chatFinish = (reply: ScriptedReply): string =>
  reply.truncated === true ? 'length' : (reply.calls ?? []).length > 0 ? 'tool_calls' : 'stop';

const chat: Shape = {
  whole: (reply, model, id) => ({
    id: `chatcmpl-${id}`,
    object: 'chat.completion',
    created: 1,
    ...modelOf(reply, model),
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: reply.text ?? null,
          ...(reply.calls === undefined
            ? {}
            : {
                tool_calls: named(reply, id).map((call) => ({
                  id: call.id,
                  type: 'function',
                  function: { name: call.name, arguments: textOf(call) },
                })),
              }),
        },
        finish_reason: chatFinish(reply),
      },
    ],
    ...chatUsage(reply),
  }),
  events: (reply, model, id) => {
    const chunk = (delta: object, finish: string | null = null) => ({
      data: {
        id: `chatcmpl-${id}`,
        object: 'chat.completion.chunk',
        created: 1,
        ...modelOf(reply, model),
        choices: [{ index: 0, delta, finish_reason: finish }],
      },
    });
    return [
      chunk({ role: 'assistant', content: '' }),
      ...halves(reply.text ?? '').map((content) => chunk({ content })),
      ...named(reply, id).flatMap((call, index) => [
        chunk({ tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } }] }),
        ...halves(textOf(call)).map((part) => chunk({ tool_calls: [{ index, function: { arguments: part } }] })),
      ]),
      chunk({}, chatFinish(reply)),
      ...(reply.usage === undefined
        ? []
        : [{ data: { id: `chatcmpl-${id}`, object: 'chat.completion.chunk', created: 1, choices: [], ...chatUsage(reply) } }]),
      { data: '[DONE]' as const },
    ];
  },
};

const responses: Shape = {
  whole: (reply, model, id) => ({
    id: `resp_${id}`,
    object: 'response',
    created_at: 1,
    ...modelOf(reply, model),
    status: reply.truncated === true ? 'incomplete' : 'completed',
    incomplete_details: reply.truncated === true ? { reason: 'max_output_tokens' } : null,
    output: [
      { id: `rs_${id}`, type: 'reasoning', summary: [] },
      ...(reply.text === undefined
        ? []
        : [
            {
              id: `msg_${id}`,
              type: 'message',
              role: 'assistant',
              status: 'completed',
              content: [{ type: 'output_text', text: reply.text, annotations: [] }],
            },
          ]),
      ...named(reply, id).map((call) => ({
        id: `fc_${call.id}`,
        type: 'function_call',
        call_id: call.id,
        name: call.name,
        arguments: textOf(call),
        status: 'completed',
      })),
    ],
    ...(reply.usage === undefined
      ? {}
      : {
          usage: {
            input_tokens: reply.usage.input,
            output_tokens: reply.usage.output,
            total_tokens: reply.usage.input + reply.usage.output,
          },
        }),
  }),
  events: (reply, model, id) => {
    const whole = responses.whole(reply, model, id);
    const begun = { ...whole, status: 'in_progress', output: [], usage: null };
    const type = reply.truncated === true ? 'response.incomplete' : 'response.completed';
    return [
      { event: 'response.created', data: { type: 'response.created', response: begun } },
      ...halves(reply.text ?? '').map((delta) => ({
        event: 'response.output_text.delta',
        data: { type: 'response.output_text.delta', item_id: `msg_${id}`, output_index: 1, content_index: 0, delta },
      })),
      { event: type, data: { type, response: whole } },
    ];
  },
};

const messageStop = (reply: ScriptedReply): string =>
  reply.truncated === true ? 'max_tokens' : (reply.calls ?? []).length > 0 ? 'tool_use' : 'end_turn';

const messages: Shape = {
  whole: (reply, model, id) => ({
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    ...modelOf(reply, model),
    content: [
      ...(reply.text === undefined ? [] : [{ type: 'text', text: reply.text }]),
      ...named(reply, id).map((call) => ({ type: 'tool_use', id: call.id, name: call.name, input: call.arguments })),
    ],
    stop_reason: messageStop(reply),
    stop_sequence: null,
    ...(reply.usage === undefined ? {} : { usage: { input_tokens: reply.usage.input, output_tokens: reply.usage.output } }),
  }),
  events: (reply, model, id) => {
    const told = (type: string, data: object) => ({ event: type, data: { type, ...data } });
    const blocks = [
      ...(reply.text === undefined
        ? []
        : [
            {
              block: { type: 'text', text: '' },
              deltas: halves(reply.text).map((text) => ({ type: 'text_delta', text })),
            },
          ]),
      ...named(reply, id).map((call) => ({
        block: { type: 'tool_use', id: call.id, name: call.name, input: {} },
        deltas: ['', ...halves(textOf(call))].map((part) => ({ type: 'input_json_delta', partial_json: part })),
      })),
    ];
    return [
      told('message_start', {
        message: {
          id: `msg_${id}`,
          type: 'message',
          role: 'assistant',
          ...modelOf(reply, model),
          content: [],
          stop_reason: null,
          ...(reply.usage === undefined ? {} : { usage: { input_tokens: reply.usage.input, output_tokens: 1 } }),
        },
      }),
      { event: 'ping', data: { type: 'ping' } },
      ...blocks.flatMap(({ block, deltas }, index) => [
        told('content_block_start', { index, content_block: block }),
        ...deltas.map((delta) => told('content_block_delta', { index, delta })),
        told('content_block_stop', { index }),
      ]),
      told('message_delta', {
        delta: { stop_reason: messageStop(reply), stop_sequence: null },
        ...(reply.usage === undefined ? {} : { usage: { output_tokens: reply.usage.output } }),
      }),
      told('message_stop', {}),
    ];
  },
};

/** The shape that is spoken at a path, whatever stands before it. */
export const shapeAt = (path: string): Shape | undefined =>
  path.endsWith('/chat/completions') ? chat : path.endsWith('/responses') ? responses : path.endsWith('/messages') ? messages : undefined;
