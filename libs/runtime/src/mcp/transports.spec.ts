import { PassThrough } from 'node:stream';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { PAYLOAD_BYTES_MAX } from '@sharedos/contracts';
import { afterEach, describe, expect, it } from 'vitest';
import { type OpenBridge, TOOLS, aBridge, answer, catalogOf, refusal } from './bridge.fixture.ts';
import type { McpBridgeOptions } from './bridge.ts';
import { type McpHttpServer, knowsToken, serveMcpHttp } from './http.ts';
import { serveMcpStdio } from './stdio.ts';

const TOKEN = 'the-token';
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

interface Served extends OpenBridge {
  readonly server: McpHttpServer;
  post(body: string | object, headers?: Record<string, string>): Promise<Response>;
  send(method: string, path?: string, headers?: Record<string, string>, body?: string): Promise<Response>;
}

const serve = async (options: Partial<McpBridgeOptions> = {}): Promise<Served> => {
  const open = aBridge(options);
  const server = await serveMcpHttp(open.bridge, { mayConnect: knowsToken(TOKEN) });
  closing.push(() => server.close());
  const send: Served['send'] = (method, path = '/mcp', headers = {}, body) =>
    fetch(new URL(path, server.url), {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, ...headers },
      ...(body === undefined ? {} : { body }),
    });
  return {
    ...open,
    server,
    send,
    post: (body, headers = {}) =>
      send('POST', '/mcp', { 'content-type': 'application/json', ...headers }, typeof body === 'string' ? body : JSON.stringify(body)),
  };
};
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };

/** What the official client is asked to do, over whatever it is connected by. */
const useAsClient = async (client: Client): Promise<void> => {
  expect(client.getServerVersion()).toEqual({ name: 'sharedos', version: '1.0.0' });
  expect(client.getServerCapabilities()).toEqual({ tools: { listChanged: false } });
  const listed = await client.listTools();
  expect(listed.tools.map(({ name }) => name)).toEqual(TOOLS.map(({ name }) => name));
  expect(listed._meta).toEqual({ 'sharedos/catalogHash': catalogOf().catalogHash, 'sharedos/executionId': 'exec-1' });
  expect(await client.callTool({ name: 'files_read', arguments: { path: ['a'] } })).toEqual({
    content: [{ type: 'text', text: '{"path":["a"]}' }],
    isError: false,
  });
  expect(await client.callTool({ name: 'files.stat', arguments: { size: 3 } })).toMatchObject({ structuredContent: { size: 3 } });
  expect(await client.ping()).toEqual({});
  await expect(client.listResources()).rejects.toThrow();
};

describe('over HTTP', () => {
  const connect = async ({ server }: Served): Promise<Client> => {
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(
      new StreamableHTTPClientTransport(new URL(server.url), { requestInit: { headers: { authorization: `Bearer ${TOKEN}` } } }) as never,
    );
    closing.push(() => client.close());
    return client;
  };

  it('the official client connects, lists and calls', async () => useAsClient(await connect(await serve())));

  it('a refused call is a result to the official client', async () => {
    const client = await connect(await serve({ invoke: async (call) => refusal(call, 'denied', 'no_matching_grant') }));
    expect(await client.callTool({ name: 'files.read' })).toMatchObject({ isError: true, _meta: { 'sharedos/code': 'no_matching_grant' } });
  });

  it('an ask and what comes after it are answered to the official client', async () => {
    const served = await serve();
    const client = await connect(served);
    expect(await client.callTool({ name: 'sharedos.escalate', arguments: { reason: 'why' } })).toMatchObject({ isError: false });
    expect(await client.callTool({ name: 'files.read' })).toMatchObject({
      isError: true,
      _meta: { 'sharedos/code': 'escalation_pending' },
    });
    expect(served.calls).toEqual([]);
  });

  it('a message is answered as JSON, with the session', async () => {
    const { post, server } = await serve();
    const response = await post(PING, { 'mcp-session-id': server.sessionId, accept: 'application/json, text/event-stream' });
    expect([response.status, response.headers.get('content-type'), response.headers.get('mcp-session-id')]).toEqual([
      200,
      'application/json',
      server.sessionId,
    ]);
    expect(await response.json()).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
  });

  it('a batch is answered as a list', async () => {
    const { post } = await serve();
    const response = await post([PING, { ...PING, id: 2 }]);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual([1, 2].map((id) => ({ jsonrpc: '2.0', id, result: {} })));
  });

  it('events are sent to who takes nothing else', async () => {
    const { post } = await serve();
    const response = await post([PING, { ...PING, id: 2 }], { accept: 'text/event-stream' });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    expect(await response.text()).toBe(
      [1, 2].map((id) => `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result: {} })}\n\n`).join(''),
    );
  });

  it('notifications alone are taken with 202 and nothing', async () => {
    const { post } = await serve();
    const response = await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    expect([response.status, await response.text()]).toEqual([202, '']);
  });

  it.each<[string, string, number]>([
    ['what is not JSON', '{', -32700],
    ['an empty batch', '[]', -32600],
  ])('%s is a bad request', async (_, body, code) => {
    const response = await (await serve()).post(body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ id: null, error: { code } });
  });

  it.each(['GET', 'PUT', 'PATCH', 'OPTIONS'])('%s is not served', async (method) => {
    const response = await (await serve()).send(method);
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST, DELETE']);
    expect(await response.json()).toMatchObject({ error: { code: 'method_not_allowed' } });
  });

  it('DELETE is answered, and the turn goes on', async () => {
    const { send, post } = await serve();
    expect((await send('DELETE')).status).toBe(200);
    expect((await post(PING)).status).toBe(200);
  });

  it.each(['/', '/mcp/', '/mcp/x', '/MCP', '/health'])('nothing is at %s', async (path) => {
    const response = await (await serve()).send('POST', path, {}, JSON.stringify(PING));
    expect([response.status, await response.text()]).toEqual([404, '']);
  });

  it.each(['', 'Bearer', 'Bearer other', `Basic ${TOKEN}`, `Bearer ${TOKEN}x`])(
    'with authorization "%s" nothing is heard',
    async (authorization) => {
      const { send, calls } = await serve();
      const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'files.read' } };
      const response = await send('POST', '/mcp', { authorization }, JSON.stringify(call));
      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ error: { code: 'unauthorized' } });
      expect(calls).toEqual([]);
    },
  );

  it("another session's id is unknown here, on every answer there is this one's", async () => {
    const { post, server } = await serve();
    const response = await post(PING, { 'mcp-session-id': 'another' });
    expect([response.status, response.headers.get('mcp-session-id')]).toEqual([404, server.sessionId]);
    expect(await response.json()).toMatchObject({ error: { code: 'unknown_session' } });
  });

  it.each<[number, string, [string, string, Record<string, string>]]>([
    [404, 'the path before the token', ['PUT', '/x', { authorization: '', 'mcp-session-id': 'y' }]],
    [401, 'the token before the session', ['PUT', '/mcp', { authorization: '', 'mcp-session-id': 'y' }]],
    [404, 'the session before the method', ['PUT', '/mcp', { 'mcp-session-id': 'y' }]],
    [405, 'the method before the body', ['PUT', '/mcp', {}]],
  ])('%d: %s is looked at', async (status, _, [method, path, headers]) =>
    expect((await (await serve()).send(method, path, headers, '{')).status).toBe(status),
  );

  it('a message larger than one may be is refused', async () => {
    const { post, calls } = await serve();
    const response = await post({ ...PING, params: { text: 'x'.repeat(PAYLOAD_BYTES_MAX) } });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ error: { code: 'body_too_large' } });
    expect(calls).toEqual([]);
  });

  it('a call on its way is cut when the bridge closes, and the closed port refuses the next', async () => {
    const { post, calls, bridge, server } = await serve({ invoke: () => new Promise(() => undefined) });
    const pending = post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'files.read' } });
    const cut = expect(pending).rejects.toThrow();
    await expect.poll(() => calls.length).toBe(1);
    bridge.close();
    await cut;
    expect(await (await post(PING)).json()).toMatchObject({ error: { code: -32603 } });
    await server.close();
    await server.close();
    await expect(post(PING)).rejects.toThrow();
    expect(calls).toHaveLength(1);
  });
});

describe('over standard input and output', () => {
  it('the official client connects, lists and calls', async () => {
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [`${import.meta.dirname}/stdio-server.fixture.ts`],
        stderr: 'ignore',
      }) as never,
    );
    closing.push(() => client.close());
    await useAsClient(client);
  });

  const lines = async (input: string, options: Partial<McpBridgeOptions> = {}): Promise<unknown[]> => {
    const [from, to] = [new PassThrough(), new PassThrough()];
    from.end(input);
    await serveMcpStdio(aBridge(options).bridge, from, to);
    to.end();
    const said = (await to.toArray()) as Buffer[];
    return Buffer.concat(said)
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as unknown);
  };
  const text = (message: object): string => `${JSON.stringify(message)}\n`;

  it('answers come in the order of the messages', async () => {
    const call = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'files.read' } });
    const slowly = async (made: Parameters<McpBridgeOptions['invoke']>[0]) => {
      if (made.id === 'call-1') await new Promise((resolve) => setImmediate(resolve));
      return answer(made, made.id);
    };
    const said = await lines(text(call(1)) + text(PING) + text(call(2)), { invoke: slowly });
    expect(said).toMatchObject([
      { id: 1, result: { content: [{ text: 'call-1' }] } },
      { id: 1, result: {} },
      { id: 2, result: { content: [{ text: 'call-2' }] } },
    ]);
  });

  it('blank lines are skipped, and the last needs no end', async () =>
    expect(await lines(`\n  \r\n${JSON.stringify(PING)}`)).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }]));

  it('a line that is no message is told so, and the next is heard', async () =>
    expect(await lines(`nonsense\n${text(PING)}`)).toMatchObject([
      { id: null, error: { code: -32700 } },
      { id: 1, result: {} },
    ]));

  it('a line larger than one may be is told so once, and the next is heard', async () =>
    expect(await lines(`${'x'.repeat(PAYLOAD_BYTES_MAX + 1)}\n${text(PING)}`)).toMatchObject([
      { id: null, error: { code: -32700 } },
      { id: 1, result: {} },
    ]));

  it('ends when nobody reads any more', async () => {
    const [from, to] = [new PassThrough(), new PassThrough()];
    const served = serveMcpStdio(aBridge().bridge, from, to);
    to.destroy();
    await served;
  });
});
