import {
  type Reply,
  type Result,
  type RuntimeStep,
  type StepAnswer,
  type Unavailable,
  ok,
  refused,
  unavailable,
} from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { ContractError } from '../errors.ts';
import { APPEND, ESCALATE, READ, START, aRequest, aWorld, manualTime } from '../testing/index.ts';
import { RemoteAgentFailure, remoteRuntime } from './remote-runtime.ts';

type Answered = Result<Reply<StepAnswer>, Unavailable>;
const answering = (step: RuntimeStep, decision: unknown, more: Partial<StepAnswer> = {}): Answered =>
  ok({ ok: true, value: { token: step.token, step: step.step, decision: decision as never, ...more } });

const call = (id: string, tool: string = READ.name) => ({ type: 'tool_call', call: { id, tool, arguments: { path: ['a.md'] } } });
const done = { type: 'complete', output: 'done' };

/** A turn of an agent that answers each step as the test says. */
const remoteTurn = (answer: (step: RuntimeStep, all: readonly RuntimeStep[]) => Answered | Promise<Answered>) => {
  const time = manualTime(START);
  const steps: RuntimeStep[] = [];
  const asked: unknown[] = [];
  const errors: unknown[] = [];
  const runtime = remoteRuntime({
    ask: async (agent, step, timeoutMs) => {
      steps.push(step);
      asked.push([agent, timeoutMs]);
      return answer(step, steps);
    },
    clock: time.clock,
    timers: time.timers,
    onTurnError: (error) => void errors.push(error),
  });
  const world = aWorld({ runtime, time });
  return { world, time, steps, asked, errors, run: world.run };
};

describe('an agent elsewhere', () => {
  it('is asked step by step, and each call of it is decided like any other', async () => {
    const decisions = [call('c-1'), call('c-2', 'files.purge'), done];
    const { run, steps, asked, world } = remoteTurn((step) => answering(step, decisions[step.step]));
    expect(await run()).toMatchObject({ status: 'succeeded', output: 'done', metadata: { runtime: { id: 'sharedos.remote' } } });
    expect(steps.map(({ step, input }) => [step, input.type === 'start' ? 'start' : [input.result.callId, input.result.status]])).toEqual([
      [0, 'start'],
      [1, ['c-1', 'succeeded']],
      [2, ['c-2', 'denied']],
    ]);
    expect(asked[0]).toEqual([{ namespaceId: 'north', principal: { kind: 'agent', agentId: 'scout' } }, 30_000]);
    // The instant and the trace of a call are the turn's, whatever an agent's clock says.
    expect(world.kernel.calls).toEqual([
      { id: 'c-1', tool: 'files.read', arguments: { path: ['a.md'] }, traceId: 'trace-1', requestedAt: START },
    ]);
  });

  it('sees of a turn what a runtime may see, and of its tools what is published', async () => {
    const { run, steps } = remoteTurn((step) => answering(step, done));
    await run(aRequest({ state: { note: 1 }, metadata: { from: 'test' } }));
    const [{ turn }] = steps as [RuntimeStep];
    expect(turn).toMatchObject({ executionId: 'exec-1', message: { payload: { text: 'summarise' } }, state: { note: 1 } });
    expect(turn.tools.map(({ name }) => name)).toEqual([READ, APPEND, ESCALATE].map(({ name }) => name));
    expect(JSON.stringify(turn)).not.toMatch(/requiredCapability|"authority"|enabledToolNamespaces/);
  });

  it('is given back what it remembered, and only the last of it', async () => {
    const { run, steps } = remoteTurn((step) =>
      step.step === 0 ? answering(step, call('c'), { memory: { at: 1 } }) : answering(step, step.step === 1 ? call('d') : done),
    );
    await run();
    expect(steps.map(({ memory }) => memory)).toEqual([undefined, { at: 1 }, undefined]);
  });

  it('ends by asking a human where it may', async () => {
    const { run } = remoteTurn((step) => answering(step, { type: 'escalate', reason: 'May I?' }));
    expect(await run()).toMatchObject({ status: 'escalated', escalation: { reason: 'May I?' } });
  });

  it.each<[string, unknown]>([
    ['nothing', null],
    ['a text', 'done'],
    ['a key too many', { ...done, confidence: 1 }],
    ['a call with an instant of its own', { ...call('c'), call: { ...call('c').call, requestedAt: START } }],
    ['a call with a trace of its own', { ...call('c'), call: { ...call('c').call, traceId: 'trace-2' } }],
    ['arguments as text', { type: 'tool_call', call: { id: 'c', tool: 'files.read', arguments: '{}' } }],
    ['two calls', [call('c'), call('d')]],
  ])('that decides %s has decided nothing', async (_what, decision) => {
    const { run, world } = remoteTurn((step) => answering(step, decision));
    expect(await run()).toMatchObject({ status: 'failed', error: { code: 'invalid_driver_decision' } });
    expect(world.kernel.calls).toEqual([]);
  });

  it.each<[string, (step: RuntimeStep, all: readonly RuntimeStep[]) => Answered]>([
    ['is silent', () => unavailable('nobody answers')],
    ['refuses the step', () => ok(refused('service_overloaded', 'too busy'))],
    ['answers another step', (step) => answering(step, done, { step: step.step + 1 })],
    ['answers without the token', (step) => answering(step, done, { token: 'none' })],
    ['answers with another signature', (step) => answering(step, done, { token: `${step.token.slice(0, -43)}${'A'.repeat(43)}` })],
  ])('that %s has failed, which harms nothing but its turn', async (_what, answer) => {
    const { run, errors, world } = remoteTurn(answer);
    expect(await run()).toMatchObject({ status: 'failed', error: { code: 'driver_failed', retryable: true } });
    expect(errors).toHaveLength(1);
    expect(errors[0]).toBeInstanceOf(RemoteAgentFailure);
    expect(world.kernel.ends[0]).toMatchObject({ endedBy: 'runtime' });
  });

  it('that answers late has failed', async () => {
    const { run, time } = remoteTurn(async (step) => {
      await time.advance(30_000);
      return answering(step, done);
    });
    expect(await run()).toMatchObject({ status: 'failed', error: { code: 'driver_failed' } });
  });

  it('that keeps the token of one turn cannot answer another with it', async () => {
    const first = remoteTurn((step) => answering(step, done));
    await first.run();
    const kept = first.steps[0]?.token ?? '';
    const second = remoteTurn((step) => answering(step, done, { token: kept }));
    expect(await second.run()).toMatchObject({ status: 'failed', error: { code: 'driver_failed' } });
    expect((second.errors[0] as RemoteAgentFailure).reason).toContain('signature_mismatch');
  });

  it('is not waited for once its turn is cancelled', async () => {
    const cancel = new AbortController();
    const { run } = remoteTurn(() => {
      cancel.abort();
      return new Promise(() => undefined);
    });
    expect(await run(undefined, { signal: cancel.signal })).toMatchObject({ status: 'cancelled' });
  });

  it('cannot be given a step that outlasts a turn', () => {
    for (const stepTimeoutMs of [0, 0.5, 600_001])
      expect(() => remoteRuntime({ ask: async () => unavailable(''), clock: () => 0, stepTimeoutMs })).toThrow(ContractError);
  });
});
