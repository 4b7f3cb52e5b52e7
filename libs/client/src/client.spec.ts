import { type Bus, connectBus, route, serveRoutes, WORK_QUEUES, workQueue } from '@sharedos/bus';
import {
  type ExecutionResult,
  type ServiceName,
  AuditRecordMessage,
  GrantReply,
  GrantRevoke,
  MessageAck,
  MessageAckReply,
  TurnEvent,
  TurnGet,
  TurnGetReply,
  TurnRefused,
  TurnRequest,
  TurnResult,
  decodeBody,
  namespaceSubject,
  principalSubject,
} from '@sharedos/contracts';
import { type LocalStack, startLocalStack } from '@sharedos/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type SharedOS, connectSharedOS, newTurn } from './index.ts';

const namespaceId = 'tenant.1';
const alice = { kind: 'human', userId: 'alice' } as const;
const bob = { kind: 'human', userId: 'bob b' } as const;
const auditor = { kind: 'human', userId: 'auditor' } as const;
const scout = { kind: 'agent', agentId: 'scout' } as const;
const at = '2026-01-01T12:00:00.000Z';

/** The real broker with its real accounts and permissions; the far end is a few lines under a service's own credentials. */
let stack: LocalStack;
let executor: Bus;
let asAlice: SharedOS;

const asService = (name: ServiceName): Promise<Bus> => {
  const { user, password, inboxPrefix } = stack.credentials.service(name);
  return connectBus({ servers: stack.natsUrl, user, pass: password, name, inboxPrefix });
};
const asPrincipal = (principal: typeof alice | typeof bob | typeof auditor, requestTimeoutMs = 5_000): Promise<SharedOS> => {
  const { user, password } = stack.credentials.principal(namespaceId, principal);
  return connectSharedOS({ servers: stack.natsUrl, user, password, namespaceId, principal, requestTimeoutMs });
};

beforeAll(async () => {
  stack = await startLocalStack({
    principals: [
      { namespaceId, principal: alice },
      { namespaceId, principal: bob },
      { namespaceId, principal: auditor, auditor: true },
    ],
  });
  executor = await asService('tool-executor');
  asAlice = await asPrincipal(alice);
});
afterAll(async () => {
  await asAlice?.close();
  await executor?.close();
  await stack?.stop();
});

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const turn = (executionId: string, more: Partial<TurnRequest> = {}): TurnRequest => ({
  ...newTurn({ from: alice, agent: scout, purpose: 'try', executionId }),
  ...more,
});
const succeeded = (executionId: string): ExecutionResult => ({
  status: 'succeeded',
  version: '1',
  executionId,
  traceId: 'trace-1',
  events: [],
  startedAt: at,
  completedAt: at,
  output: 'done',
});
const publish = (bus: Bus, natsSubject: string, message: Parameters<Bus['publish']>[1], body: unknown) =>
  bus.publishStored(natsSubject, { message, body }, { timeoutMs: 5_000 });

/** Takes queued turns as the executor does and does with each what the test says. */
const taking = (handle: (request: TurnRequest | undefined, sequence: number) => Promise<void>, bus: Bus = executor): void => {
  const queue = workQueue(bus, {
    ...WORK_QUEUES['tool-executor'],
    group: 'tool-executor',
    concurrency: 1,
    leaseMs: 30_000,
    handle: async (delivery) => {
      const body = decodeBody(TurnRequest, delivery.data);
      await handle(body.ok ? body.value : undefined, delivery.sequence);
      await delivery.ack();
    },
    onDefect: (error) => {
      throw error;
    },
  });
  cleanups.push(() => queue.stop({ graceMs: 1_000 }));
};
const resultSubject = (executionId: string): string => principalSubject('turn.result', namespaceId, alice, executionId);

const serving = async (bus: Bus, service: ServiceName, ...routes: Parameters<typeof serveRoutes>[1]['routes']): Promise<void> => {
  const served = await serveRoutes(bus, {
    service,
    version: '0.1.0',
    instance: 'test',
    routes: [...routes],
    concurrencyMax: 4,
    onDefect: (error) => {
      throw error;
    },
  });
  cleanups.push(() => served.stop({ graceMs: 1_000 }));
};

describe('submitting a turn', () => {
  it('answers with the place in the queue, then the events, then the one result', async () => {
    taking(async (request) => {
      const event = {
        version: '1',
        eventId: 'e-1',
        executionId: 'turn-1',
        traceId: 'trace-1',
        sequence: 0,
        type: 'tool.called',
        data: {},
        occurredAt: at,
      } as const;
      await publish(executor, principalSubject('turn.event', namespaceId, alice, request?.executionId ?? ''), TurnEvent, event);
      await publish(executor, resultSubject(request?.executionId ?? ''), TurnResult, { result: succeeded('turn-1') });
    });
    const events: string[] = [];
    const submitted = await asAlice.turns.submit(turn('turn-1'), { onEvent: (event) => events.push(event.type) });
    expect(submitted).toMatchObject({ ok: true, value: { executionId: 'turn-1', sequence: expect.any(Number) as number } });
    expect(submitted.ok && (await submitted.value.result)).toEqual({ ok: true, value: { result: succeeded('turn-1') } });
    expect(events).toEqual(['tool.called']);
  });

  it('is refused by what the executor says of its place in the queue', async () => {
    const error = { code: 'identity_mismatch', message: 'the message names another sender', retryable: false };
    taking((_, sequence) =>
      publish(executor, principalSubject('turn.refused', namespaceId, alice, String(sequence)), TurnRefused, { sequence, error }).then(
        () => undefined,
      ),
    );
    const submitted = await asAlice.turns.submit(turn('turn-2'));
    expect(submitted.ok && (await submitted.value.result)).toEqual({ ok: false, error: { kind: 'refused', error } });
  });

  it('drops an answer of another execution, of another schema, and a malformed one', async () => {
    taking(async () => {
      await publish(executor, resultSubject('turn-3'), TurnResult, { result: succeeded('turn-other') });
      await publish(executor, resultSubject('turn-3'), TurnEvent, { result: succeeded('turn-3') });
      await publish(executor, resultSubject('turn-3'), TurnResult, { result: succeeded('turn-3'), surprise: true });
      await publish(executor, resultSubject('turn-3'), TurnResult, { result: succeeded('turn-3') });
    });
    const submitted = await asAlice.turns.submit(turn('turn-3'));
    expect(submitted.ok && (await submitted.value.result)).toEqual({ ok: true, value: { result: succeeded('turn-3') } });
  });

  it('is refused before it is sent when its body is no turn request', async () => {
    const submitted = await asAlice.turns.submit({ ...turn('turn-4'), authority: bob } as TurnRequest);
    expect(submitted).toMatchObject({ ok: false, error: { kind: 'refused', error: { code: 'invalid_request' } } });
  });

  it('is refused before it is sent when its body is too large', async () => {
    const submitted = await asAlice.turns.submit(turn('turn-5', { state: { filler: 'x'.repeat(64 * 1024) } }));
    expect(submitted).toMatchObject({ ok: false, error: { kind: 'refused', error: { code: 'request_too_large', retryable: false } } });
  });

  it('is refused when the queue of this principal is full, and leaves room for others', async () => {
    const queued = await Promise.all(Array.from({ length: 50 }, (_, index) => asAlice.turns.submit(turn(`filler-${index}`))));
    expect(queued.every(({ ok }) => ok)).toBe(true);
    expect(await asAlice.turns.submit(turn('one-too-many'))).toMatchObject({
      ok: false,
      error: { kind: 'refused', error: { code: 'turn_queue_full', retryable: true } },
    });
    const asBob = await asPrincipal(bob);
    cleanups.push(() => asBob.close());
    expect(await asBob.turns.submit(newTurn({ from: bob, agent: scout, purpose: 'try' }))).toMatchObject({ ok: true });
    for (const turnOfAlice of queued) if (turnOfAlice.ok) await turnOfAlice.value.stop();
    let taken = 0;
    const { promise: empty, resolve } = Promise.withResolvers<void>();
    taking(async () => {
      taken += 1;
      if (taken === 51) resolve();
    });
    await empty;
  });

  it('is unavailable when no answer comes in time, and asks for the stored one first', async () => {
    await serving(
      executor,
      'tool-executor',
      route('turn.get', {
        request: TurnGet,
        reply: TurnGetReply,
        handle: async ({ executionId }) => {
          if (executionId !== 'turn-6') return { ok: true as const, value: { summary: { executionId, state: 'running' as const } } };
          return { ok: true as const, value: { summary: { executionId, state: 'succeeded' as const }, result: succeeded(executionId) } };
        },
      }),
    );
    taking(() => Promise.resolve());
    const [stored, running] = await Promise.all(['turn-6', 'turn-7'].map((id) => asAlice.turns.submit(turn(id), { resultTimeoutMs: 50 })));
    expect(stored?.ok && (await stored.value.result)).toEqual({ ok: true, value: { result: succeeded('turn-6') } });
    expect(running?.ok && (await running.value.result)).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    const watched = await asAlice.turns.watch('turn-6');
    expect(watched.ok && (await watched.value.result)).toEqual({ ok: true, value: { result: succeeded('turn-6') } });
  });
});

describe('asking a service', () => {
  it('passes on a value', async () => {
    const router = await asService('messaging-router');
    cleanups.push(() => router.close());
    await serving(
      router,
      'messaging-router',
      route('message.ack', {
        request: MessageAck,
        reply: MessageAckReply,
        handle: async ({ sequence }) => ({ ok: true, value: { acknowledged: sequence === 6 } }),
      }),
    );
    expect(await asAlice.messages.ack(6)).toEqual({ ok: true, value: true });
    expect(await asAlice.messages.ack(7)).toEqual({ ok: true, value: false });
  });

  it('passes on a typed refusal, and is known by its subject alone', async () => {
    const authorizer = await asService('authorizer');
    cleanups.push(() => authorizer.close());
    const error = { code: 'not_the_issuer', message: 'only its issuer revokes a grant' };
    await serving(
      authorizer,
      'authorizer',
      route('grant.revoke', {
        request: GrantRevoke,
        reply: GrantReply,
        handle: async (_, { principal }) => ({ ok: false, error: { ...error, details: { principal: principal ?? null } } }),
      }),
    );
    expect(await asAlice.grants.revoke('grant-1')).toEqual({
      ok: false,
      error: { kind: 'refused', error: { ...error, details: { principal: alice } } },
    });
  });

  it('is unavailable, never an allow, when nobody serves it', async () => {
    const impatient = await asPrincipal(alice, 300);
    cleanups.push(() => impatient.close());
    expect(await impatient.grants.get('grant-1')).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
  });

  it('is unavailable when no answer comes by the deadline', async () => {
    const projector = await asService('audit-projector');
    cleanups.push(() => projector.close());
    const deaf = projector.nats.subscribe(`sharedos.v1.*.records.query.*.*`);
    await projector.flush(1_000);
    const impatient = await asPrincipal(alice, 100);
    cleanups.push(() => impatient.close());
    expect(await impatient.records.query({})).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    deaf.unsubscribe();
  });

  it('is unavailable when the answer is not of the schema that was asked for', async () => {
    const projector = await asService('audit-projector');
    cleanups.push(() => projector.close());
    const forger = projector.nats.subscribe(`sharedos.v1.*.records.query.*.*`, {
      callback: (_, message) => message.respond(JSON.stringify({ ok: true, value: { records: [], upTo: 0 } })),
    });
    await projector.flush(1_000);
    expect(await asAlice.records.query({})).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    forger.unsubscribe();
  });
});

describe('following the audit', () => {
  const record = (id: string) => ({
    version: '1' as const,
    id,
    type: 'tool.invoked' as const,
    outcome: 'denied' as const,
    at,
    traceId: 'trace-1',
    namespaceId,
    actor: scout,
    authority: alice,
    owner: alice,
    purpose: 'try',
  });
  const written = (bus: Bus, id: string, ns = namespaceId) =>
    publish(bus, namespaceSubject('audit', ns, 'denied', 'tool', 'invoked'), AuditRecordMessage, record(id));

  it('hands over each record with its sequence, of this namespace only, without a gap', async () => {
    const reading = await asPrincipal(auditor);
    cleanups.push(() => reading.close());
    const seen: string[] = [];
    const gaps: unknown[] = [];
    const { promise: two, resolve } = Promise.withResolvers<void>();
    const tail = await reading.audit.tail({
      onRecord: (event) => {
        seen.push(event.id);
        if (seen.length === 2) resolve();
      },
      onGap: (gap) => gaps.push(gap),
    });
    expect(tail.ok).toBe(true);
    for (const [id, ns] of [
      ['a', namespaceId],
      ['x', 'another'],
      ['b', namespaceId],
    ] as const)
      await written(executor, id, ns);
    await two;
    expect([seen, gaps]).toEqual([['a', 'b'], []]);
  });

  it('is refused to whoever is not an auditor', async () => {
    const tail = await asAlice.audit.tail({ onRecord: () => undefined, onGap: () => undefined });
    expect(tail).toMatchObject({ ok: false, error: { kind: 'refused', error: { code: 'not_permitted' } } });
  });
});

describe('connecting', () => {
  it('is refused with a line that says what to do when the password is wrong', async () => {
    const { user } = stack.credentials.principal(namespaceId, alice);
    await expect(connectSharedOS({ servers: stack.natsUrl, user, password: 'wrong', namespaceId, principal: alice })).rejects.toThrow(
      /check its password/,
    );
  });

  it('is refused when the user is another principal than the one named', async () => {
    const { user, password } = stack.credentials.principal(namespaceId, bob);
    await expect(connectSharedOS({ servers: stack.natsUrl, user, password, namespaceId, principal: alice })).rejects.toThrow(/subscribe/);
  });

  it('ends every wait when it is closed', async () => {
    const session = await asPrincipal(alice);
    taking(() => Promise.resolve());
    const submitted = await session.turns.submit(turn('turn-9'));
    await session.close();
    expect(submitted.ok && (await submitted.value.result)).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
  });
});
