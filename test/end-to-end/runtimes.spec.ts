import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { connectBus } from '@sharedos/bus';
import { newTurn } from '@sharedos/client';
import {
  AgentRegister,
  AgentReply,
  type AuditEvent,
  type ExecutionResult,
  type RuntimeChoice,
  type RuntimeStep,
  RuntimeStepReply,
  SCHEMA_HEADER,
  inboxPrefix,
  principalSubject,
} from '@sharedos/contracts';
import { ESCALATE_TOOL } from '@sharedos/kernel';
import { SPAN, type Telemetry, startTelemetry } from '@sharedos/telemetry';
import { type ModelServer, type ReceivedSpan, type SpanReceiver, startModelServer, startSpanReceiver, waitFor } from '@sharedos/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { tracedTo } from '../support/replicas.ts';
import { ALICE, AUDITOR, NAMESPACE, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const DEADLINE_MS = 60_000;
const KEY = 'sk-end-to-end-77d1';
const PLAN = 'Buy milk.';

let receiver: SpanReceiver;
let telemetry: Telemetry;
let models: ModelServer;
let system: TestSystem;

beforeAll(async () => {
  [receiver, models] = await Promise.all([startSpanReceiver(), startModelServer()]);
  Object.assign(process.env, tracedTo(receiver));
  telemetry = await startTelemetry({ service: 'client', instance: 'test', version: '0.1.0' });
  system = await startTestSystem({
    env: (service) => ({
      ...tracedTo(receiver),
      ...(service === 'tool-executor'
        ? {
            SHAREDOS_TOOL_NAMESPACES: 'files,sharedos',
            SHAREDOS_MODEL_WIRE: 'messages',
            SHAREDOS_MODEL_BASE_URL: models.url,
            SHAREDOS_MODEL_NAME: 'model-1',
            SHAREDOS_MODEL_API_KEY: KEY,
          }
        : {}),
    }),
  });
  await system.files(ALICE, { 'notes/plan.md': PLAN, 'private/diary.md': 'Nobody reads this' });
  await system.letAliceRunScout();
  await system.grant('notes', { path: ['notes'], actions: ['read', 'search', 'create'] });
  await system.grant('ask', { namespace: 'sharedos', path: ['escalation'], actions: ['request'], scope: 'exact' });
  await system.grant('audit', { namespace: 'sharedos', path: ['audit'], actions: ['read'], scope: 'exact' }, { to: AUDITOR });
}, 2 * DEADLINE_MS);
afterAll(async () => {
  await system?.stop();
  await telemetry?.shutdown();
  await Promise.all([receiver?.stop(), models?.stop()]);
  for (const name of Object.keys(tracedTo({ url: '' } as SpanReceiver))) delete process.env[name];
});

/** Registers scout with a runtime, as alice, who is its authority and its owner and so agrees by it. */
const register = async (runtime: RuntimeChoice): Promise<void> => {
  const { user, password } = system.stack.credentials.principal(NAMESPACE, ALICE);
  const bus = await connectBus({
    servers: system.stack.natsUrl,
    user,
    pass: password,
    name: 'alice',
    inboxPrefix: inboxPrefix(NAMESPACE, ALICE),
  });
  try {
    const terms = { agentId: SCOUT.agentId, authority: ALICE, owner: ALICE, runtime };
    const registered = await bus.request(
      principalSubject('agent.register', NAMESPACE, ALICE),
      AgentRegister,
      { commandId: randomUUID(), terms },
      AgentReply,
      { timeoutMs: 10_000 },
    );
    expect(registered).toMatchObject({ ok: true, value: { ok: true, value: { agent: { status: 'active' } } } });
  } finally {
    await bus.close();
  }
};

const run = async (executionId: string, payload: unknown): Promise<ExecutionResult> => {
  const request = newTurn({
    from: ALICE,
    agent: SCOUT,
    purpose: 'testing',
    executionId,
    traceId: `trace-${executionId}`,
    payload: payload as never,
  });
  const submitted = await (await system.client(ALICE)).turns.submit(request);
  if (!submitted.ok) throw new Error(`the turn was not queued: ${JSON.stringify(submitted.error)}`);
  const answer = await submitted.value.result;
  if (!answer.ok) throw new Error(`the turn was not answered: ${JSON.stringify(answer.error)}`);
  return answer.value.result;
};

const ended = (records: readonly AuditEvent[]): boolean => records.some(({ type }) => type === 'turn.ended');
const invoked = (records: readonly AuditEvent[]) =>
  records.filter(({ type }) => type === 'tool.invoked').map(({ outcome, tool, reason }) => [tool, outcome, reason]);

describe('a model that runs a turn', () => {
  let result: ExecutionResult;
  let trace: readonly ReceivedSpan[];
  beforeAll(async () => {
    await register({ runtime: 'model', config: { guidance: 'Be brief.' } });
    models.say(
      {
        text: 'I look at both.',
        calls: [
          { name: 'files_read', arguments: { path: ['notes', 'plan.md'] } },
          { name: 'files_read', arguments: { path: ['private', 'diary.md'] } },
        ],
        usage: { input: 300, output: 20 },
      },
      {
        calls: [
          { name: 'files_search', arguments: { path: ['notes'], query: 'milk' } },
          { name: 'files_create', arguments: { path: ['notes', 'new.md'], content: 'Milk, from the plan.' } },
        ],
        usage: { input: 400, output: 30 },
      },
      { calls: [{ name: 'sharedos_escalate', arguments: { reason: 'May I read the diary?' } }], usage: { input: 500, output: 40 } },
    );
    result = await run('model-turn', { text: 'What do I have to do?' });
    const spans = await receiver.waitFor(
      (all) => all.some(({ name, attributes }) => name === SPAN.turn && attributes['sharedos.execution.id'] === 'model-turn'),
      DEADLINE_MS,
    );
    const turn = spans.find(({ name, attributes }) => name === SPAN.turn && attributes['sharedos.execution.id'] === 'model-turn');
    trace = spans.filter(({ traceId }) => traceId === turn?.traceId);
  }, 2 * DEADLINE_MS);

  it('uses three tools, is refused one file, and ends by asking a human', async () => {
    expect(result).toMatchObject({
      status: 'escalated',
      escalation: { reason: 'May I read the diary?', reviewer: ALICE, status: 'pending' },
      metadata: {
        runtime: { id: 'sharedos.model.messages' },
        model: 'model-1',
        modelProvider: 'anthropic',
        inputTokens: 1_200,
        outputTokens: 90,
        escalationAsked: { tool: ESCALATE_TOOL, reason: 'May I read the diary?' },
      },
    });
    const records = await system.records('trace-model-turn', ended);
    expect(invoked(records)).toEqual([
      ['files.read', 'succeeded', undefined],
      ['files.read', 'denied', 'no_matching_grant'],
      ['files.search', 'succeeded', undefined],
      ['files.create', 'succeeded', undefined],
    ]);
    expect(records.filter(({ type }) => type === 'escalation.requested')).toMatchObject([{ outcome: 'escalated' }]);
    expect(records.filter(({ type }) => type === 'turn.ended')).toMatchObject([{ outcome: 'escalated' }]);
  });

  it('was told where it may operate, and the refusal as an ordinary result', () => {
    const [first, second] = models.asked;
    expect(first?.body.system).toMatch(/^Be brief\.\n\n/);
    expect(first?.body.system).toContain('"notes"');
    expect(JSON.stringify(second?.body.messages)).toContain(PLAN);
    expect(JSON.stringify(second?.body.messages)).toContain('no_matching_grant');
  });

  it('is in the trace of its turn: each question with its tokens, each call under it', () => {
    const turn = trace.find(({ name }) => name === SPAN.turn);
    const questions = trace.filter(({ name }) => name === `${SPAN.modelChat} model-1`);
    expect(
      questions.map(({ service, kind, parentSpanId, attributes }) => [
        service,
        kind,
        parentSpanId === turn?.spanId,
        attributes['gen_ai.operation.name'],
        attributes['gen_ai.provider.name'],
        attributes['gen_ai.request.model'],
        attributes['gen_ai.usage.input_tokens'],
        attributes['gen_ai.usage.output_tokens'],
      ]),
    ).toEqual(
      [
        [300, 20],
        [400, 30],
        [500, 40],
      ].map((tokens) => ['tool-executor', 'client', true, 'chat', 'anthropic', 'model-1', ...tokens]),
    );
    const calls = trace.filter(({ name }) => name === SPAN.toolMediate).toSorted((a, b) => a.startMs - b.startMs);
    expect(calls.map(({ attributes }) => [attributes['gen_ai.tool.name'], attributes['sharedos.outcome']])).toEqual([
      ['files.read', 'succeeded'],
      ['files.read', 'denied'],
      ['files.search', 'succeeded'],
      ['files.create', 'succeeded'],
    ]);
  });

  it('leaves neither its key nor what was said in spans, logs, audit or the result', async () => {
    const told = {
      spans: JSON.stringify(receiver.spans()),
      logs: system.stack
        .services()
        .map((service) => service.output())
        .join('\n'),
      audit: JSON.stringify(await system.records('trace-model-turn', ended)),
    };
    expect(models.asked[0]?.headers['x-api-key']).toBe(KEY);
    for (const [place, text] of Object.entries({ ...told, result: JSON.stringify(result) }))
      expect([place, text.includes(KEY)]).toEqual([place, false]);
    for (const [place, text] of Object.entries(told)) expect([place, text.includes(PLAN)]).toEqual([place, false]);
  });
});

const hasPython = (() => {
  try {
    execFileSync('python3', ['--version']);
    return true;
  } catch {
    process.stdout.write('NOT RUN: examples/remote_agent.py, for there is no python3 here\n');
    return false;
  }
})();

describe('an agent in a process of its own', () => {
  const processes: ChildProcess[] = [];
  afterEach(async () => {
    await Promise.all(
      processes.splice(0).map(
        (child) =>
          new Promise((resolve) => {
            if (child.exitCode !== null || child.signalCode !== null) return resolve(undefined);
            child.once('exit', resolve);
            child.kill('SIGTERM');
          }),
      ),
    );
  });

  /** Starts an example with the account of scout, and waits until it decides. */
  const start = async (command: string, example: string): Promise<ChildProcess> => {
    const { user, password } = system.stack.credentials.principal(NAMESPACE, SCOUT);
    const child = spawn(command, [fileURLToPath(new URL(`../../examples/${example}`, import.meta.url))], {
      env: {
        PATH: process.env['PATH'],
        SHAREDOS_NATS_URL: system.stack.natsUrl,
        SHAREDOS_NATS_USER: user,
        SHAREDOS_NATS_PASSWORD: password,
        SHAREDOS_NAMESPACE: NAMESPACE,
        SHAREDOS_AGENT: SCOUT.agentId,
      },
    });
    processes.push(child);
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => (said += text.toString()));
    await waitFor(`${example} to decide; it said: ${said}`, () => said.includes('deciding'), DEADLINE_MS).catch((error: unknown) => {
      throw new Error(`${String(error)}; it said: ${said}`);
    });
    return child;
  };

  const PATHS = {
    paths: [
      ['notes', 'plan.md'],
      ['private', 'diary.md'],
      ['notes', 'plan.md'],
    ],
  };

  it.each([
    ['JavaScript', process.execPath, 'remote-agent.mjs'],
    ...(hasPython ? [['Python', 'python3', 'remote_agent.py'] as const] : []),
  ] as const)(
    'written in %s does a turn with calls that are allowed and one that is refused',
    async (language, command, example) => {
      await register({ runtime: 'remote', config: {} });
      await start(command, example);
      const result = await run(`remote-${language}`, PATHS);
      expect(result).toMatchObject({
        status: 'succeeded',
        output: { told: [PLAN, 'no_matching_grant', PLAN] },
        metadata: { runtime: { id: 'sharedos.remote' } },
      });
      expect(invoked(await system.records(`trace-remote-${language}`, ended))).toEqual([
        ['files.read', 'succeeded', undefined],
        ['files.read', 'denied', 'no_matching_grant'],
        ['files.read', 'succeeded', undefined],
      ]);
    },
    2 * DEADLINE_MS,
  );

  it(
    'that is not there ends its turn as a failed driver, and the next turn is served',
    async () => {
      await register({ runtime: 'remote', config: { stepTimeoutMs: 500 } });
      const result = await run('remote-absent', PATHS);
      expect(result).toMatchObject({ status: 'failed', error: { code: 'driver_failed', retryable: true } });
      expect((await system.records('trace-remote-absent', ended)).filter(({ type }) => type === 'turn.ended')).toMatchObject([
        { outcome: 'failed', reason: 'driver_failed', metadata: { endedBy: 'runtime' } },
      ]);
      await start(process.execPath, 'remote-agent.mjs');
      await register({ runtime: 'remote', config: {} });
      expect(await run('remote-back', PATHS)).toMatchObject({ status: 'succeeded' });
    },
    2 * DEADLINE_MS,
  );
});

describe('an agent that answers its steps with', () => {
  const good = (step: RuntimeStep, decision: unknown = { type: 'complete', output: 1 }): string =>
    JSON.stringify({ ok: true, value: { token: step.token, step: step.step, decision } });
  beforeAll(() => register({ runtime: 'remote', config: { stepTimeoutMs: 5_000 } }));

  it.each<[string, string, (step: RuntimeStep) => { body: string; schema?: string }]>([
    ['text that is not JSON', 'driver_failed', () => ({ body: '<html>' })],
    ['nothing', 'driver_failed', () => ({ body: '' })],
    ['another schema', 'driver_failed', (step) => ({ body: good(step), schema: 'authority.decide.reply/1' })],
    ['a member named twice', 'driver_failed', (step) => ({ body: good(step).replace('{', '{"ok":true,') })],
    ['2 MiB', 'driver_failed', (step) => ({ body: good(step, { type: 'complete', output: 'x'.repeat(2 * 1024 * 1024) }) })],
    ['a token of its own', 'driver_failed', (step) => ({ body: good({ ...step, token: 'e30.e30' }) })],
    ['the number of another step', 'driver_failed', (step) => ({ body: good({ ...step, step: 7 }) })],
    ['a decision that there is not', 'invalid_driver_decision', (step) => ({ body: good(step, { type: 'grant', all: true }) })],
  ])('%s ends its own turn as %s', async (what, code, answer) => {
    const { user, password } = system.stack.credentials.principal(NAMESPACE, SCOUT);
    const bus = await connectBus({
      servers: system.stack.natsUrl,
      user,
      pass: password,
      name: 'scout',
      inboxPrefix: inboxPrefix(NAMESPACE, SCOUT),
    });
    try {
      bus.nats.subscribe(principalSubject('runtime.step', NAMESPACE, SCOUT), {
        callback: (_, message) => {
          const { body, schema = RuntimeStepReply.name } = answer(message.json<RuntimeStep>());
          const named = message.headers;
          named?.set(SCHEMA_HEADER, schema);
          message.respond(body, named === undefined ? {} : { headers: named });
        },
      });
      await bus.flush(DEADLINE_MS);
      const executionId = `rubbish-${what.replaceAll(' ', '-')}`;
      expect(await run(executionId, {})).toMatchObject({ status: 'failed', error: { code } });
    } finally {
      await bus.close();
    }
  });
});

describe('the runtime of an agent', () => {
  it('is never chosen by a message: what a request says of it is data', async () => {
    await register({ runtime: 'scripted', config: {} });
    const request = newTurn({
      from: ALICE,
      agent: SCOUT,
      purpose: 'testing',
      executionId: 'claims-model',
      calls: [],
      payload: { runtime: 'model' },
    });
    const asked = models.asked.length;
    const submitted = await (
      await system.client(ALICE)
    ).turns.submit({ ...request, metadata: { runtime: { id: 'model' }, runtimeId: 'sharedos.model.messages' } });
    const answer = submitted.ok && (await submitted.value.result);
    expect(answer).toMatchObject({
      ok: true,
      value: { result: { status: 'succeeded', metadata: { runtime: { id: 'sharedos.standard' } } } },
    });
    expect(models.asked).toHaveLength(asked);
  });

  it.each([
    ['is not there', { runtime: 'nobody', config: {} }],
    ['is told what it does not understand', { runtime: 'model', config: { baseUrl: 'http://elsewhere' } }],
  ])('that %s ends the turn by the envelope, and no other runs in its place', async (what, runtime) => {
    await register(runtime);
    const result = await run(`chosen-${what.replaceAll(' ', '-')}`, 'hello');
    expect(result).toMatchObject({ status: 'failed', error: { code: 'runtime_failed' } });
    expect(JSON.stringify(result)).not.toContain('elsewhere');
  });
});
