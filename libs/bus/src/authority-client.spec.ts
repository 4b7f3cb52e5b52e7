import {
  type AccessContext,
  AuthorityReach,
  AuthorityReachReply,
  type ReachAndDiscovery,
  type Reply,
  revisionOf,
} from '@sharedos/contracts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AuthorityClient } from './authority-client.ts';
import type { Bus } from './bus.ts';
import { type TestServer, testServer, until } from './broker.fixture.ts';
import { type ServedRoutes, route, serveRoutes } from './serve.ts';

const scout = { kind: 'agent', agentId: 'scout' } as const;
const alice = { kind: 'human', userId: 'alice' } as const;
const context: AccessContext = {
  namespaceId: 'acme',
  actor: scout,
  authority: alice,
  owner: alice,
  purpose: 'testing',
  traceId: 'trace-1',
  enabledToolNamespaces: [],
  now: '2026-01-01T12:00:00.000Z',
};
const reach: ReachAndDiscovery = {
  revision: revisionOf('store', 1),
  reach: { status: 'unavailable', reasonCode: 'authority_unavailable' },
  discovered: [],
};
const refusal = (code: string, retryable: boolean): Reply<ReachAndDiscovery> => ({
  ok: false,
  error: { code, message: 'not now', retryable },
});

describe('a question to the authorizers', () => {
  let server: TestServer;
  let asking: Bus;
  let answering: Bus;
  let served: ServedRoutes | undefined;
  let asked: number;

  const serve = async (answer: () => Reply<ReachAndDiscovery> | Promise<Reply<ReachAndDiscovery>>): Promise<void> => {
    const handle = async (): Promise<Reply<ReachAndDiscovery>> => {
      asked += 1;
      return answer();
    };
    const routes = [route('authority.reach', { request: AuthorityReach, reply: AuthorityReachReply, handle })];
    served = await serveRoutes(answering, {
      service: 'authorizer',
      version: '0.1.0',
      instance: 'i-1',
      routes,
      concurrencyMax: 4,
      onDefect: (error) => {
        throw error;
      },
    });
  };
  const ask = (timeoutMs: number) => new AuthorityClient(asking, timeoutMs).reach('token', context, []);

  beforeAll(async () => {
    server = await testServer();
    [asking, answering] = await Promise.all([server.connect(), server.connect()]);
  });
  afterAll(() => server.end());
  beforeEach(() => {
    asked = 0;
  });
  afterEach(async () => {
    await served?.stop({ graceMs: 1_000 });
    served = undefined;
  });

  it('is asked again within its deadline while nobody is there to answer', async () => {
    const answer = ask(10_000);
    await serve(() => ({ ok: true, value: reach }));
    expect(await answer).toEqual({ ok: true, value: reach });
  });

  it('is asked again when a replica says that another moment may answer otherwise', async () => {
    await serve(() => (asked < 3 ? refusal('authority_unavailable', true) : { ok: true, value: reach }));
    expect(await ask(10_000)).toEqual({ ok: true, value: reach });
    expect(asked).toBe(3);
  });

  it('is unavailable, and never allowed, when nobody answers by the deadline', async () => {
    expect(await ask(300)).toEqual({
      ok: false,
      error: { code: 'authority_unavailable', reason: expect.stringContaining('nobody answers') },
    });
  });

  it('keeps the last reason of a replica that would not answer by the deadline', async () => {
    await serve(() => refusal('audit_unavailable', true));
    expect(await ask(1_500)).toEqual({ ok: false, error: { code: 'audit_unavailable', reason: 'audit_unavailable: not now' } });
    expect(asked).toBeGreaterThan(1);
  });

  it('keeps that reason when nobody answers any more', async () => {
    const tooLate = Promise.withResolvers<Reply<ReachAndDiscovery>>();
    await serve(() => (asked === 1 ? refusal('audit_unavailable', true) : tooLate.promise));
    expect(await ask(2_000)).toMatchObject({ ok: false, error: { code: 'audit_unavailable' } });
    expect(asked).toBe(2);
    tooLate.resolve(refusal('authority_unavailable', true));
  });

  it('is asked once when the refusal is final', async () => {
    await serve(() => refusal('invalid_request', false));
    expect(await ask(10_000)).toEqual({ ok: false, error: { code: 'authority_unavailable', reason: 'invalid_request: not now' } });
    expect(asked).toBe(1);
  });

  it('does not outlast its deadline while the connection is gone', async () => {
    const lonely = await server.connect();
    await lonely.close();
    await until('the connection to be closed', () => !lonely.connected);
    const answer = await new AuthorityClient(lonely, 300).reach('token', context, []);
    expect(answer).toMatchObject({ ok: false, error: { code: 'authority_unavailable' } });
  });
});
