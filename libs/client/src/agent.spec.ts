import { type Bus, connectBus } from '@sharedos/bus';
import { type Address, RuntimeStep, RuntimeStepReply, STEP_ANSWER_BYTES_MAX, principalSubject } from '@sharedos/contracts';
import { type LocalStack, startLocalStack } from '@sharedos/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type AgentOptions, type Decide, type SharedOS, connectSharedOS } from './index.ts';

const namespaceId = 'tenant.1';
const scout = { kind: 'agent', agentId: 'scout *' } as const;
const alice = { kind: 'human', userId: 'alice' } as const;
const at = '2026-01-01T12:00:00.000Z';
const subject = principalSubject('runtime.step', namespaceId, scout);

let stack: LocalStack;
let executor: Bus;
beforeAll(async () => {
  stack = await startLocalStack({ principals: [scout, alice].map((principal) => ({ namespaceId, principal })) });
  const { user, password, inboxPrefix } = stack.credentials.service('tool-executor');
  executor = await connectBus({ servers: stack.natsUrl, user, pass: password, name: 'executor', inboxPrefix });
});
afterAll(async () => {
  await executor?.close();
  await stack?.stop();
});

const open: SharedOS[] = [];
afterEach(async () => {
  for (const client of open.splice(0)) await client.close();
});
const connected = async (principal: Address): Promise<SharedOS> => {
  const { user, password } = stack.credentials.principal(namespaceId, principal);
  const client = await connectSharedOS({ servers: stack.natsUrl, user, password, namespaceId, principal });
  open.push(client);
  return client;
};
const deciding = async (decide: Decide, options?: AgentOptions): Promise<void> => {
  expect(await (await connected(scout)).agent(decide, options)).toMatchObject({ ok: true });
};

const aStep = (more: Partial<RuntimeStep> = {}): RuntimeStep => ({
  token: 'token-1',
  step: 0,
  deadline: '2026-01-01T12:00:30.000Z',
  turn: {
    version: '1',
    executionId: 'turn-1',
    agent: scout,
    context: { namespaceId, actor: scout, owner: alice, purpose: 'try', traceId: 't', now: at, reach: { status: 'computed', reach: [] } },
    message: { version: '1', id: 'm', sender: alice, receiver: scout, purpose: 'try', payload: 'hello', traceId: 't', createdAt: at },
    catalogHash: 'a'.repeat(64),
    tools: [],
  },
  input: { type: 'start' },
  ...more,
});
const asked = (step = aStep()) =>
  executor.request(subject, RuntimeStep, step, RuntimeStepReply, { timeoutMs: 10_000, outsideBytesMax: STEP_ANSWER_BYTES_MAX });

describe('an agent over the bus', () => {
  it('hears what the turn is about, and its decision goes back with the token of the step', async () => {
    await deciding(({ turn, number, input, deadline, call }) =>
      call('files.read', { payload: turn.message.payload, number, input: input.type, deadline: new Date(deadline).toISOString() }),
    );
    expect(await asked(aStep({ step: 4 }))).toEqual({
      ok: true,
      value: {
        ok: true,
        value: {
          token: 'token-1',
          step: 4,
          decision: {
            type: 'tool_call',
            call: {
              id: 'call-5',
              tool: 'files.read',
              arguments: { payload: 'hello', number: 4, input: 'start', deadline: '2026-01-01T12:00:30.000Z' },
            },
          },
        },
      },
    });
  });

  it('keeps what it remembers until it remembers otherwise', async () => {
    await deciding(({ number, memory, remember, complete }) => {
      if (number === 1) remember({ seen: 2 });
      return complete(memory);
    });
    expect(await asked(aStep({ memory: { seen: 1 } }))).toMatchObject({
      value: { value: { decision: { output: { seen: 1 } }, memory: { seen: 1 } } },
    });
    expect(await asked(aStep({ step: 1, memory: { seen: 1 } }))).toMatchObject({ value: { value: { memory: { seen: 2 } } } });
  });

  it.each<[string, Decide, unknown]>([
    ['asking a human', ({ escalate }) => escalate('May I?'), { type: 'escalate', reason: 'May I?' }],
    ['failing', ({ fail }) => fail('no_idea', 'I do not know.'), { type: 'fail', error: { code: 'no_idea', message: 'I do not know.' } }],
  ])('decides upon %s', async (_what, decide, decision) => {
    await deciding(decide);
    expect(await asked()).toMatchObject({ value: { value: { decision } } });
  });

  it('that throws says so to itself, and to the executor only that there is no answer', async () => {
    const errors: unknown[] = [];
    const fault = new Error('the password is swordfish');
    await deciding(() => Promise.reject(fault), { onError: (error) => errors.push(error) });
    const answer = await asked();
    expect(answer).toMatchObject({ ok: true, value: { ok: false, error: { code: 'internal_error' } } });
    expect(JSON.stringify(answer)).not.toContain('swordfish');
    expect(errors).toEqual([fault]);
  });

  it('says too much no more than once', async () => {
    await deciding(({ complete }) => complete('x'.repeat(STEP_ANSWER_BYTES_MAX)));
    expect(await asked()).toMatchObject({ value: { ok: false, error: { code: 'request_too_large' } } });
  });

  it('turns away more steps at once than it takes', async () => {
    const waiting: (() => void)[] = [];
    await deciding(({ complete }) => new Promise((resolve) => waiting.push(() => resolve(complete(1)))), { stepsAtOnce: 1 });
    const first = asked();
    await expect.poll(() => waiting.length).toBe(1);
    expect(await asked()).toMatchObject({ value: { ok: false, error: { code: 'service_overloaded', retryable: true } } });
    waiting[0]?.();
    expect(await first).toMatchObject({ value: { ok: true } });
  });

  it('is in as many processes as one likes, and each step goes to one', async () => {
    let steps = 0;
    for (const _ of [1, 2, 3]) await deciding(({ complete }) => complete((steps += 1)));
    await Promise.all(Array.from({ length: 20 }, () => asked()));
    expect(steps).toBe(20);
  });

  it('does not read what is no step by the name of its schema', async () => {
    let steps = 0;
    await deciding(({ complete }) => complete((steps += 1)));
    const other = { name: 'turn.get.reply/1', schema: RuntimeStep.schema };
    expect(await executor.request(subject, other, aStep(), RuntimeStepReply, { timeoutMs: 300 })).toMatchObject({ ok: false });
    expect(
      await executor.request(subject, { ...RuntimeStep, schema: other.schema }, { token: '' } as never, RuntimeStepReply, {
        timeoutMs: 10_000,
      }),
    ).toMatchObject({ value: { ok: false, error: { code: 'invalid_request' } } });
    expect(steps).toBe(0);
  });

  it('that is stopped finishes its step and takes no other', async () => {
    const client = await connected(scout);
    const waiting: (() => void)[] = [];
    const running = await client.agent(({ complete }) => new Promise((resolve) => waiting.push(() => resolve(complete(1)))));
    const last = asked();
    await expect.poll(() => waiting.length).toBe(1);
    const stopped = running.ok && running.value.stop();
    waiting[0]?.();
    expect(await last).toMatchObject({ value: { ok: true } });
    await stopped;
    expect(await executor.request(subject, RuntimeStep, aStep(), RuntimeStepReply, { timeoutMs: 300 })).toMatchObject({ ok: false });
  });

  it('is not what a human can be', async () => {
    expect(await (await connected(alice)).agent(({ complete }) => complete(1))).toMatchObject({
      ok: false,
      error: { kind: 'unavailable' },
    });
  });
});

it('an executor does not read an answer that is larger than an agent may give', async () => {
  await deciding(({ complete }) => complete('x'.repeat(2_000)));
  const answer = await executor.request(subject, RuntimeStep, aStep(), RuntimeStepReply, { timeoutMs: 10_000, outsideBytesMax: 1_000 });
  expect(answer).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
});
