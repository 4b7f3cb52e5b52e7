import type { Json, JsonObj } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { SCRIPT_OUTPUT_BYTES_MAX, scriptedRuntime } from './scripted-driver.ts';
import { READ, START, aRequest, aWorld, denied, manualTime, succeeded } from './testing/index.ts';

const world = (answer?: (path: Json | undefined) => Json) => {
  const time = manualTime(START);
  return aWorld({
    time,
    runtime: scriptedRuntime({ timers: time.timers }),
    kernel: {
      tools: [
        {
          definition: READ,
          answer: (call, context) => {
            const { path } = call.arguments;
            return path === 'secret'
              ? denied(call, context, 'no_matching_grant')
              : succeeded(call, context, answer?.(path) ?? { read: path ?? null });
          },
        },
      ],
    },
  });
};
const scripted = (state: JsonObj | undefined, options = {}) => aRequest({ ...(state === undefined ? {} : { state }), options });
const read = (path: string) => ({ tool: 'files.read', arguments: { path } });

describe('the scripted driver', () => {
  it('makes the calls in order and completes with every answer', async () => {
    const { run, kernel } = world();
    const result = await run(scripted({ script: [read('a'), read('secret'), { tool: 'guess', arguments: {} }, read('b')] }));
    expect(result).toMatchObject({
      status: 'succeeded',
      metadata: { runtime: { id: 'sharedos.standard', metadata: { driver: 'scripted' } } },
    });
    expect(result).toHaveProperty('output', {
      calls: [
        { tool: 'files.read', status: 'succeeded', output: { read: 'a' } },
        { tool: 'files.read', status: 'denied', code: 'no_matching_grant' },
        { tool: 'guess', status: 'denied', code: 'tool_unavailable' },
        { tool: 'files.read', status: 'succeeded', output: { read: 'b' } },
      ],
    });
    expect(kernel.calls).toMatchObject([
      { id: 'call-1', traceId: 'trace-1', requestedAt: START, arguments: { path: 'a' } },
      { id: 'call-2' },
      { id: 'call-4' },
    ]);
  });

  it('completes at once with an empty script', async () => {
    expect(await world().run(scripted({ script: [] }))).toHaveProperty('output', { calls: [] });
  });

  it('completes with the output it was given', async () => {
    expect(await world().run(scripted({ script: [read('a')], output: { answer: 42 } }))).toHaveProperty('output', { answer: 42 });
  });

  it('stops at the first refusal when told to', async () => {
    const { run, kernel } = world();
    const result = await run(scripted({ script: [read('secret'), read('a')], stopOnRefusal: true }));
    expect(result).toHaveProperty('output', { calls: [{ tool: 'files.read', status: 'denied', code: 'no_matching_grant' }] });
    expect(kernel.calls).toHaveLength(1);
  });

  it('declares the step it was given', async () => {
    const result = await world().run(scripted({ script: [{ ...read('a'), step: 3 }] }));
    expect(result.events[1]?.data).toMatchObject({ step: 3 });
  });

  it('needs one step more than it has calls', async () => {
    const script = { script: [read('a'), read('b')] };
    expect((await world().run(scripted(script, { maxSteps: 3 }))).status).toBe('succeeded');
    expect(await world().run(scripted(script, { maxSteps: 2 }))).toMatchObject({ error: { code: 'step_limit_exceeded' } });
  });

  it.each<[string, JsonObj | undefined]>([
    ['no state', undefined],
    ['a state without a script', {}],
    ['a script that is an object', { script: {} }],
    ['a call without arguments', { script: [{ tool: 'files.read' }] }],
    ['a call with a key too many', { script: [{ ...read('a'), grant: 'all' }] }],
    ['a negative step', { script: [{ ...read('a'), step: -1 }] }],
    ['a key nobody knows', { script: [], runtime: 'other' }],
    ['1 001 calls', { script: Array.from({ length: 1_001 }, () => read('a')) }],
  ])('fails with %s before any call', async (_case, state) => {
    const { run, kernel } = world();
    const result = await run(scripted(state));
    expect(result).toMatchObject({ status: 'failed', error: { code: 'invalid_script' } });
    expect(result.events.at(-1)?.data).toEqual({ code: 'invalid_script', source: 'runtime' });
    expect(kernel.calls).toEqual([]);
  });

  it('leaves out, and marks, an output that does not fit any more', async () => {
    const { run } = world((path) => (path === 'large' ? 'x'.repeat(SCRIPT_OUTPUT_BYTES_MAX / 2) : 'small'));
    const result = await run(scripted({ script: [read('large'), read('large'), read('small')] }));
    expect(result).toMatchObject({
      status: 'succeeded',
      output: { calls: [{ status: 'succeeded' }, { omitted: true }, { output: 'small' }] },
    });
  });
});
