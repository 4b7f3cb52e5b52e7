import { randomUUID } from 'node:crypto';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { newTurn } from '@sharedos/client';
import { generateKeyPair } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestGateway, startGateway } from '../support/gateway.ts';
import { ALICE, AUDITOR, BOB, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const DEADLINE_MS = 60_000;
const PLAN = 'Buy milk.';

let system: TestSystem;
let gateway: TestGateway;

beforeAll(async () => {
  system = await startTestSystem({
    env: (service) => (service === 'tool-executor' ? { SHAREDOS_TOOL_NAMESPACES: 'files,sharedos' } : ({} as Record<string, string>)),
  });
  await system.files(ALICE, { 'notes/plan.md': PLAN, 'private/diary.md': 'Nobody reads this' });
  await system.letAliceRunScout();
  await system.grant('notes', { path: ['notes'], actions: ['read', 'search'] });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
  await system.grant(
    'write-to-bob',
    { namespace: 'sharedos.messaging', path: ['human', 'bob'], actions: ['send'], scope: 'exact' },
    { to: ALICE },
  );
  const registered = await (
    await system.client(ALICE)
  ).agents.register({
    agentId: SCOUT.agentId,
    authority: ALICE,
    owner: ALICE,
    runtime: { runtime: 'remote', config: {} },
  });
  expect(registered).toMatchObject({ ok: true, value: { agent: { status: 'active' } } });
  gateway = await startGateway(system);
}, 2 * DEADLINE_MS);
afterAll(async () => {
  await gateway?.stop();
  await system?.stop();
});

const asked = async (method: string, path: string, options?: Parameters<TestGateway['request']>[2]) => {
  const response = await gateway.request(method, path, options);
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : (JSON.parse(text) as unknown), headers: response.headers };
};
const call = (path: readonly string[], tool = 'files.read') => ({
  id: randomUUID(),
  tool,
  arguments: { path },
  traceId: `trace-${randomUUID()}`,
  requestedAt: new Date().toISOString(),
});
const refusal = (code: string) => ({ error: { code, message: expect.any(String), requestId: expect.any(String) } });

describe('whoever has no token that names a known principal', () => {
  it.each([
    ['no token', async () => null],
    ['a token that is none', async () => 'abc'],
    ['a token of another issuer', () => gateway.token('alice', { issuer: 'https://elsewhere.test' })],
    ['a token for somebody else to take', () => gateway.token('alice', { audience: 'another-service' })],
    ['a token that has expired', () => gateway.token('alice', { expires: '-1m' })],
    ['a token of a stranger', () => gateway.token('mallory')],
    [
      'a token that another key signed',
      async (): Promise<string> => gateway.token('alice', { key: (await generateKeyPair('EdDSA')).privateKey }),
    ],
    [
      'a token of an algorithm that is not taken',
      async () => gateway.token('alice', { algorithm: 'ES256', key: (await generateKeyPair('ES256')).privateKey }),
    ],
    [
      'a token signed with a secret',
      () => gateway.token('alice', { algorithm: 'HS256', key: new TextEncoder().encode('secret'.repeat(8)) }),
    ],
    [
      'an unsigned token',
      async () => {
        const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
        return `${part({ alg: 'none' })}.${part({ sub: 'alice', iss: 'https://issuer.test', aud: 'sharedos', exp: 4_000_000_000 })}.`;
      },
    ],
  ] as readonly (readonly [string, () => Promise<string | null>])[])('is refused with %s', async (_, token) => {
    const answer = await asked('GET', '/v1/tools', { token: await token() });
    expect(answer).toMatchObject({ status: 401, body: refusal('unauthorized') });
    expect(answer.headers.get('www-authenticate')).toBe('Bearer');
  });

  it('does not learn which paths there are', async () => {
    for (const path of ['/', '/v1/nothing', '/mcp'])
      expect(await asked('POST', path, { token: null, body: {} })).toMatchObject({ status: 401 });
  });
  it('learns whether requests are taken', async () =>
    expect(await asked('GET', '/healthz', { token: null })).toMatchObject({ status: 200, body: { status: 'ok', protocolVersion: '1' } }));
});

describe('the form of an answer', () => {
  it('is never kept, and repeats the id of its request where that is one', async () => {
    const { headers } = await asked('GET', '/v1/nothing', { headers: { 'x-request-id': 'mine-1' } });
    expect([headers.get('cache-control'), headers.get('x-request-id')]).toEqual(['no-store', 'mine-1']);
    expect((await asked('GET', '/v1/nothing', { headers: { 'x-request-id': 'x'.repeat(300) } })).headers.get('x-request-id')).toHaveLength(
      36,
    );
  });
  it('tells an unknown path from a path that has no such method', async () => {
    expect(await asked('GET', '/v1/nothing')).toMatchObject({ status: 404, body: refusal('not_found') });
    const answer = await asked('GET', '/v1/tools/invoke');
    expect(answer).toMatchObject({ status: 405, body: refusal('method_not_allowed') });
    expect(answer.headers.get('allow')).toBe('POST');
  });
  it.each([
    ['what is no JSON', '{"a":', 400, 'invalid_json'],
    ['a member twice', '{"id":"a","id":"b"}', 400, 'invalid_json'],
    ['what is no call', { id: 'a' }, 400, 'invalid_request'],
    ['a context of its own', { ...call(['notes']), context: { actor: BOB } }, 400, 'invalid_request'],
    ['more than is taken', { ...call(['notes']), arguments: { path: ['x'.repeat(1_100_000)] } }, 413, 'body_too_large'],
  ])('refuses %s', async (_, body, status, code) =>
    expect(await asked('POST', '/v1/tools/invoke', { body })).toMatchObject({ status, body: refusal(code) }),
  );
  it('refuses a page of a browser, and permits none', async () => {
    const answer = await asked('GET', '/v1/tools', { headers: { origin: 'https://page.test' } });
    expect(answer).toMatchObject({ status: 403, body: refusal('permission_denied') });
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
  });
});

describe('tools over HTTP', () => {
  it('lists those that the agent may find, and where it may operate', async () => {
    const tools = await asked('GET', '/v1/tools');
    expect(tools.status).toBe(200);
    expect((tools.body as { name: string }[]).map(({ name }) => name)).toEqual(['files.read', 'files.search']);
    expect(JSON.stringify(tools.body)).not.toContain('requiredCapability');
    expect(await asked('GET', '/v1/reach')).toMatchObject({ status: 200, body: { status: 'computed' } });
  });

  it('carries out what a grant covers, and records it under the trace of the call', async () => {
    const body = call(['notes', 'plan.md']);
    expect(await asked('POST', '/v1/tools/invoke', { body })).toMatchObject({
      status: 200,
      body: { status: 'succeeded', callId: body.id, tool: 'files.read', output: { content: PLAN } },
    });
    const records = await system.records(body.traceId, (all) => all.some(({ type }) => type === 'turn.ended'));
    expect(records.filter(({ type }) => type === 'tool.invoked')).toMatchObject([{ actor: SCOUT, outcome: 'succeeded' }]);
  });

  it('answers a denial with 200: it was decided', async () => {
    const denied = await asked('POST', '/v1/tools/invoke', { body: call(['private', 'diary.md']) });
    expect(denied).toMatchObject({ status: 200, body: { status: 'denied', error: { code: 'no_matching_grant' } } });
    const unknown = await asked('POST', '/v1/tools/invoke', { body: call([], 'files.purge') });
    expect(unknown).toMatchObject({ status: 200, body: { status: 'denied', error: { code: 'tool_unavailable' } } });
  });

  it('operates on a resource by the same rules', async () => {
    const operation = (path: readonly string[], more = {}) => ({
      operationId: randomUUID(),
      resource: { namespace: 'files', path, ...more },
      action: 'read',
    });
    const read = operation(['notes', 'plan.md']);
    expect(await asked('POST', '/v1/resources/invoke', { body: read })).toMatchObject({
      status: 200,
      body: { status: 'succeeded', operationId: read.operationId, output: { content: PLAN } },
    });
    expect(await asked('POST', '/v1/resources/invoke', { body: operation(['private', 'diary.md']) })).toMatchObject({
      status: 200,
      body: { status: 'denied', error: { code: 'no_matching_grant' } },
    });
    expect(await asked('POST', '/v1/resources/invoke', { body: operation(['notes'], { owner: BOB }) })).toMatchObject({
      status: 200,
      body: { status: 'denied', error: { code: 'invalid_request' } },
    });
  });

  it('says how a request would be decided, and no more of a refusal than that', async () => {
    const requirement = (path: readonly string[]) => ({ resource: { namespace: 'files', path }, action: 'read' });
    expect(await asked('POST', '/v1/authorize', { body: requirement(['notes', 'plan.md']) })).toMatchObject({
      status: 200,
      body: { allowed: true, reasonCode: 'allowed', matchedGrantId: 'notes' },
    });
    const { status, body } = await asked('POST', '/v1/authorize', { body: requirement(['private']) });
    expect([status, body]).toMatchObject([200, { allowed: false, reasonCode: 'no_matching_grant' }]);
    expect(Object.keys(body as object)).not.toContain('metadata');
  });

  it('asks nobody where the bearer has no agent', async () =>
    expect(await asked('GET', '/v1/tools', { token: await gateway.token('bob') })).toMatchObject({
      status: 403,
      body: refusal('not_permitted'),
    }));
});

describe('messages over HTTP', () => {
  const message = (more = {}) => ({
    version: '1',
    id: randomUUID(),
    sender: ALICE,
    receiver: BOB,
    purpose: 'testing',
    payload: 'stones?',
    traceId: 'trace-message',
    createdAt: new Date().toISOString(),
    ...more,
  });
  it('are accepted with 202', async () =>
    expect(await asked('POST', '/v1/messages', { body: message() })).toMatchObject({ status: 202, body: { status: 'accepted' } }));
  it('are denied with 200 where no grant covers the recipient', async () =>
    expect(await asked('POST', '/v1/messages', { body: message({ receiver: AUDITOR }) })).toMatchObject({
      status: 200,
      body: { status: 'denied', error: { code: 'no_matching_grant' } },
    }));
  it('are not sent in the name of another', async () =>
    expect(await asked('POST', '/v1/messages', { body: message({ sender: BOB }) })).toMatchObject({
      status: 403,
      body: refusal('identity_mismatch'),
    }));
});

describe('turns over HTTP', () => {
  const turn = (executionId: string, from = ALICE) => {
    const { requestedAt: _, ...request } = newTurn({ from, agent: SCOUT, purpose: 'testing', executionId, at: '2026-11-30T12:00:00Z' });
    return { ...request, message: { ...request.message, createdAt: new Date().toISOString() } };
  };
  it('are answered with their result, and the same again with the same', async () => {
    // Nobody decides the steps of a turn that was not asked for by the gateway for itself.
    const body = turn('by-http');
    const first = await asked('POST', '/v1/turns', { body });
    expect(first).toMatchObject({ status: 200, body: { status: 'failed', executionId: 'by-http', error: { code: 'driver_failed' } } });
    expect(await asked('POST', '/v1/turns', { body })).toMatchObject({ status: 200, body: first.body as object });
    expect(await asked('GET', '/v1/turns/by-http')).toMatchObject({
      status: 200,
      body: { summary: { state: 'failed' }, result: first.body },
    });
  });
  it('stream their events, and go on after the last that was seen', async () => {
    const body = turn('streamed');
    await asked('POST', '/v1/turns', { body });
    const read = async (headers: Readonly<Record<string, string>> = {}) =>
      (await gateway.request('GET', '/v1/turns/streamed/events', { headers })).text();
    const all = await read();
    const ids = [...all.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
    expect(ids.length).toBeGreaterThan(0);
    expect(all).toMatch(/event: result\ndata: .*"executionId":"streamed"/);
    const rest = await read({ 'last-event-id': String(ids[0]) });
    expect([...rest.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id))).toEqual(ids.slice(1));
  });
  it('are not there for others', async () =>
    expect((await asked('GET', '/v1/turns/by-http', { token: await gateway.token('bob') })).status).toBe(404));
});

describe('records over HTTP', () => {
  /** Reads events until there are so many, and leaves. */
  const events = async (count: number, lastEventId?: string): Promise<readonly { id: number; data: unknown }[]> => {
    const leaving = new AbortController();
    const response = await gateway.request('GET', '/v1/audit/records', {
      token: await gateway.token('auditor'),
      headers: lastEventId === undefined ? {} : { 'last-event-id': lastEventId },
      signal: leaving.signal,
    });
    expect(response.status).toBe(200);
    let text = '';
    const found = () =>
      [...text.matchAll(/^id: (\d+)\nevent: record\ndata: (.*)$/gm)].map(([, id, data]) => ({
        id: Number(id),
        data: JSON.parse(data!) as unknown,
      }));
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString('utf8');
      if (found().length >= count) break;
    }
    leaving.abort();
    return found().slice(0, count);
  };
  it('come in order and go on where a reader left', async () => {
    const first = await events(3);
    const ids = first.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    expect(await events(2, String(ids[0]))).toEqual(first.slice(1));
  });
  it('are not for those who may not read them', async () =>
    expect((await asked('GET', '/v1/audit/records', { token: await gateway.token('bob') })).status).toBe(403));
});

describe('MCP over HTTP', () => {
  const connected = async (subject = 'alice') => {
    const client = new Client({ name: 'test', version: '1' });
    const headers = { authorization: `Bearer ${await gateway.token(subject)}` };
    const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit: { headers } });
    await client.connect(transport as Transport);
    return { client, sessionId: transport.sessionId ?? '' };
  };

  it('gives the same tools, and carries out what a grant covers', async () => {
    const { client } = await connected();
    expect(client.getServerCapabilities()).toEqual({ tools: { listChanged: true } });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['files.read', 'files.search']);
    expect(tools[0]).toMatchObject({ annotations: { readOnlyHint: true }, _meta: { 'sharedos/namespace': 'files' } });
    const read = await client.callTool({ name: 'files_read', arguments: { path: ['notes', 'plan.md'] } });
    expect(read).toMatchObject({ isError: false, structuredContent: { content: PLAN } });
    await client.close();
  });

  it('says a refusal as a result', async () => {
    const { client } = await connected();
    const denied = await client.callTool({ name: 'files.read', arguments: { path: ['private', 'diary.md'] } });
    expect(denied).toMatchObject({ isError: true, _meta: { 'sharedos/status': 'denied', 'sharedos/code': 'no_matching_grant' } });
    const unknown = await client.callTool({ name: 'files.purge', arguments: {} });
    expect(unknown).toMatchObject({ isError: true, _meta: { 'sharedos/code': 'tool_unavailable' } });
    await client.close();
  });

  it('sees in the next call what was granted and revoked since, and says that the list has changed', async () => {
    const { client } = await connected();
    const changed = Promise.withResolvers<void>();
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => changed.resolve());
    await client.listTools();
    await system.grant('listing', { path: ['notes'], actions: ['list'] });
    expect(await client.callTool({ name: 'files.list', arguments: { path: ['notes'] } })).toMatchObject({ isError: false });
    await changed.promise;
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('files.list');
    await (await system.client(ALICE)).grants.revoke('listing');
    expect(await client.callTool({ name: 'files.list', arguments: { path: ['notes'] } })).toMatchObject({ isError: true });
    await client.close();
  });

  it('tells how far a call has come to whoever wants to know', async () => {
    const { client } = await connected();
    const steps: number[] = [];
    const asks = { name: 'files.read', arguments: { path: ['notes', 'plan.md'] } };
    await client.callTool(asks, undefined, { onprogress: ({ progress }) => steps.push(progress) });
    expect(steps.length).toBeGreaterThan(0);
    await client.close();
  });

  it('runs nothing after a human was asked for', async () => {
    await system.grant('ask', { namespace: 'sharedos', path: ['escalation'], actions: ['request'], scope: 'exact' });
    const { client } = await connected();
    const ask = await client.callTool({ name: 'sharedos.escalate', arguments: { reason: 'May I read the diary?' } });
    expect(ask).toMatchObject({ isError: false });
    const after = await client.callTool({ name: 'files.read', arguments: { path: ['notes', 'plan.md'] } });
    expect(after).toMatchObject({ isError: true, _meta: { 'sharedos/code': 'escalation_pending' } });
    await client.close();
  });

  it('is in no other hands: neither without a token, nor another bearer, nor another session', async () => {
    const { client, sessionId } = await connected();
    const headers = { accept: 'application/json, text/event-stream', 'mcp-session-id': sessionId };
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    expect((await asked('POST', '/mcp', { body: list, headers, token: null })).status).toBe(401);
    expect((await asked('POST', '/mcp', { body: list, headers, token: await gateway.token('bob') })).status).toBe(403);
    const unknown = { ...headers, 'mcp-session-id': randomUUID() };
    expect(await asked('POST', '/mcp', { body: list, headers: unknown })).toMatchObject({ status: 404, body: refusal('unknown_session') });
    await client.close();
  });
});

describe('the log of the gateway', () => {
  it('holds neither tokens nor bodies', async () => {
    const token = await gateway.token('alice');
    await asked('POST', '/v1/tools/invoke', { token, body: call(['notes', 'plan.md']) });
    expect(gateway.process.output()).toContain('"route":"/v1/tools/invoke"');
    expect(gateway.process.output()).not.toContain(token.slice(0, 20));
    expect(gateway.process.output()).not.toMatch(/milk|plan\.md|diary/);
  });
});
