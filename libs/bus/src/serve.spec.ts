import { ROOT_CONTEXT, context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { type Reply, namespaceSubject, principalSubject, replyMessage, wireMessage } from '@sharedos/contracts';
import { type Msg, headers } from 'nats';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Bus } from './bus.ts';
import { type TestServer, testServer, until } from './broker.fixture.ts';
import { type Delivery, type Route, type ServeOptions, type ServedRoutes, route, serveRoutes } from './serve.ts';

const Ask = wireMessage('ask/1', z.strictObject({ text: z.string() }));
const Answer = replyMessage('answer/1', z.strictObject({ text: z.string() }));
type Ask = { text: string };
type Answer = Reply<{ text: string }>;

const alice = { kind: 'human', userId: 'alice' } as const;
const subject = principalSubject('grant.get', 'acme', alice);
const options = { timeoutMs: 2_000 };

describe('a served request', () => {
  let server: TestServer;
  let client: Bus;
  let bus: Bus;
  let served: ServedRoutes | undefined;
  let defects: { error: unknown; where: string }[];
  let deliveries: Delivery[];

  const serve = async (routes: readonly Route[], more: Partial<ServeOptions> = {}): Promise<ServedRoutes> => {
    served = await serveRoutes(bus, {
      service: 'authorizer',
      version: '0.1.0',
      instance: 'i-1',
      routes,
      concurrencyMax: 4,
      onDefect: (error, where) => defects.push({ error, where }),
      ...more,
    });
    return served;
  };
  const answering = (handle: (body: Ask, delivery: Delivery) => Promise<Answer>): Route =>
    route('grant.get', {
      request: Ask,
      reply: Answer,
      handle: async (body, delivery) => {
        deliveries.push(delivery);
        return handle(body, delivery);
      },
    });
  const echo = (): Route => answering(async (body) => ({ ok: true, value: body }));
  const raw = async (natsSubject: string, data: string | Uint8Array, schema?: string): Promise<Msg> => {
    const sent = headers();
    if (schema !== undefined) sent.set('sharedos-schema', schema);
    return server.admin.request(natsSubject, data, { timeout: 2_000, headers: sent });
  };
  const ask = (natsSubject = subject, text = 'hello') => client.request(natsSubject, Ask, { text }, Answer, options);

  beforeAll(async () => {
    server = await testServer();
    bus = await server.connect();
    client = await server.connect();
  });
  afterAll(() => server.end());
  beforeEach(() => {
    defects = [];
    deliveries = [];
  });
  afterEach(async () => {
    await served?.stop({ graceMs: 1_000 });
    served = undefined;
  });

  it('is answered, and the caller is whom the subject names', async () => {
    await serve([echo()]);
    expect(await ask()).toEqual({ ok: true, value: { ok: true, value: { text: 'hello' } } });
    expect(deliveries[0]).toMatchObject({ verb: 'grant.get', namespaceId: 'acme', principal: alice, rest: [] });
  });

  it('may come from a plain command line that names no schema', async () => {
    await serve([echo()]);
    expect((await raw(subject, '{"text":"plain"}')).json()).toEqual({ ok: true, value: { text: 'plain' } });
  });

  it('is unavailable when nobody serves it', async () => {
    expect(await ask()).toEqual({ ok: false, error: { kind: 'unavailable', reason: `nobody answers on ${subject}` } });
  });

  it('is unavailable when no answer comes in time', async () => {
    let release = (): void => {};
    await serve([answering(() => new Promise((resolve) => (release = () => resolve({ ok: true, value: { text: 'late' } }))))]);
    expect(await client.request(subject, Ask, { text: '' }, Answer, { timeoutMs: 50 })).toMatchObject({
      ok: false,
      error: { kind: 'unavailable' },
    });
    release();
  });

  it.each([
    ['not JSON', 'nonsense', 'answer/1'],
    ['of another shape', '{"ok":true,"value":{"text":"x","more":1}}', 'answer/1'],
    ['without a schema', '{"ok":true,"value":{"text":"x"}}', undefined],
    ['of another schema', '{"ok":true,"value":{"text":"x"}}', 'answer/2'],
  ])('is unavailable when the answer is %s', async (_what, body, schema) => {
    const sent = headers();
    if (schema !== undefined) sent.set('sharedos-schema', schema);
    const stranger = server.admin.subscribe('stranger', { callback: (_error, message) => void message.respond(body, { headers: sent }) });
    await server.admin.flush();
    expect(await ask('stranger')).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    stranger.unsubscribe();
  });

  it.each([
    ['not JSON', 'nonsense'],
    ['not UTF-8', new Uint8Array([0xff])],
    ['an unknown key', '{"text":"x","sender":"bob"}'],
    ['a member named twice', '{"text":"x","text":"y"}'],
    ['over the limit of bytes', JSON.stringify({ text: 'x'.repeat(70_000) })],
  ])('is refused when its body is or holds %s, and the service lives on', async (_what, body) => {
    await serve([echo()]);
    const answer = await raw(subject, body);
    expect(answer.json()).toMatchObject({ ok: false, error: { code: 'invalid_request', retryable: false } });
    expect(answer.headers?.get('sharedos-schema')).toBe('answer/1');
    expect(deliveries).toHaveLength(0);
    expect((await ask()).ok).toBe(true);
  });

  it('is refused when it names another schema', async () => {
    await serve([echo()]);
    expect((await raw(subject, '{"text":"x"}', 'ask/2')).json()).toMatchObject({
      ok: false,
      error: { code: 'invalid_request', message: 'expected a ask/1' },
    });
    expect(deliveries).toHaveLength(0);
  });

  it.each([
    ['a namespace that is no canonical token', 'sharedos.v1.~YQ.grant.get.human.alice'],
    ['an unknown kind of principal', 'sharedos.v1.acme.grant.get.robot.alice'],
    ['a literal wildcard for a principal', 'sharedos.v1.acme.grant.get.human.*'],
    ['a literal wildcard at the end', 'sharedos.v1.acme.grant.get.human.>'],
    ['a literal wildcard for a namespace', 'sharedos.v1.*.grant.get.human.alice'],
  ])('is dropped unanswered when its subject has %s', async (_what, natsSubject) => {
    const { counts } = await serve([echo()]);
    server.admin.publish(natsSubject, '{"text":"x"}', { reply: '_INBOX.nobody' });
    await until('dropped', () => counts.dropped === 1);
    expect(deliveries).toHaveLength(0);
  });

  it('is dropped when there is nobody to answer', async () => {
    const { counts } = await serve([echo()]);
    server.admin.publish(subject, '{"text":"x"}');
    await until('dropped', () => counts.dropped === 1);
    expect(deliveries).toHaveLength(0);
  });

  it.each([
    ['rejects', async () => Promise.reject(new Error('secret path /etc/shadow'))],
    [
      'throws',
      () => {
        throw new Error('secret path /etc/shadow');
      },
    ],
    ['answers what is not JSON', async () => ({ ok: true, value: { text: 1n } }) as unknown as Answer],
    ['answers more than the broker takes', async () => ({ ok: true, value: { text: 'x'.repeat(9_000_000) } }) as Answer],
  ] as const)('tells nothing of the error when its handler %s, and the service lives on', async (_what, handle) => {
    let broken = true;
    await serve([answering((body) => (broken ? handle() : Promise.resolve({ ok: true, value: body })))]);
    expect(await ask()).toEqual({
      ok: true,
      value: { ok: false, error: { code: 'internal_error', message: 'the service could not complete the request', retryable: false } },
    });
    expect(defects).toHaveLength(1);
    expect(defects[0]?.where).toBe('grant.get');
    broken = false;
    expect(await ask()).toMatchObject({ ok: true, value: { ok: true } });
  });

  it('waits its turn when all handlers are busy, and is refused as overloaded past the bound', async () => {
    const release: (() => void)[] = [];
    const { counts } = await serve(
      [answering((body) => new Promise((resolve) => release.push(() => resolve({ ok: true, value: body }))))],
      {
        concurrencyMax: 1,
        waitingMax: 1,
        waitMs: 5_000,
      },
    );
    const first = ask(subject, '1');
    await until('the first is handled', () => release.length === 1);
    const second = ask(subject, '2');
    const third = ask(subject, '3');
    expect(await third).toEqual({
      ok: true,
      value: { ok: false, error: { code: 'service_overloaded', message: 'too many requests at once', retryable: true } },
    });
    release[0]?.();
    await until('the second is handled', () => release.length === 2);
    release[1]?.();
    expect(await Promise.all([first, second])).toMatchObject([
      { ok: true, value: { value: { text: '1' } } },
      { ok: true, value: { value: { text: '2' } } },
    ]);
    expect(counts).toMatchObject({ overloaded: 1 });
  });

  it('waits for a busy service no longer than it may', async () => {
    let release = (): void => {};
    await serve([answering((body) => new Promise((resolve) => (release = () => resolve({ ok: true, value: body }))))], {
      concurrencyMax: 1,
      waitMs: 30,
    });
    const first = ask();
    await until('the first is handled', () => deliveries.length === 1);
    expect(await ask()).toMatchObject({ ok: true, value: { ok: false, error: { code: 'service_overloaded' } } });
    release();
    expect((await first).ok).toBe(true);
  });

  it('is answered by one replica of the service only', async () => {
    await serve([echo()]);
    const other = await serveRoutes(client, {
      service: 'authorizer',
      version: '0.1.0',
      instance: 'i-2',
      routes: [echo()],
      concurrencyMax: 4,
      onDefect: () => {},
    });
    await Promise.all(Array.from({ length: 20 }, () => ask()));
    expect(deliveries).toHaveLength(20);
    await other.stop({ graceMs: 100 });
  });

  it('to one instance reaches that one alone', async () => {
    const control = route('execution.control', { request: Ask, reply: Answer, handle: async (body) => ({ ok: true, value: body }) });
    await serve([control], { service: 'tool-executor', instance: 'exec.1' });
    expect((await ask(namespaceSubject('execution.control', 'acme', 'exec.1'))).ok).toBe(true);
    expect(await ask(namespaceSubject('execution.control', 'acme', 'exec.2'))).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
  });

  it('that runs when the service stops is finished, or aborted when the grace is over', async () => {
    await serve([
      answering(
        (_body, { signal }) =>
          new Promise((resolve) => signal.addEventListener('abort', () => resolve({ ok: true, value: { text: 'aborted' } }))),
      ),
    ]);
    const running = ask();
    await until('handled', () => deliveries.length === 1);
    await served?.stop({ graceMs: 20 });
    expect(await running).toMatchObject({ ok: true, value: { value: { text: 'aborted' } } });
    expect(await ask()).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
  });

  it('carries on when the broker was restarted', async () => {
    await serve([echo()]);
    await server.stop();
    await server.start();
    await until('answered again', async () => (await ask()).ok);
  });

  describe('under a trace', () => {
    beforeAll(() => {
      context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
      propagation.setGlobalPropagator(new W3CTraceContextPropagator());
    });
    afterAll(() => {
      context.disable();
      propagation.disable();
    });

    it('is handled in the trace it was asked in', async () => {
      await serve([echo()]);
      const asking = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 };
      await context.with(trace.setSpanContext(ROOT_CONTEXT, asking), () => ask());
      expect(deliveries[0]?.traceId).toBe(asking.traceId);
    });

    it('has no trace of its own when it carries none', async () => {
      await serve([echo()]);
      await raw(subject, '{"text":"x"}');
      expect(deliveries[0]?.traceId).toBeUndefined();
    });
  });
});
