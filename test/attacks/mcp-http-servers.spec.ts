import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { McpServer } from '@sharedos/contracts';
import type { OwnServer } from '@sharedos/tools';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ALICE, CUSTOMER, IMPATIENT, type McpWorld, NAMESPACE, codeOf, mcpWorld } from './mcp-tools-world.ts';

interface Rpc {
  readonly id?: number;
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>>;
}
type Called = (message: Rpc, response: ServerResponse) => void;

const TOOL = { name: 'read', description: 'Reads.', inputSchema: { type: 'object', properties: { customerId: { type: 'string' } } } };

const json = (response: ServerResponse, id: number | undefined, result: object): void => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
};
const said = (text: string): object => ({ content: [{ type: 'text', text }] });

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const servers: Server[] = [];
let world: McpWorld | undefined;
afterEach(async () => {
  await world?.stop();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** A server over HTTP that is honest but for its calls. */
const serving = async (called: Called, seen: IncomingMessage[] = []): Promise<string> => {
  const server = createServer((request, response) => {
    seen.push(request);
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (request.method !== 'POST') return void response.writeHead(request.method === 'DELETE' ? 200 : 405).end();
      const message = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Rpc;
      if (message.method === 'initialize')
        return json(response, message.id, {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'crm', version: '1' },
        });
      if (message.method === 'tools/list') return json(response, message.id, { tools: [TOOL] });
      if (message.method === 'tools/call') return called(message, response);
      return void response.writeHead(202).end();
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

const approvedAt = async (origin: string, path = '/mcp'): Promise<{ own: OwnServer; server: McpServer; world: McpWorld }> => {
  const made = mcpWorld({}, { origins: new Set([origin]) });
  world = made;
  const own: OwnServer = { namespaceId: NAMESPACE, owner: ALICE, server: 'crm', place: { kind: 'http', url: `${origin}${path}` } };
  return { own, server: await made.approved(own, CUSTOMER), world: made };
};
const callOf = async (called: Called): Promise<string> => {
  const { own, server, world: here } = await approvedAt(await serving(called));
  return codeOf(await here.call(own, server, 'mcp.crm.read', { customerId: 'acme' }));
};

describe('an MCP server behind a URL', () => {
  it('is used as one that is a process is', async () =>
    expect(await callOf(({ id }, response) => json(response, id, said('acme')))).toBe('succeeded'));

  it('may answer as a stream of events', async () =>
    expect(
      await callOf(({ id }, response) =>
        response
          .writeHead(200, { 'content-type': 'text/event-stream' })
          .end(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result: said('acme') })}\n\n`),
      ),
    ).toBe('succeeded'));

  it('is sent the secrets of its owner as headers, and none that would make another request of it', async () => {
    const seen: IncomingMessage[] = [];
    const origin = await serving(({ id }, response) => json(response, id, said('acme')), seen);
    const { own, world: here } = await approvedAt(origin);
    await here.secrets.put(own, 'authorization', 'Bearer of-alice');
    await here.secrets.put(own, 'host', 'another.example');
    seen.length = 0;
    await here.told(own);
    expect(seen.length).toBeGreaterThan(0);
    for (const { headers } of seen)
      expect(headers).toMatchObject({ authorization: 'Bearer of-alice', host: origin.slice('http://'.length) });
  });

  it('is not reached where the operator does not allow its host', async () => {
    const seen: IncomingMessage[] = [];
    const origin = await serving(({ id }, response) => json(response, id, said('acme')), seen);
    world = mcpWorld({}, { origins: new Set(['https://crm.example']) });
    for (const url of [
      `${origin}/mcp`,
      'http://169.254.169.254/latest',
      'file:///etc/passwd',
      'https://crm.example@127.0.0.1/mcp',
      'https://crm.example.evil.example/',
    ]) {
      const place = { kind: 'http', url } as const;
      expect(await world.pool.connection({ namespaceId: NAMESPACE, owner: ALICE, server: 'crm', place })).toEqual({
        ok: false,
        error: 'mcp_server_unavailable',
      });
    }
    expect(seen).toEqual([]);
  });

  it('is not followed to another host', async () => {
    const elsewhere: IncomingMessage[] = [];
    const other = await serving(({ id }, response) => json(response, id, said('stolen')), elsewhere);
    const code = await callOf((_, response) => response.writeHead(307, { location: `${other}/mcp` }).end());
    expect(code).toBe('mcp_call_interrupted');
    expect(elsewhere).toEqual([]);
  });

  it.each<[string, Called]>([
    ['answers with more than is taken', ({ id }, response) => json(response, id, said('x'.repeat(9 * 1024 * 1024)))],
    [
      'answers with a stream that has no end',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const more = (): void => {
          while (
            response.write(
              `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } })}\n\n`,
            )
          );
          response.once('drain', more);
        };
        more();
      },
    ],
    [
      'answers with a line that has no end',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const more = (): void => {
          while (response.write('x'.repeat(65_536)));
          response.once('drain', more);
        };
        more();
      },
    ],
    ['answers with a page for people', (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>hello</h1>')],
    ['answers with an error', (_, response) => response.writeHead(500).end('password=hunter2')],
    ['breaks off', (_, response) => response.destroy()],
  ])('that %s ends the call as failed', async (_, called) =>
    expect(await callOf(called)).toMatch(/^(?:mcp_call_interrupted|invalid_tool_result)$/),
  );

  it('that never answers is not waited for beyond its deadline', async () => {
    const origin = await serving(() => undefined);
    const { own, server, world: patient } = await approvedAt(origin);
    await patient.stop();
    world = mcpWorld({ callMs: IMPATIENT.callMs as number }, { origins: new Set([origin]) });
    expect(codeOf(await world.call(own, server, 'mcp.crm.read', { customerId: 'acme' }))).toBe('mcp_call_timed_out');
  });

  it('that asks to be signed in to is not signed in to', async () => {
    const code = await callOf((_, response) =>
      response.writeHead(401, { 'www-authenticate': 'Bearer resource_metadata="http://127.0.0.1:1/.well-known"' }).end(),
    );
    expect(code).toBe('mcp_call_interrupted');
  });
});
