import { readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AccessContext, type ExecutionRequest, type ToolCall, hashOf } from '@sharedos/contracts';
import { type ModelServer, type ScriptedReply, TOLD_BY_REFUSAL, freePort, startModelServer } from '@sharedos/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NO_REASON_GIVEN } from '../escalation-reason.ts';
import { type MemoryTurnKernelOptions, ESCALATE, READ, START, aRequest, aWorld, denied, reached, toolNamed } from '../testing/index.ts';
import type { Timers } from '../timers.ts';
import { type ModelCredential, tokenFile } from './model-auth.ts';
import { type ModelRuntimeOptions, modelRuntime } from './model-runtime.ts';

const KEY = 'sk-test-0c1f';
const PATHS = { 'chat-completions': '/v1', responses: '/v1', messages: '' } as const;
type Wire = keyof typeof PATHS;
const WIRES = Object.keys(PATHS) as Wire[];

let server: ModelServer;
beforeEach(async () => {
  server = await startModelServer();
});
afterEach(() => server.stop());

/** Pauses of the client end at once and are noted; its time limits end only when a test says so. */
const ownTimers = (): { readonly timers: Timers; readonly pauses: number[]; readonly limits: Map<number, () => void> } => {
  const pauses: number[] = [];
  const limits = new Map<number, () => void>();
  let set = 0;
  return {
    pauses,
    limits,
    timers: {
      after: (delayMs, fire) => {
        const id = (set += 1);
        if (delayMs === 120_000) limits.set(id, fire);
        if (delayMs === 1_500) {
          pauses.push(delayMs);
          setImmediate(fire);
        }
        return () => void limits.delete(id);
      },
    },
  };
};

const modelTurn = (
  wire: Wire,
  replies: readonly ScriptedReply[],
  more: { options?: Partial<ModelRuntimeOptions>; kernel?: MemoryTurnKernelOptions } = {},
) => {
  server.say(...replies);
  const own = ownTimers();
  const thrown: unknown[] = [];
  const runtime = modelRuntime({
    wire,
    baseUrl: `${server.url}${PATHS[wire]}`,
    model: 'model-1',
    auth: { apiKey: KEY },
    timers: own.timers,
    onTurnError: (error) => void thrown.push(error),
    ...more.options,
  });
  const world = aWorld({ runtime, ...(more.kernel === undefined ? {} : { kernel: more.kernel }) });
  return {
    ...own,
    world,
    thrown,
    run: (request?: ExecutionRequest, signal?: AbortSignal) => world.run(request, signal === undefined ? {} : { signal }),
  };
};

const read = (path = 'a.md') => ({ name: 'files_read', arguments: { path: [path] } });
const done: ScriptedReply = { text: 'All done.' };

/** The results that went back to the model with a question, in no provider's words. */
const toldBack = (question: number): unknown[] => {
  const { body, path } = server.asked[question]!;
  const texts: string[] = path.endsWith('/responses')
    ? body.input.filter((item: { type: string }) => item.type === 'function_call_output').map((item: { output: string }) => item.output)
    : body.messages.flatMap((message: { role: string; content: unknown }) =>
        message.role === 'tool'
          ? [message.content]
          : Array.isArray(message.content)
            ? message.content
                .filter((block: { type: string }) => block.type === 'tool_result')
                .map((block: { content: string }) => block.content)
            : [],
      );
  return texts.map((text) => JSON.parse(text));
};

describe.each(WIRES.flatMap((wire) => [[wire, true] as const, [wire, false] as const]))('a model over %s, streamed: %s', (wire, stream) => {
  const turn = (replies: readonly ScriptedReply[], more: Parameters<typeof modelTurn>[2] = {}) =>
    modelTurn(wire, replies, { ...more, options: { stream, ...more.options } });

  it('calls a tool by its portable name, hears the result and ends with a text', async () => {
    const usage = { input: 100, output: 20 };
    const { run, world } = turn([
      { text: 'I look.', calls: [{ ...read(), id: 'toolu_7' }], usage },
      { ...done, usage, model: 'model-1-0401' },
    ]);
    const result = await run();
    expect(result).toMatchObject({
      status: 'succeeded',
      output: { text: 'All done.' },
      metadata: {
        runtime: { id: `sharedos.model.${wire}`, metadata: { model: 'model-1' } },
        model: 'model-1-0401',
        requestedModel: 'model-1',
        modelProvider: wire === 'messages' ? 'anthropic' : 'openai',
        malformedToolCalls: 0,
        inputTokens: 200,
        outputTokens: 40,
        auth: { scheme: 'api_key' },
        modelSettings: { wire, stream },
      },
    });
    expect(world.kernel.calls).toEqual([
      { id: 'toolu_7', tool: 'files.read', arguments: { path: ['a.md'] }, traceId: 'trace-1', requestedAt: START },
    ]);
    expect(toldBack(1)).toEqual([{ status: 'succeeded', output: null }]);
    expect(server.asked[0]?.body.stream ?? false).toBe(stream);
  });

  it('1: has several calls of one reply decided one by one, and is asked again only after all of them', async () => {
    const replies = [{ calls: [read('1'), read('2'), read('3')] }, done];
    expect(await turn(replies).run()).toMatchObject({ status: 'succeeded' });
    expect(server.asked).toHaveLength(2);
    expect(toldBack(1)).toHaveLength(3);
    const limited = turn(replies);
    const result = await limited.run(aRequest({ options: { maxSteps: 2 } }));
    expect(result).toMatchObject({ status: 'failed', error: { code: 'step_limit_exceeded' } });
    expect(result.events.at(-1)?.data).toMatchObject({ source: 'runtime' });
    expect(limited.world.kernel.calls.map((call) => call.arguments)).toEqual([{ path: ['1'] }, { path: ['2'] }]);
  });

  it('hears a refusal as an ordinary result, and goes on', async () => {
    const kernel = {
      tools: [{ definition: READ, answer: (call: ToolCall, context: AccessContext) => denied(call, context, 'no_matching_grant') }],
    };
    expect(await turn([{ calls: [read()] }, done], { kernel }).run()).toMatchObject({ status: 'succeeded' });
    expect(toldBack(1)).toEqual([{ status: 'denied', error: { code: 'no_matching_grant', message: expect.any(String) } }]);
  });

  it('4: is told which arguments could not be read; the ninth time ends the turn, and no such call was made', async () => {
    const broken = ['{"path":', '[1]', '"text"', 'null'];
    const few = turn([{ calls: broken.map((text) => ({ name: 'files_read', arguments: text })) }, done]);
    expect(await few.run()).toMatchObject({ status: 'succeeded', metadata: { malformedToolCalls: 4 } });
    expect(toldBack(1)).toEqual(
      broken.map(() => ({ status: 'failed', error: { code: 'invalid_tool_arguments', message: expect.any(String) } })),
    );
    const calls = Array.from({ length: 9 }, () => ({ name: 'files_read', arguments: '[1]' }));
    const many = turn([{ calls }]);
    const result = await many.run();
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'model_malformed_call_limit_exceeded' },
      metadata: { malformedToolCalls: 9 },
    });
    expect(result.events.map((event) => event.type)).toEqual(['turn.started', 'turn.failed']);
    expect([...few.world.kernel.calls, ...many.world.kernel.calls]).toEqual([]);
    expect(many.world.kernel.ends[0]).toMatchObject({ endedBy: 'runtime' });
  });

  it('5: uses nothing of a reply that stopped at its limit', async () => {
    const { run, world } = turn([{ text: 'I lo', calls: [read()], truncated: true, usage: { input: 5, output: 6 } }]);
    expect(await run()).toMatchObject({
      status: 'failed',
      error: { code: 'model_output_truncated' },
      metadata: {
        finishReason: { 'chat-completions': 'length', responses: 'max_output_tokens', messages: 'max_tokens' }[wire],
        outputTokens: 6,
      },
    });
    expect(world.kernel.calls).toEqual([]);
  });

  it('6: asks once more 1 500 ms after a 429, and the turn does not notice', async () => {
    const { run, pauses } = turn([{ status: 429 }, done]);
    expect(await run()).toMatchObject({ status: 'succeeded', output: { text: 'All done.' } });
    expect(pauses).toEqual([1_500]);
  });

  it('8: fails when the answer ends early, and does not pay for it twice', async () => {
    const { run } = turn([{ text: 'Half of what there is to say', calls: [read()], cut: true }, done]);
    expect(await run()).toMatchObject({ status: 'failed', error: { code: 'model_call_failed', retryable: false } });
    expect(server.asked).toHaveLength(1);
  });

  it('ends by asking a human where it may, and drops what was queued behind', async () => {
    const calls = [read(), { name: 'sharedos_escalate', arguments: { reason: ' May I? ' } }, { name: 'files_append', arguments: {} }];
    const { run, world } = turn([{ calls }]);
    expect(await run()).toMatchObject({
      status: 'escalated',
      escalation: { reason: 'May I?' },
      metadata: { requestedModel: 'model-1', escalationAsked: { tool: ESCALATE.name, reason: 'May I?' } },
    });
    expect(world.kernel.calls.map((call) => call.tool)).toEqual(['files.read']);
  });

  it('is sent what was said so far, whole, and reads a tool without arguments', async () => {
    const { run } = turn([{ text: 'First.', calls: [{ name: 'files_read', arguments: {}, id: 'c-1' }] }, done]);
    expect(await run()).toMatchObject({ status: 'succeeded' });
    const { body } = server.asked[1]!;
    const said = {
      'chat-completions': () => body.messages.slice(1),
      responses: () => body.input.slice(1),
      messages: () => body.messages,
    }[wire]();
    const result = '{"status":"succeeded","output":null}';
    expect(said).toEqual(
      {
        'chat-completions': [
          { role: 'user', content: 'summarise' },
          {
            role: 'assistant',
            content: 'First.',
            tool_calls: [{ id: 'c-1', type: 'function', function: { name: 'files_read', arguments: '{}' } }],
          },
          { role: 'tool', tool_call_id: 'c-1', content: result },
        ],
        responses: [
          { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'summarise' }] },
          { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'First.' }] },
          { type: 'function_call', call_id: 'c-1', name: 'files_read', arguments: '{}' },
          { type: 'function_call_output', call_id: 'c-1', output: result },
        ],
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'summarise' }] },
          {
            role: 'assistant',
            content: [
              { type: 'text', text: 'First.' },
              { type: 'tool_use', id: 'c-1', name: 'files_read', input: {} },
            ],
          },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c-1', content: result }] },
        ],
      }[wire],
    );
  });
});

describe.each(WIRES)('what is asked over %s', (wire) => {
  it('names tools, limits and the key as its provider wants them', async () => {
    await modelTurn(wire, [done]).run();
    const { body, headers, path } = server.asked[0]!;
    const description = 'The tool files.read.';
    expect({ path, ...body, tools: body.tools.slice(0, 1) }).toMatchObject(
      {
        'chat-completions': {
          path: '/v1/chat/completions',
          model: 'model-1',
          max_tokens: 4_096,
          temperature: 0,
          tool_choice: 'auto',
          tools: [{ type: 'function', function: { name: 'files_read', description, parameters: { type: 'object' } } }],
        },
        responses: {
          path: '/v1/responses',
          max_output_tokens: 32_768,
          store: false,
          stream: true,
          tool_choice: 'auto',
          tools: [{ type: 'function', name: 'files_read', description, parameters: { type: 'object' }, strict: false }],
        },
        messages: {
          path: '/v1/messages',
          max_tokens: 4_096,
          stream: true,
          tool_choice: { type: 'auto' },
          tools: [{ name: 'files_read', description, input_schema: { type: 'object' } }],
        },
      }[wire],
    );
    if (wire !== 'chat-completions') expect(body.temperature).toBeUndefined();
    expect(wire === 'messages' ? headers['x-api-key'] : headers.authorization).toBe(wire === 'messages' ? KEY : `Bearer ${KEY}`);
    expect(wire === 'messages' ? headers.authorization : headers['x-api-key']).toBeUndefined();
    // Only name, description and schema: what a tool requires is not for a model.
    expect(JSON.stringify(body)).not.toContain('requiredCapability');
  });

  it('has neither tools nor a choice of one when the turn has none', async () => {
    await modelTurn(wire, [done], { kernel: { tools: [] } }).run();
    expect(server.asked[0]?.body).not.toHaveProperty('tools');
    expect(server.asked[0]?.body).not.toHaveProperty('tool_choice');
  });

  it('can be limited otherwise', async () => {
    await modelTurn(wire, [done], { options: { maxOutputTokens: 77, temperature: 0.5 } }).run();
    const { body } = server.asked[0]!;
    expect([body.max_tokens ?? body.max_output_tokens, body.temperature]).toEqual([77, 0.5]);
  });

  it('takes nothing from the environment of the providers’ own clients', async () => {
    const set = {
      OPENAI_ORG_ID: 'org-x',
      OPENAI_PROJECT_ID: 'prj-x',
      OPENAI_API_KEY: 'env-key',
      ANTHROPIC_AUTH_TOKEN: 'env-token',
      ANTHROPIC_API_KEY: 'env-key',
    };
    Object.assign(process.env, set);
    try {
      await modelTurn(wire, [done]).run();
    } finally {
      for (const name of Object.keys(set)) delete process.env[name];
    }
    expect(JSON.stringify(server.asked[0]?.headers)).not.toMatch(/org-x|prj-x|env-key|env-token/);
  });

  it('is read by its content type, whatever was asked for', async () => {
    expect(await modelTurn(wire, [{ ...done, stream: false }], { options: { stream: true } }).run()).toMatchObject({ status: 'succeeded' });
    expect(await modelTurn(wire, [{ ...done, stream: true }], { options: { stream: false } }).run()).toMatchObject({ status: 'succeeded' });
  });

  it.each<[string, ScriptedReply]>([
    ['no JSON', { raw: { body: '<html>', contentType: 'application/json' } }],
    ['an empty object', { raw: { body: '{}', contentType: 'application/json' } }],
    ['an empty stream', { raw: { body: '', contentType: 'text/event-stream' } }],
    ['a stream of nonsense', { raw: { body: 'event: x\ndata: {"a":1}\n\n', contentType: 'text/event-stream' } }],
    [
      'a stream with an error',
      { raw: { body: 'event: error\ndata: {"type":"error","error":{"type":"overloaded"}}\n\n', contentType: 'text/event-stream' } },
    ],
    ['a call without a name', { calls: [{ name: '', arguments: '{}' }] }],
    ['a call with an id that is too long', { calls: [{ ...read(), id: 'i'.repeat(257) }] }],
    ['a reply over the bound', { text: 'x'.repeat(8 * 1024 * 1024) }],
    ['a refusal', { status: 400 }],
  ])('and answered with %s ends the turn as a failed call of the model', async (_what, reply) => {
    const { run, thrown } = modelTurn(wire, [reply]);
    expect(await run()).toMatchObject({
      status: 'failed',
      error: { code: 'model_call_failed', retryable: false },
      metadata: { model: 'model-1', requestedModel: 'model-1', malformedToolCalls: 0 },
    });
    expect(server.asked).toHaveLength(1);
    expect(thrown).toEqual([]);
  });
});

describe('what a turn is told before it begins', () => {
  const asked = async (request: ExecutionRequest, options: Partial<ModelRuntimeOptions> = {}, kernel: MemoryTurnKernelOptions = {}) => {
    const result = await modelTurn('chat-completions', [done], { options, kernel: { tools: [{ definition: READ }], ...kernel } }).run(
      request,
    );
    const [system, user] = server.asked.at(-1)!.body.messages as { content: string }[];
    return { instructions: system?.content ?? '', prompt: user?.content, hash: result.metadata?.['promptHash'] };
  };
  const withPayload = (payload: never): ExecutionRequest => aRequest({ message: { ...aRequest().message, payload } });

  it.each([
    ['a text', 'hello', 'hello'],
    ['the text in an object', { text: 'hello', more: 1 }, 'hello'],
    ['the JSON of anything else', { question: 'hello' }, '{"question":"hello"}'],
    ['the JSON of a list', [1, 2], '[1,2]'],
  ])('is %s', async (_what, payload, prompt) => expect((await asked(withPayload(payload as never))).prompt).toBe(prompt));

  it('is something else where the host says so', async () =>
    expect((await asked(aRequest(), { firstText: ({ executionId }) => `Do ${executionId}` })).prompt).toBe('Do exec-1'));

  it('begins with the guidance of the host, then says where the turn may operate', async () => {
    const reach = {
      status: 'computed',
      reach: [{ namespace: 'files', path: ['Vault'], actions: ['read'], scope: 'descendants' }],
    } as const;
    const { instructions, prompt, hash } = await asked(aRequest(), { guidance: 'Be brief.' }, { reach: reach as never });
    expect(instructions.startsWith('Be brief.\n\n')).toBe(true);
    expect(instructions).toContain('read in files at ["Vault"] and all below');
    expect(hash).toBe(hashOf({ instructions, prompt }));
  });

  it('tells a reach that is unknown as unknown, and an empty one as empty', async () => {
    const unknown = await asked(aRequest(), {}, { reach: { status: 'unavailable', reasonCode: 'authority_unavailable' } });
    const empty = await asked(aRequest(), {}, { reach: { status: 'computed', reach: [] } });
    expect([unknown.instructions.includes('not known'), empty.instructions.includes('No resources')]).toEqual([true, true]);
  });
});

describe('names of tools', () => {
  const over = (names: readonly string[], replies: readonly ScriptedReply[]) => {
    const tools = names.map((name) => toolNamed(name));
    const turn = modelTurn('chat-completions', replies, { kernel: { tools: tools.map((definition) => ({ definition })) } });
    return { ...turn, run: () => turn.run(aRequest({ tools })) };
  };

  it('2: that no tool of the turn has are passed on, so that the refusal is made and recorded', async () => {
    const { run, world } = over(['files.read'], [{ calls: [{ name: 'files_purge', arguments: {} }] }, done]);
    expect(await run()).toMatchObject({ status: 'succeeded' });
    expect(world.kernel.asked).toContain('refused files.purge tool_unavailable not_offered');
    expect(toldBack(1)).toMatchObject([{ status: 'denied', error: { code: 'tool_unavailable' } }]);
  });

  it('3: that would be one on the wire end the turn before anything is sent', async () => {
    const { run, thrown } = over(['a.b_c', 'a_b.c'], [done]);
    expect(await run()).toMatchObject({ status: 'failed', error: { code: 'driver_failed', retryable: true } });
    expect(server.asked).toEqual([]);
    expect(thrown).toHaveLength(1);
  });

  it('with underscores of their own find their way back', async () => {
    const { run, world } = over(['my_files.read_all'], [{ calls: [{ name: 'my_files_read_all', arguments: {} }] }, done]);
    await run();
    expect(world.kernel.calls.map((call) => call.tool)).toEqual(['my_files.read_all']);
  });
});

describe('asking for a human', () => {
  const ask = (given: string | object) =>
    modelTurn('chat-completions', [{ calls: [{ name: 'sharedos_escalate', arguments: given }] }, done]);

  it.each([
    ['broken arguments', '{"reason":'],
    ['no reason', {}],
    ['a blank reason', { reason: '  ' }],
    ['a reason that is no text', { reason: 7 }],
    ['a list', []],
  ])('with %s is asking all the same, and no malformed call', async (_what, given) =>
    expect(await ask(given).run()).toMatchObject({
      status: 'escalated',
      escalation: { reason: NO_REASON_GIVEN },
      metadata: { malformedToolCalls: 0 },
    }),
  );

  it('at length is cut at the last whole character', async () => {
    const result = await ask({ reason: `${'x'.repeat(511)}😀${'y'.repeat(400)}` }).run();
    expect(result).toMatchObject({ status: 'escalated', escalation: { reason: 'x'.repeat(511) } });
  });

  it('without having been given the means is a guess like any other', async () => {
    const turn = modelTurn('chat-completions', [{ calls: [{ name: 'sharedos_escalate', arguments: { reason: 'r' } }] }, done], {
      kernel: { tools: [{ definition: READ }] },
    });
    expect(await turn.run()).toMatchObject({ status: 'succeeded' });
    expect(turn.world.kernel.asked).toContain('refused sharedos.escalate tool_unavailable not_offered');
  });
});

describe('when a model cannot be reached', () => {
  it.each([500, 503, 529])('answering %d twice, it was asked twice, and then the turn has failed for now', async (status) => {
    const { run, pauses } = modelTurn('responses', [{ status }, { status }, done]);
    expect(await run()).toMatchObject({ status: 'failed', error: { code: 'model_call_failed', retryable: true } });
    expect([server.asked.length, pauses]).toEqual([2, [1_500]]);
  });

  it.each([301, 400, 403, 404])('answering %d, it is asked once', async (status) => {
    const { run } = modelTurn('responses', [{ status }, done]);
    expect(await run()).toMatchObject({ status: 'failed', error: { code: 'model_call_failed', retryable: false } });
    expect(server.asked).toHaveLength(1);
  });

  it('a redirect is not followed: the key would go where it points', async () => {
    const { run } = modelTurn('messages', [{ status: 307, location: `${server.url}/elsewhere/v1/messages` }, done]);
    expect(await run()).toMatchObject({ status: 'failed', error: { code: 'model_call_failed', retryable: false } });
    expect(server.asked.map(({ path }) => path)).toEqual(['/v1/messages']);
  });

  it('nobody there is as good as a busy one', async () => {
    const baseUrl = `http://127.0.0.1:${await freePort()}`;
    const { run, pauses } = modelTurn('messages', [], { options: { baseUrl } });
    expect(await run()).toMatchObject({ status: 'failed', error: { code: 'model_call_failed', retryable: true } });
    expect(pauses).toEqual([1_500]);
  });

  it('one that does not answer in 120 s is asked once more', async () => {
    const { run, limits } = modelTurn('chat-completions', [{ silent: true }, done]);
    const ended = run();
    await expect.poll(() => server.asked.length).toBe(1);
    for (const fire of limits.values()) fire();
    expect(await ended).toMatchObject({ status: 'succeeded' });
    expect(limits.size).toBe(0);
  });

  it('a turn that is cancelled does not wait for it', async () => {
    const cancel = new AbortController();
    const ended = modelTurn('messages', [{ silent: true }, done]).run(undefined, cancel.signal);
    await expect.poll(() => server.asked.length).toBe(1);
    cancel.abort();
    expect(await ended).toMatchObject({ status: 'cancelled' });
    expect(server.asked).toHaveLength(1);
  });

  it('what it says of its refusal is repeated nowhere', async () => {
    const { run, thrown, world } = modelTurn('responses', [{ status: 400 }]);
    const told = JSON.stringify([await run(), thrown, world.errors, world.heard]);
    expect(told).not.toContain(TOLD_BY_REFUSAL);
    expect(told).not.toContain(KEY);
  });
});

describe('who pays', () => {
  const credential = (more: Partial<ModelCredential> = {}): ModelCredential & { renewals: number } => {
    const made: ModelCredential & { renewals: number } = {
      scheme: 'bearer',
      issuer: 'accounts.example',
      accountScoped: true,
      renewals: 0,
      headers: async () => ({ Authorization: `Bearer token-${made.renewals}`, 'X-Account': 'acct-1' }),
      renew: async () => void (made.renewals += 1),
      ...more,
    };
    return made;
  };

  it('7: renews a credential that was refused, once, and says nothing of the token', async () => {
    const own = credential();
    const result = await modelTurn('responses', [{ status: 401 }, done], { options: { auth: { credential: own } } }).run();
    expect(result).toMatchObject({
      status: 'succeeded',
      metadata: { auth: { scheme: 'bearer', issuer: 'accounts.example', accountScoped: true } },
    });
    expect(server.asked.map(({ headers }) => headers.authorization)).toEqual(['Bearer token-0', 'Bearer token-1']);
    expect(JSON.stringify(result)).not.toMatch(/token-|acct-1/);
  });

  it('gives up when the renewed one is refused too, or cannot be renewed', async () => {
    const failing = credential({ renew: () => Promise.reject(new Error('no')) });
    for (const own of [credential(), failing]) {
      const refusals = own === failing ? [{ status: 401 }] : [{ status: 401 }, { status: 401 }];
      const result = await modelTurn('responses', refusals, {
        options: { auth: { credential: own } },
      }).run();
      expect(result).toMatchObject({ status: 'failed', error: { code: 'model_call_failed', retryable: false } });
    }
    expect(server.asked).toHaveLength(3);
  });

  it('has a key refused only once', async () => {
    expect(await modelTurn('messages', [{ status: 401 }, done]).run()).toMatchObject({ error: { code: 'model_call_failed' } });
    expect(server.asked).toHaveLength(1);
  });

  it('lets the credential win over configured headers', async () => {
    const options = {
      auth: { credential: credential() },
      headers: { authorization: 'Bearer configured', 'x-account': 'other', 'x-trace': 'kept' },
    };
    await modelTurn('messages', [done], { options }).run();
    expect(server.asked[0]?.headers).toMatchObject({ authorization: 'Bearer token-0', 'x-account': 'acct-1', 'x-trace': 'kept' });
    expect(server.asked[0]?.headers['x-api-key']).toBeUndefined();
  });

  it('reads a token from its file for each request', async () => {
    const path = join(tmpdir(), `sharedos-token-${process.pid}`);
    await writeFile(path, 'first\n');
    const options = { auth: { credential: tokenFile(path) } };
    try {
      await modelTurn('chat-completions', [done], { options }).run();
      await writeFile(path, 'second\n');
      await modelTurn('chat-completions', [done], { options }).run();
      expect(await readFile(path, 'utf8')).toBe('second\n');
    } finally {
      await rm(path);
    }
    expect(server.asked.map(({ headers }) => headers.authorization)).toEqual(['Bearer first', 'Bearer second']);
  });

  it('is exactly one: a key, or a credential', () => {
    const runtime = (auth: ModelRuntimeOptions['auth']) => () =>
      modelRuntime({ wire: 'responses', baseUrl: 'http://127.0.0.1', model: 'm', auth });
    expect(runtime({})).toThrow('key or a credential');
    expect(runtime({ apiKey: KEY, credential: credential() })).toThrow('key or a credential');
    expect(runtime({ apiKey: '' })).toThrow('empty');
    expect(runtime({ apiKey: KEY })).not.toThrow();
  });
});

it('leaves counts that nobody stated away', async () => {
  const { metadata } = await modelTurn('chat-completions', [done]).run();
  expect(metadata).not.toHaveProperty('inputTokens');
  expect(metadata).not.toHaveProperty('outputTokens');
});

it('serves turns at once, each with its own conversation', async () => {
  const { run } = modelTurn('chat-completions', []);
  server.say({ text: 'one' }, { text: 'two' });
  const results = await Promise.all([run(), run(aRequest({ executionId: 'exec-2' }))]);
  expect(results.map((result) => (result as { output: unknown }).output)).toEqual(
    expect.arrayContaining([{ text: 'one' }, { text: 'two' }]),
  );
  await reached('both asked', () => server.asked.length === 2);
  for (const { body } of server.asked) expect(body.messages).toHaveLength(2);
});
