import { CallToolResultSchema, InitializeResultSchema, ListToolsResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { startTelemetry } from '@sharedos/telemetry';
import { startSpanReceiver } from '@sharedos/testing';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { ContractError } from '../errors.ts';
import { START, toolNamed } from '../testing/turn-fixture.ts';
import { publishToolDefinition } from '@sharedos/kernel';
import { TOOLS, aBridge, answer, catalogOf, refusal } from './bridge.fixture.ts';
import { openMcpBridge } from './bridge.ts';
import { NO_REASON_GIVEN } from '../escalation-reason.ts';

const error = (code: number, id: unknown = 7) => expect.objectContaining({ id, error: expect.objectContaining({ code }) });
const SPACED = Array.from({ length: 600 }, () => 'x').join('');

describe('what the bridge says of itself', () => {
  it.each([
    ['2025-06-18', '2025-06-18'],
    ['2025-03-26', '2025-03-26'],
    ['2024-11-05', '2024-11-05'],
    ['2025-11-25', '2025-06-18'],
    ['yesterday', '2025-06-18'],
    [undefined, '2025-06-18'],
    [7, '2025-06-18'],
  ])('answers version %s with %s', async (asked, spoken) => {
    const { result } = await aBridge().request('initialize', { protocolVersion: asked });
    expect(InitializeResultSchema.parse(result)).toEqual({
      protocolVersion: spoken,
      capabilities: { tools: { listChanged: false } },
      serverInfo: { name: 'sharedos', version: '1.0.0' },
    });
  });

  it('gives instructions where the host has some', async () =>
    expect(await aBridge({ instructions: 'Stay below notes.' }).request('initialize')).toMatchObject({
      result: { instructions: 'Stay below notes.' },
    }));

  it('answers a ping with nothing', async () => expect(await aBridge().request('ping')).toEqual({ jsonrpc: '2.0', id: 7, result: {} }));

  it('lists the whole catalogue of the turn, and which it is', async () => {
    const { result } = await aBridge().request('tools/list', { cursor: 'x' });
    expect(result).toMatchObject({ _meta: { 'sharedos/catalogHash': catalogOf().catalogHash, 'sharedos/executionId': 'exec-1' } });
    expect(ListToolsResultSchema.parse(result).tools.map(({ name }) => name)).toEqual(TOOLS.map(({ name }) => name));
    expect(result).not.toHaveProperty('nextCursor');
  });

  it('says of a tool what it is called with and whose it is, and never what it would take', async () => {
    const { result } = await aBridge().request('tools/list');
    const { tools } = result as { tools: { name: string }[] };
    expect(tools.find(({ name }) => name === 'files.stat')).toEqual({
      name: 'files.stat',
      description: 'The tool files.stat.',
      inputSchema: { type: 'object' },
      outputSchema: { type: 'object' },
      annotations: { readOnlyHint: true },
      _meta: { 'sharedos/namespace': 'files', 'sharedos/source': 'sharedos' },
    });
  });

  it('lists 512 tools, and is not opened over more', async () => {
    const many = (count: number) => Array.from({ length: count }, (_, at) => publishToolDefinition(toolNamed(`many.t${at}`)));
    const { result } = await aBridge({ tools: many(512) }).request('tools/list');
    expect((result as { tools: unknown[] }).tools).toHaveLength(512);
    expect(() => aBridge({ tools: many(513) })).toThrow(ContractError);
  });
});

describe('a call over the bridge', () => {
  it('reaches the broker under a fresh id, with the trace and the instant of the turn', async () => {
    const { call, calls } = aBridge();
    await call('files.read', { path: ['a'] });
    await call('files.read', { path: ['a'] });
    expect(calls).toEqual(
      ['call-1', 'call-2'].map((id) => ({ id, tool: 'files.read', arguments: { path: ['a'] }, traceId: 'trace-1', requestedAt: START })),
    );
  });

  it('has no arguments where none are given', async () => {
    const { call, calls } = aBridge();
    await call('files.read');
    expect(calls[0]?.arguments).toEqual({});
  });

  it.each([
    ['files.read', 'files.read'],
    ['files_read', 'files.read'],
    ['a_b_c', 'a_b_c'],
    ['a.b_c', 'a.b_c'],
    ['mcp__sharedos__files_read', 'mcp__sharedos__files_read'],
    ['files.purge', 'files.purge'],
    ['../etc', '../etc'],
  ])('of %s is passed on as %s', async (called, tool) => {
    const { call, calls, bridge } = aBridge();
    await call(called, {});
    expect(calls.map((made) => made.tool)).toEqual([tool]);
    expect(bridge.aliases).toEqual(called === tool ? {} : { [called]: tool });
  });

  it.each<[string, unknown, object]>([
    ['a text', 'hello', { content: [{ type: 'text', text: 'hello' }], isError: false }],
    ['an object', { a: 1 }, { content: [{ type: 'text', text: '{"a":1}' }], isError: false }],
    ['nothing', null, { content: [{ type: 'text', text: 'null' }], isError: false }],
  ])('that answers %s is text', async (_, output, said) =>
    expect(await aBridge({ invoke: async (call) => answer(call, output) }).call('files.read')).toEqual(said),
  );

  it.each<[string, unknown, boolean]>([
    ['an object', { size: 3 }, true],
    ['a list', [1], false],
    ['a text', 'x', false],
    ['nothing', null, false],
  ])('of a tool that states its output is structured as well if it answers an object: %s', async (_, output, structured) => {
    const said = await aBridge({ invoke: async (call) => answer(call, output) }).call('files.stat');
    expect(said['structuredContent']).toEqual(structured ? output : undefined);
  });

  it.each<['denied' | 'failed', string, boolean | undefined]>([
    ['denied', 'no_matching_grant', undefined],
    ['denied', 'tool_unavailable', false],
    ['failed', 'tool_execution_failed', true],
  ])('that is %s with %s is a result, and no error of the protocol', async (status, code, retryable) => {
    const said = await aBridge({ invoke: async (call) => refusal(call, status, code, retryable) }).call('files.read');
    const body = { status, code, message: 'No.', ...(retryable === undefined ? {} : { retryable }) };
    expect(CallToolResultSchema.parse(said)).toEqual({
      content: [{ type: 'text', text: JSON.stringify(body) }],
      isError: true,
      _meta: { 'sharedos/status': status, 'sharedos/code': code },
    });
  });

  it('that the broker cannot take is an internal error, without a word of why', async () => {
    const { request } = aBridge({ invoke: () => Promise.reject(new Error('secret')) });
    const said = await request('tools/call', { name: 'files.read' });
    expect(said).toEqual(error(-32603));
    expect(JSON.stringify(said)).not.toContain('secret');
  });
});

describe('a message that is none', () => {
  it.each<[string, unknown, unknown]>([
    ['text', 'hello', error(-32700, null)],
    ['a member named twice', '{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}', error(-32700, null)],
    ['a number', 5, error(-32700, null)],
    ['an object without an id', { jsonrpc: '2.0' }, error(-32700, null)],
    ['an id that cannot be answered', { jsonrpc: '2.0', id: null, method: 'ping' }, error(-32700, null)],
    ['another version of the protocol', { jsonrpc: '1.0', id: 7, method: 'ping' }, error(-32600)],
    ['a request without a method', { jsonrpc: '2.0', id: 'seven' }, error(-32600, 'seven')],
    ['an answer', { jsonrpc: '2.0', id: 7, result: {} }, error(-32600)],
    ['an empty batch', [], error(-32600, null)],
    ['a batch of 101', Array.from({ length: 101 }, () => ({ jsonrpc: '2.0', id: 7, method: 'ping' })), error(-32600, null)],
  ])('%s is refused', async (_, message, said) => expect(await aBridge().say(message)).toEqual(said));

  it.each(['resources/list', 'prompts/list', 'logging/setLevel', 'completion/complete', 'tools', '__proto__'])(
    '%s is no method',
    async (method) => expect(await aBridge().request(method)).toEqual(error(-32601)),
  );

  it.each<[string, unknown]>([
    ['no parameters', undefined],
    ['no name', {}],
    ['a name that is no text', { name: 7 }],
    ['a blank name', { name: ' ' }],
    ['a name of 600', { name: SPACED }],
    ['a list for arguments', { name: 'files.read', arguments: [] }],
    ['a text for arguments', { name: 'files.read', arguments: '{}' }],
    ['null for arguments', { name: 'files.read', arguments: null }],
  ])('a call with %s is refused and reaches nobody', async (_, params) => {
    const { request, calls } = aBridge();
    expect(await request('tools/call', params)).toEqual(error(-32602));
    expect(calls).toEqual([]);
  });

  it.each(['notifications/initialized', 'notifications/cancelled', 'anything'])('%s is taken without an answer', async (method) =>
    expect(await aBridge().say({ jsonrpc: '2.0', method })).toBe('accepted'),
  );
});

describe('several messages', () => {
  it('of one batch are answered in their order, notifications not at all', async () =>
    expect(
      await aBridge().say([
        { jsonrpc: '2.0', id: 1, method: 'ping' },
        { jsonrpc: '2.0', method: 'notifications/initialized' },
        { jsonrpc: '2.0', id: 2, method: 'nothing' },
        7,
      ]),
    ).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }, error(-32601, 2), error(-32700, null)]));

  it('of one batch without a question have no answer', async () =>
    expect(await aBridge().say([{ jsonrpc: '2.0', method: 'notifications/initialized' }])).toBe('accepted'));

  it('are handled one after another, whatever they came over', async () => {
    const answers: (() => void)[] = [];
    const { call, calls } = aBridge({ invoke: (made) => new Promise((resolve) => answers.push(() => resolve(answer(made, null)))) });
    const both = [call('files.read', { first: true }), call('files.stat', { second: true })];
    await expect.poll(() => answers.length).toBe(1);
    expect(calls).toHaveLength(1);
    answers[0]?.();
    await expect.poll(() => answers.length).toBe(2);
    answers[1]?.();
    await Promise.all(both);
    expect(calls.map(({ tool }) => tool)).toEqual(['files.read', 'files.stat']);
  });

  it('wait for their turn up to a bound, past which each is told so', async () => {
    let open = (): void => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const { call, request } = aBridge({ invoke: async (made) => (await gate, answer(made, null)) });
    const first = call('files.read');
    const waiting = Array.from({ length: 255 }, () => request('ping'));
    expect(await request('ping')).toEqual(error(-32603));
    open();
    await first;
    expect(await Promise.all(waiting)).toHaveLength(255);
    expect(await request('ping')).toMatchObject({ result: {} });
  });
});

describe('asking for a human over the bridge', () => {
  it('is answered here, is stated at once, and nothing runs', async () => {
    const { call, calls, latch, annotations } = aBridge();
    const said = await call('sharedos.escalate', { reason: ' outside my authority ' });
    expect(said).toMatchObject({ isError: false });
    expect(JSON.parse((said['content'] as { text: string }[])[0]?.text ?? '')).toEqual({
      escalated: true,
      reason: 'outside my authority',
      note: expect.stringContaining('Make no further calls'),
    });
    expect(annotations.get('escalationAsked')).toEqual({ tool: 'sharedos.escalate', reason: 'outside my authority' });
    expect(latch.reason).toBe('outside my authority');
    expect(calls).toEqual([]);
  });

  it('10: refuses every later call, of any tool, asks of it included, and counts them', async () => {
    const { call, calls, latch, request } = aBridge();
    await call('sharedos_escalate', { reason: 'first' });
    for (const [name, given] of [
      ['files.read', {}],
      ['sharedos.escalate', { reason: 'second' }],
      ['files.purge', []],
    ] as const)
      expect(await call(name, given)).toMatchObject({
        isError: true,
        _meta: { 'sharedos/status': 'denied', 'sharedos/code': 'escalation_pending' },
      });
    expect(latch).toMatchObject({ reason: 'first', callsAfterEscalation: 3 });
    expect(calls).toEqual([]);
    expect(await request('ping')).toMatchObject({ result: {} });
  });

  it.each<[string, unknown]>([
    ['no arguments', undefined],
    ['arguments that are none', 'broken'],
    ['a blank reason', { reason: '  ' }],
  ])('7: with %s has asked all the same', async (_, given) => {
    const { call, latch } = aBridge();
    await call('sharedos.escalate', given);
    expect(latch.reason).toBe(NO_REASON_GIVEN);
  });

  it('5: with too many words is heard in the first 512', async () => {
    const { call, latch } = aBridge();
    await call('sharedos.escalate', { reason: SPACED });
    expect(latch.reason).toBe(SPACED.slice(0, 512));
  });

  it('2: is a guess like any other where the turn was not given it', async () => {
    const without = TOOLS.filter(({ name }) => name !== 'sharedos.escalate');
    const { call, calls, latch } = aBridge({ tools: without, invoke: async (made) => refusal(made, 'denied', 'tool_unavailable') });
    expect(await call('sharedos.escalate', { reason: 'x' })).toMatchObject({ _meta: { 'sharedos/code': 'tool_unavailable' } });
    await call('files.read');
    expect(calls).toHaveLength(2);
    expect(latch.reason).toBeUndefined();
  });
});

describe('whatever is sent', () => {
  it('is answered or taken, and never thrown at anybody', async () => {
    const { bridge } = aBridge();
    const member = fc.oneof(fc.jsonValue(), fc.constantFrom('2.0', 'tools/call', 'tools/list', 'initialize', 'ping', 'files.read', {}));
    const likely = fc.record({
      jsonrpc: member,
      id: member,
      method: member,
      params: fc.oneof(member, fc.record({ name: member, arguments: member })),
    });
    const text = fc.oneof(
      fc.string(),
      fc.json(),
      likely.map((message) => JSON.stringify(message)),
      fc.array(likely).map((batch) => JSON.stringify(batch)),
    );
    const kinds = new Set<string>();
    await fc.assert(
      fc.asyncProperty(text, async (said) => {
        const { kind } = await bridge.handle(said);
        kinds.add(kind);
        expect(kind).not.toBe('aborted');
      }),
      { numRuns: 2_000 },
    );
    expect(kinds).toContain('answered');
  });

  it('leaves a span with names and outcomes alone', async () => {
    const receiver = await startSpanReceiver();
    vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', receiver.url);
    const telemetry = await startTelemetry({ service: 'test', instance: 'test-1', version: '1' });
    const { request, call } = aBridge({ invoke: async (made) => refusal(made, 'denied', 'no_matching_grant') });
    await call('files_read', { path: ['secret'] });
    await request('secret/method');
    await telemetry.shutdown();
    const spans = await receiver.waitFor((all) => all.length === 2, 60_000);
    vi.unstubAllEnvs();
    await receiver.stop();
    expect(spans.map(({ name, attributes }) => [name, attributes])).toEqual([
      [
        'mcp.handle',
        {
          'sharedos.execution.id': 'exec-1',
          'sharedos.mcp.method': 'tools/call',
          'sharedos.call.id': 'call-1',
          'sharedos.tool.name': 'files.read',
          'sharedos.outcome': 'denied',
          'sharedos.reason_code': 'no_matching_grant',
        },
      ],
      ['mcp.handle', { 'sharedos.execution.id': 'exec-1', 'sharedos.mcp.method': '_OTHER' }],
    ]);
  });
});

describe('a bridge whose turn is over', () => {
  it('answers every request with an internal error, and nobody is asked', async () => {
    const { bridge, request, call, calls } = aBridge();
    bridge.close();
    bridge.close();
    for (const method of ['initialize', 'ping', 'tools/list']) expect(await request(method)).toEqual(error(-32603));
    expect(await call('files.read')).toEqual(error(-32603));
    expect(await call('sharedos.escalate')).toEqual(error(-32603));
    expect(calls).toEqual([]);
  });

  it('aborts what is on its way, and answers it nothing', async () => {
    const { bridge, say, calls } = aBridge({ invoke: () => new Promise(() => undefined) });
    const pending = say({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'files.read' } });
    await expect.poll(() => calls.length).toBe(1);
    bridge.close();
    expect(await pending).toBe('aborted');
  });

  it('aborts a call when the turn is stopped under it', async () => {
    const stop = new AbortController();
    const { say, calls } = aBridge({ signal: stop.signal, invoke: () => new Promise(() => undefined) });
    const pending = say({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'files.read' } });
    await expect.poll(() => calls.length).toBe(1);
    stop.abort();
    expect(await pending).toBe('aborted');
  });

  it('is not opened over what is no catalogue', () =>
    expect(() =>
      openMcpBridge({
        catalog: { ...catalogOf(), catalogHash: 'x' },
        traceId: 't',
        requestedAt: START,
        serverInfo: { name: 's', version: '1' },
        invoke: async (call) => answer(call, null),
      }),
    ).toThrow(ContractError));
});
