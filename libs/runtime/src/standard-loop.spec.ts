import type { ExecutionRequest } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import type { DriverInput, DriverSession } from './driver.ts';
import { ContractError } from './errors.ts';
import { type StandardLoopOptions, standardLoop } from './standard-loop.ts';
import { START, aCall, aRequest, aWorld, manualTime, othersRun, reached } from './testing/index.ts';

const never = (): Promise<never> => new Promise(() => undefined);
const call = { type: 'tool_call', call: aCall('c') };
const done = { type: 'complete', output: 'done' };

/** The loop over a driver that answers with the decisions given, one after another, and the last one for ever. */
const looping = (
  decisions: readonly unknown[],
  more: { session?: Partial<DriverSession>; loop?: Partial<StandardLoopOptions>; drainGraceMs?: number } = {},
) => {
  const time = manualTime(START);
  const inputs: DriverInput[] = [];
  const closed: string[] = [];
  const errors: unknown[] = [];
  const session: DriverSession = {
    next: async (input) => {
      inputs.push(input);
      return decisions[Math.min(inputs.length, decisions.length) - 1] as never;
    },
    close: async (status) => void closed.push(status),
    ...more.session,
  };
  const runtime = standardLoop({
    driver: { open: async () => session },
    timers: time.timers,
    onTurnError: (error) => void errors.push(error),
    ...more.loop,
  });
  const world = aWorld({ runtime, time, defaults: { drainGraceMs: more.drainGraceMs ?? 0 } });
  return { world, inputs, closed, errors, run: (request?: ExecutionRequest) => world.run(request) };
};

describe('the standard loop', () => {
  it('hands each result to the next question and declares the position as the step', async () => {
    const turn = looping([call, { ...call, call: aCall('d', 'guess') }, done]);
    const result = await turn.run();
    expect(result).toMatchObject({ status: 'succeeded', output: 'done', metadata: { runtime: { id: 'sharedos.standard' } } });
    expect(turn.inputs).toMatchObject([
      { type: 'start' },
      { type: 'tool_result', result: { callId: 'c', status: 'succeeded' } },
      { type: 'tool_result', result: { callId: 'd', status: 'denied', error: { code: 'tool_unavailable' } } },
    ]);
    expect(result.events.filter((event) => event.type === 'tool.requested').map((event) => event.data)).toMatchObject([
      { step: 0 },
      { step: 1 },
    ]);
    expect(turn.closed).toEqual(['succeeded']);
  });

  it('31: fails when the driver still asks after the last step; the last call has run', async () => {
    const turn = looping([call]);
    const result = await turn.run(aRequest({ options: { maxSteps: 2 } }));
    expect(result).toMatchObject({ status: 'failed', error: { code: 'step_limit_exceeded' } });
    expect(result.events.at(-1)?.data).toEqual({ code: 'step_limit_exceeded', source: 'runtime' });
    expect(turn.world.kernel.calls).toHaveLength(2);
    expect(turn.world.kernel.ends[0]).toMatchObject({ endedBy: 'runtime' });
    expect(turn.closed).toEqual(['failed']);
  });

  it.each<[string, unknown]>([
    ['32: a key too many', { ...done, confidence: 1 }],
    ['no type', { output: 1 }],
    ['nothing', undefined],
    ['a list of two calls', [call, call]],
    ['a malformed call', { type: 'tool_call', call: { tool: 'files.read' } }],
    ['arguments as text', { type: 'tool_call', call: { ...aCall('c'), arguments: '{}' } }],
    ['a negative step', { ...call, step: -1 }],
    ['half a step', { ...call, step: 0.5 }],
    ['a blank reason', { type: 'escalate', reason: '  ' }],
    ['a reason of 513 units', { type: 'escalate', reason: 'x'.repeat(513) }],
    ['a failure without a code', { type: 'fail', error: { message: 'm' } }],
    ['an output that is not JSON', { type: 'complete', output: () => 1 }],
  ])('does not take %s for a decision', async (_case, decision) => {
    const turn = looping([decision]);
    const result = await turn.run();
    expect(result).toMatchObject({ status: 'failed', error: { code: 'invalid_driver_decision' } });
    expect(turn.world.kernel.ends[0]).toMatchObject({ endedBy: 'runtime' });
    expect(turn.world.kernel.calls).toEqual([]);
  });

  it('does not go back to a step behind its position', async () => {
    const turn = looping([call, { ...call, step: 0 }]);
    expect(await turn.run()).toMatchObject({ status: 'failed', error: { code: 'invalid_driver_decision' } });
    expect(turn.world.kernel.calls).toHaveLength(1);
  });

  it('leaves a step ahead of its position to the envelope', async () => {
    const turn = looping([{ ...call, step: 16 }, { ...call, step: 7 }, done]);
    expect((await turn.run()).status).toBe('succeeded');
    expect(turn.inputs[1]).toMatchObject({ result: { error: { code: 'step_limit_exceeded' } } });
    expect(turn.inputs[2]).toMatchObject({ result: { status: 'succeeded' } });
  });

  it.each(['open', 'next'] as const)('fails as the driver’s own failure when %s throws, and keeps its text on the host', async (where) => {
    const fault = new Error('token abc');
    const turn = looping(
      [done],
      where === 'open' ? { loop: { driver: { open: () => Promise.reject(fault) } } } : { session: { next: () => Promise.reject(fault) } },
    );
    const result = await turn.run();
    expect(result).toMatchObject({ status: 'failed', error: { code: 'driver_failed', retryable: true } });
    expect(turn.errors).toEqual([fault]);
    expect(turn.world.errors).toEqual([]);
    expect(JSON.stringify(result)).not.toContain('abc');
  });

  it('says that a failed driver may be tried again only if nothing was written', async () => {
    let asked = 0;
    const turn = looping([], {
      session: {
        next: async () => {
          asked += 1;
          if (asked === 1) return { type: 'tool_call', call: aCall('c', 'files.append') };
          throw new Error('lost');
        },
      },
    });
    expect(await turn.run()).toMatchObject({ error: { code: 'driver_failed', retryable: false } });
  });

  it('states that it asked for a human before it ends, and what its model was told', async () => {
    const turn = looping([{ type: 'escalate', reason: 'which folder?' }], { session: { promptHash: 'abc' } });
    expect(await turn.run()).toMatchObject({
      status: 'escalated',
      metadata: { promptHash: 'abc', escalationAsked: { tool: 'sharedos.escalate', reason: 'which folder?' } },
    });
    expect(turn.closed).toEqual(['escalated']);
  });

  it('is cancelled with its driver still thinking, and closes the session', async () => {
    const turn = looping([], { session: { next: never } });
    const running = turn.run();
    await turn.world.time.advance(60_000);
    expect((await running).status).toBe('cancelled');
    await reached('a closed session', () => turn.closed.length === 1);
    expect(turn.closed).toEqual(['cancelled']);
    expect(turn.errors).toEqual([]);
  });

  it('stops asking once the turn is draining', async () => {
    const answer = Promise.withResolvers<unknown>();
    const turn = looping([], {
      drainGraceMs: 5_000,
      session: {
        next: async (input) => {
          turn.inputs.push(input);
          return (await answer.promise) as never;
        },
      },
    });
    const running = turn.run();
    await turn.world.time.advance(55_000);
    answer.resolve(call);
    expect((await running).status).toBe('cancelled');
    expect(turn.inputs).toHaveLength(1);
    expect(turn.world.kernel.asked).toContain('refused files.read turn_draining');
    expect(turn.closed).toEqual(['cancelled']);
  });

  it('is cancelled, and not out of steps, when its last call ends while draining', async () => {
    const turn = looping([], {
      drainGraceMs: 5_000,
      session: {
        next: async () => {
          await turn.world.time.advance(55_000);
          return call as never;
        },
      },
    });
    expect((await turn.run(aRequest({ options: { maxSteps: 1 } }))).status).toBe('cancelled');
  });

  it('is neither changed nor held up by a session that will not close', async () => {
    let limit: AbortSignal | undefined;
    const turn = looping([done], {
      session: {
        close: (_status, signal) => {
          limit = signal;
          return never();
        },
      },
    });
    expect((await turn.run()).status).toBe('succeeded');
    await turn.world.time.advance(999);
    expect(limit?.aborted).toBe(false);
    await turn.world.time.advance(1);
    expect(limit?.aborted).toBe(true);
    const throwing = looping([done], { session: { close: () => Promise.reject(new Error('no')) } });
    expect((await throwing.run()).status).toBe('succeeded');
    await othersRun();
    expect(throwing.errors).toHaveLength(1);
  });

  it('is not built with a close limit that is none', () => {
    for (const closeTimeoutMs of [0, -1, 0.5, NaN]) expect(() => looping([done], { loop: { closeTimeoutMs } })).toThrow(ContractError);
  });
});
