import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AuthorityClient, type Bus } from '@sharedos/bus';
import { type ScriptedCall, type SharedOS, type SubmittedTurn, connectSharedOS } from '@sharedos/client';
import {
  type AccessContext,
  type AgentAddress,
  type AuditEvent,
  type ExecutionResult,
  SCHEMA_HEADER,
  type ServiceName,
  type TurnRequest,
  namespaceSubject,
  timestampOf,
} from '@sharedos/contracts';
import { FILES_PLANE } from '@sharedos/tools';
import { type ServiceProcess, freePort, waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { connectAs, readAudit, readOperations, readUses } from '../support/evidence.ts';
import { type CallAnswer, answerOf, callsOf, countAnswers, submit, turnOf } from '../support/many-turns.ts';
import { redisCommand } from '../support/redis-command.ts';
import { ALICE, AUDITOR, NAMESPACE, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const MAX_USES = 5;
const LEASE_MS = 1_500;
/** How long an executor waits for an authorizer before it denies. */
const AUTHORITY_DEADLINE_MS = 3_000;
const RECOVERY_DEADLINE_MS = 60_000;

const KEEPER: AgentAddress = { kind: 'agent', agentId: 'keeper' };
const LONG_LIVED = ['authorizer', 'tool-executor', 'messaging-router', 'audit-projector'] as const satisfies readonly ServiceName[];

// Several processes share this machine's cores with whatever else runs: nothing here measures time.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 });

let system: TestSystem;
let alice: SharedOS;
/** Alice again, who does not wait long for an answer. */
let impatient: SharedOS;
let folder: string;
let asAuthorizer: Bus;
let asExecutor: Bus;
let asProjector: Bus;
const healthPorts = new Map<string, number>();
/** Every answer that any turn of this file was given; what was refused in them must be on record at the end. */
const told: ExecutionResult[] = [];

beforeAll(async () => {
  for (const service of LONG_LIVED) for (const replica of [0, 1]) healthPorts.set(`${service} ${replica}`, await freePort());
  system = await startTestSystem({
    replicas: { authorizer: 2, 'tool-executor': 2 },
    turnLeaseMs: LEASE_MS,
    env: (service, replica) => ({
      SHAREDOS_HEALTH_PORT: String(healthPorts.get(`${service} ${replica}`)),
      ...(service === 'tool-executor' ? { SHAREDOS_DEADLINE_MS: String(AUTHORITY_DEADLINE_MS) } : {}),
    }),
  });
  alice = await system.client(ALICE);
  const { user, password } = system.stack.credentials.principal(NAMESPACE, ALICE);
  impatient = await connectSharedOS({
    servers: system.stack.natsUrl,
    user,
    password,
    namespaceId: NAMESPACE,
    principal: ALICE,
    requestTimeoutMs: 500,
  });
  [asAuthorizer, asExecutor, asProjector] = await Promise.all([
    connectAs(system.stack, 'authorizer'),
    connectAs(system.stack, 'tool-executor'),
    connectAs(system.stack, 'audit-projector'),
  ]);
  const empty = ['free', 'stopped', 'flushed', 'kept', 'SIGKILL', 'SIGTERM', 'working'].map((name) => [`${name}/log.txt`, ''] as const);
  folder = await system.files(ALICE, Object.fromEntries(empty));
  await system.letAliceRunScout();
  await system.grant(
    'run-keeper',
    { namespace: 'sharedos.execution', path: ['agent', 'keeper'], actions: ['invoke'], scope: 'exact' },
    { to: KEEPER },
  );
  for (const path of ['free', 'SIGKILL', 'SIGTERM', 'working']) await system.grant(`free-${path}`, { path: [path], actions: ['append'] });
  await system.grant('five-stopped', { path: ['stopped'], actions: ['append'] }, { constraints: { maxUses: MAX_USES } });
  await system.grant('five-flushed', { path: ['flushed'], actions: ['append'] }, { constraints: { maxUses: MAX_USES } });
  await system.grant('five-kept', { path: ['kept'], actions: ['append'] }, { to: KEEPER, constraints: { maxUses: MAX_USES } });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
});
afterAll(async () => {
  await Promise.all([asAuthorizer, asExecutor, asProjector, impatient].map((connection) => connection?.close()));
  await system?.stop();
});

const append = (path: string, line: string = randomUUID()): ScriptedCall => ({
  tool: 'files.append',
  arguments: { path: [path, 'log.txt'], content: `${line}\n` },
});

const linesOf = async (path: string): Promise<readonly string[]> =>
  (await readFile(join(folder, path, 'log.txt'), 'utf8')).split('\n').filter((line) => line !== '');

const answered = async (turn: SubmittedTurn): Promise<ExecutionResult> => {
  const result = await answerOf(turn);
  told.push(result);
  return result;
};

const run = async (calls: readonly ScriptedCall[], agent: AgentAddress = SCOUT): Promise<ExecutionResult> =>
  answered(await submit(alice, turnOf({ agent, calls })));

const codes = (result: ExecutionResult): readonly (string | undefined)[] => callsOf(result).map(({ status, code }) => code ?? status);

/** Calls until the grant is spent, whatever refuses it meanwhile. */
const spendRest = async (path: string): Promise<void> => {
  await waitFor(
    `the grant over ${path} to be spent`,
    async () => {
      const results = await Promise.all([0, 1, 2, 3].map(() => run([append(path)])));
      return results.every((result) => codes(result)[0] === 'grant_exhausted');
    },
    RECOVERY_DEADLINE_MS,
  );
};

const expectSpentExactly = async (path: string, grantId: string): Promise<void> => {
  expect(await linesOf(path)).toHaveLength(MAX_USES);
  const uses = await readUses(asAuthorizer, grantId);
  expect(uses.map(({ ordinal }) => ordinal)).toEqual([1, 2, 3, 4, 5]);
  expect(new Set(uses.map(({ operation }) => operation)).size).toBe(MAX_USES);
};

interface Health {
  readonly ready: boolean;
  readonly reason?: string;
}

const healthOf = async (service: ServiceName, replica: number): Promise<Health> => {
  const answer = await fetch(`http://127.0.0.1:${healthPorts.get(`${service} ${replica}`)}/readyz`);
  return { ready: answer.status === 200, ...((await answer.json()) as { reason?: string }) };
};

const everyProcess = (): readonly (readonly [ServiceName, number])[] =>
  LONG_LIVED.flatMap((name) => system.services[name].map((_, replica) => [name, replica] as const));

const waitUntilAllReady = async (): Promise<void> => {
  for (const [service, replica] of everyProcess())
    await waitFor(`${service} ${replica} to be ready`, async () => (await healthOf(service, replica)).ready, RECOVERY_DEADLINE_MS);
};

const failClosed = ({ metadata }: AuditEvent): boolean => metadata?.['failClosed'] === true;

describe('while Redis is stopped', () => {
  beforeAll(async () => {
    for (let use = 0; use < 3; use += 1) expect(codes(await run([append('stopped')]))).toEqual(['succeeded']);
    await system.stack.redis.kill();
  });

  it('refuses a bounded call as usage_store_unavailable, and lets an unbounded one of the same turn run', async () => {
    const result = await run([append('stopped'), append('free', 'while Redis was stopped'), append('stopped')]);
    expect(codes(result)).toEqual(['usage_store_unavailable', 'succeeded', 'usage_store_unavailable']);
    expect(await linesOf('stopped')).toHaveLength(3);
    expect(await linesOf('free')).toContain('while Redis was stopped');
    const records = await system.records(result.traceId, (found) => found.some(({ type }) => type === 'turn.ended'));
    const denied = records.filter(({ type, outcome }) => type === 'authorization.checked' && outcome === 'denied');
    expect(denied.map((record) => [record.reason, failClosed(record)])).toEqual(Array(2).fill(['usage_store_unavailable', true]));
  });

  it('withholds a tool that only a bounded grant opens, and still runs the turn', async () => {
    const result = await run([append('kept')], KEEPER);
    expect(result.status).toBe('succeeded');
    expect(codes(result)).toEqual(['tool_unavailable']);
    expect(await linesOf('kept')).toEqual([]);
    const records = await system.records(result.traceId, (found) => found.some(({ type }) => type === 'turn.ended'));
    expect(records.map((record) => [record.type, record.outcome, record.reason ?? null, failClosed(record)])).toEqual([
      ['authority.resolved', 'succeeded', null, false],
      ['authorization.checked', 'allowed', null, false],
      ['tool.catalog.listed', 'succeeded', null, true],
      ['tool.invoked', 'denied', 'tool_unavailable', false],
      ['turn.ended', 'succeeded', null, false],
    ]);
    expect(records.find(({ type }) => type === 'tool.invoked')?.metadata).toMatchObject({ source: 'envelope', cause: 'not_offered' });
  });

  it('says that reach is unavailable', async () => {
    const context: AccessContext = {
      namespaceId: NAMESPACE,
      actor: KEEPER,
      authority: ALICE,
      owner: ALICE,
      purpose: 'testing',
      traceId: randomUUID(),
      enabledToolNamespaces: ['files'],
      now: timestampOf(Date.now()),
    };
    const authority = new AuthorityClient(asExecutor, 5_000);
    const opened = await authority.open({ turnId: randomUUID(), context, validForMs: 10_000, auditId: randomUUID() });
    if (!opened.ok) throw new Error(opened.error.reason);
    const ceiling = { resource: { namespace: FILES_PLANE.namespace, path: [] }, action: 'append' };
    const reach = await authority.reach(opened.value.token, context, [ceiling]);
    expect(reach).toMatchObject({
      ok: true,
      value: {
        reach: { status: 'unavailable', reasonCode: 'usage_store_unavailable' },
        discovered: [{ allowed: false, reasonCode: 'usage_store_unavailable' }],
      },
    });
  });

  it('rebuilds by itself from the ledger when Redis comes back empty: five effects in all, three of them from before', async () => {
    await system.stack.redis.restart();
    await spendRest('stopped');
    await expectSpentExactly('stopped', 'five-stopped');
  });
});

describe('when Redis is emptied while calls are running', () => {
  it('has five effects in all, three of them from before', async () => {
    for (let use = 0; use < 3; use += 1) expect(codes(await run([append('flushed')]))).toEqual(['succeeded']);
    let ended = 0;
    const running = Array.from({ length: 40 }, async () => {
      const result = await run([append('flushed'), append('flushed')]);
      ended += 1;
      return result;
    });
    for (const enough of [1, 12, 24]) {
      await waitFor(`${enough} turns to end`, () => ended >= enough, RECOVERY_DEADLINE_MS);
      expect(await redisCommand(system.stack.redisUrl, 'FLUSHALL')).toBe('+OK');
    }
    const answers = countAnswers((await Promise.all(running)).flatMap(callsOf));
    expect(answers['succeeded'] ?? 0).toBeLessThanOrEqual(2);
    const known = new Set(['succeeded', 'grant_exhausted', 'usage_store_unavailable']);
    expect(Object.keys(answers).filter((answer) => !known.has(answer))).toEqual([]);
    await spendRest('flushed');
    await expectSpentExactly('flushed', 'five-flushed');
  });
});

/** Sends a request until the queue has it. The execution id makes it one turn however often it is stored. */
const submitThroughOutage = (request: TurnRequest): Promise<SubmittedTurn> =>
  waitFor(
    `the request ${request.executionId} to be queued`,
    async () => {
      const submitted = await alice.turns.submit(request);
      return submitted.ok ? submitted.value : undefined;
    },
    RECOVERY_DEADLINE_MS,
  );

/** How often each of these turns was claimed and ended, by the ledger. */
const endsOf = async (executionIds: readonly string[]) => {
  const wanted = new Set(executionIds);
  const operations = (await readOperations(asProjector)).filter(([first]) => first?.type === 'claimed' && wanted.has(first.operationId));
  return operations.map((records) => records.filter(({ type }) => type === 'ended').length);
};

const appearances = (lines: readonly string[], line: string): number => lines.filter((found) => found === line).length;

describe('when NATS is restarted with its data', () => {
  it.each(['SIGKILL', 'SIGTERM'] as const)(
    'finishes after %s what was queued right before, each turn exactly once, by services that were not restarted',
    async (signal) => {
      const pids = system.stack.services().map(({ pid }) => pid);
      // Frozen, so that what is published now is surely still queued when the broker goes.
      for (const executor of system.services['tool-executor']) executor.pause();
      const requests = Array.from({ length: 12 }, (_, index) =>
        turnOf({ executionId: `${signal}-${index}`, calls: [append(signal, `${signal}-${index}`)] }),
      );
      const submitted = await Promise.all(requests.map((request) => submit(alice, request)));
      await (signal === 'SIGKILL' ? system.stack.nats.kill() : system.stack.nats.stop());
      for (const executor of system.services['tool-executor']) executor.resume();
      await system.stack.nats.restart();

      const results = await Promise.all(submitted.map(answered));
      expect(results.map(({ status }) => status)).toEqual(requests.map(() => 'succeeded'));
      expect([...(await linesOf(signal))].sort()).toEqual(requests.map(({ executionId }) => executionId).sort());
      expect(await endsOf(requests.map(({ executionId }) => executionId))).toEqual(requests.map(() => 1));
      await waitUntilAllReady();
      expect(system.stack.services().map(({ pid }) => pid)).toEqual(pids);
    },
  );

  it('ends every turn that was running exactly once, and does nothing twice', async () => {
    let ended = 0;
    const requests = Array.from({ length: 24 }, (_, index) =>
      turnOf({ executionId: `working-${index}`, calls: [0, 1, 2].map((call) => append('working', `working-${index}-${call}`)) }),
    );
    const running = requests.map(async (request) => {
      const result = await answered(await submitThroughOutage(request));
      ended += 1;
      return result;
    });
    await waitFor('the first turns to end', () => ended >= 2, RECOVERY_DEADLINE_MS);
    await system.stack.nats.kill();
    await system.stack.nats.restart();

    const results = await Promise.all(running);
    const lines = await linesOf('working');
    for (const result of results) {
      callsOf(result).forEach(({ status }: CallAnswer, call) => {
        if (status === 'succeeded') expect(appearances(lines, `${result.executionId}-${call}`), `${result.executionId}-${call}`).toBe(1);
      });
    }
    expect(new Set(lines).size).toBe(lines.length);
    expect(await endsOf(requests.map(({ executionId }) => executionId))).toEqual(requests.map(() => 1));
    // A turn in the middle of a call may have to be given up, but never on another ground than that somebody was away.
    const given = countAnswers(results.flatMap((result) => (result.status === 'succeeded' ? [] : [turnAnswer(result)])));
    expect(Object.keys(given).filter((code) => !['turn_cancelled', 'audit_unavailable', 'authority_unavailable'].includes(code))).toEqual(
      [],
    );
    await waitUntilAllReady();
    expect(codes(await run([append('free')]))).toEqual(['succeeded']);
  });
});

const turnAnswer = (result: ExecutionResult): CallAnswer => ({
  tool: 'turn',
  status: 'failed',
  ...('error' in result && result.error !== undefined ? { code: result.error.code } : {}),
});

describe('while no authorizer answers', () => {
  it('denies a turn as authority_unavailable when all of them are frozen', async () => {
    for (const authorizer of system.services.authorizer) authorizer.pause();
    const result = await run([append('free', 'frozen')]);
    for (const authorizer of system.services.authorizer) authorizer.resume();
    expect(result).toMatchObject({ status: 'denied', error: { code: 'authority_unavailable' } });
    expect(await linesOf('free')).not.toContain('frozen');
  });

  it('denies it when all of them are gone, changes no grant, and goes on once another is started', async () => {
    await Promise.all(system.services.authorizer.map((authorizer: ServiceProcess) => authorizer.kill()));
    expect(await run([append('free', 'gone')])).toMatchObject({ status: 'denied', error: { code: 'authority_unavailable' } });
    expect(await impatient.grants.revoke('free-free')).toMatchObject({ ok: false, error: { kind: 'unavailable' } });

    const env = (replica: number) => ({ SHAREDOS_HEALTH_PORT: String(healthPorts.get(`authorizer ${replica}`)) });
    await Promise.all(
      [0, 1].map((replica) => system.stack.startService('authorizer', { instance: `again-${replica}`, env: env(replica) })),
    );
    expect(codes(await run([append('free', 'started again')]))).toEqual(['succeeded']);
    expect(await linesOf('free')).not.toContain('gone');
  });
});

describe('when the log of authority is in trouble', () => {
  it('is not ready while the log is silent, and ready again by itself', async () => {
    system.stack.nats.pause();
    try {
      for (const replica of [0, 1]) {
        const health = await waitFor(
          `authorizer ${replica} not to be ready`,
          async () => {
            const found = await healthOf('authorizer', replica);
            return found.ready ? undefined : found;
          },
          RECOVERY_DEADLINE_MS,
        );
        expect(health.reason).toBe('the log is silent');
      }
    } finally {
      system.stack.nats.resume();
    }
    await waitUntilAllReady();
    expect(codes(await run([append('free')]))).toEqual(['succeeded']);
  });

  it('is not ready, and decides nothing, once the log holds an event that it cannot read', async () => {
    const written = await asAuthorizer.publishStored(
      namespaceSubject('log', NAMESPACE, 'grant', 'unreadable'),
      new TextEncoder().encode('{}'),
      {
        timeoutMs: 5_000,
        expectedLastSubjectSequence: 0,
        headers: { [SCHEMA_HEADER]: 'log.record/9' },
      },
    );
    expect(written.ok).toBe(true);
    for (const replica of [0, 1]) {
      const health = await waitFor(
        `authorizer ${replica} not to be ready`,
        async () => {
          const found = await healthOf('authorizer', replica);
          return found.ready ? undefined : found;
        },
        RECOVERY_DEADLINE_MS,
      );
      expect(health.reason).toMatch(/^an event of the log cannot be read/);
    }
    expect(await run([append('free', 'unreadable')])).toMatchObject({ status: 'denied', error: { code: 'authority_unavailable' } });
    expect(await linesOf('free')).not.toContain('unreadable');
  });

  it('does not start on such a log', async () => {
    await expect(system.stack.startService('authorizer', { instance: 'late' })).rejects.toThrow(
      'the log could not be folded up to its end',
    );
  });
});

describe('the audit of all this', () => {
  it('holds every record that the ledger carries, and every refusal that anybody was told', async () => {
    const carried = (await readOperations(asProjector)).flatMap((records) =>
      records.flatMap((record) => ('audit' in record ? record.audit : [])),
    );
    expect(carried.length).toBeGreaterThan(told.length);
    const audit = await waitFor(
      'everything carried to be in the audit',
      async () => {
        const found = await readAudit(asProjector);
        return carried.every(({ id }) => found.has(id)) && found;
      },
      RECOVERY_DEADLINE_MS,
    );

    const recorded = new Map<string, AuditEvent[]>();
    for (const event of audit.values()) recorded.set(event.traceId, [...(recorded.get(event.traceId) ?? []), event]);
    const missing = told.flatMap((result) => {
      const events = recorded.get(result.traceId) ?? [];
      const invoked = countAnswers(
        events
          .filter(({ type }) => type === 'tool.invoked')
          .map(({ outcome, reason }) => ({ tool: '', status: outcome as 'denied', ...(reason === undefined ? {} : { code: reason }) })),
      );
      const refused = Object.entries(countAnswers(callsOf(result))).filter(([answer, count]) => (invoked[answer] ?? 0) !== count);
      const ended = events.filter(({ type }) => type === 'turn.ended').map(({ reason }) => reason);
      const code = 'error' in result ? result.error?.code : undefined;
      return refused.length > 0 || ended.length !== 1 || ended[0] !== code
        ? [{ executionId: result.executionId, status: result.status, refused, ended }]
        : [];
    });
    expect(missing).toEqual([]);
    const outages = told.flatMap((result) => codes(result)).filter((code) => code === 'usage_store_unavailable').length;
    expect(
      [...audit.values()].filter(({ type, reason }) => type === 'authorization.checked' && reason === 'usage_store_unavailable').length,
    ).toBeGreaterThanOrEqual(outages);
  });
});
