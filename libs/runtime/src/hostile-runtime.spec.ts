import { ExecutionResult, type JsonObj, type ToolCall } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { BrokerClosed, BrokerLimit, ContractError } from './errors.ts';
import type { RuntimeHost } from './runtime.ts';
import { APPEND, READ, aCall, aRequest, aWorld, othersRun, reached, runtimeOf, succeeded } from './testing/index.ts';

const never = (): Promise<never> => new Promise(() => undefined);
const complete = { type: 'complete', output: null };

/** What calling the broker threw, by class: the plugin's own code sees these. */
const thrownBy = async (work: () => unknown): Promise<unknown> => {
  try {
    await work();
    return undefined;
  } catch (error) {
    return (error as Error).constructor;
  }
};

describe('a plugin that hangs', () => {
  it('is not waited for past the deadline, though it ignores the signal', async () => {
    const world = aWorld({ runtime: runtimeOf(never) });
    const turn = world.run();
    await world.time.advance(60_000);
    expect((await turn).status).toBe('cancelled');
    expect(world.kernel.ends).toHaveLength(1);
  });

  it('and comes to an end later changes nothing', async () => {
    const late = Promise.withResolvers<unknown>();
    let host: RuntimeHost | undefined;
    const world = aWorld({
      runtime: runtimeOf((given) => {
        host = given;
        return late.promise;
      }),
    });
    const turn = world.run();
    await world.time.advance(60_000);
    const result = await turn;
    late.resolve(complete);
    await othersRun();
    expect(await thrownBy(() => host?.invokeTool(aCall('c1')))).toBe(BrokerClosed);
    expect(result.events.map((event) => event.type)).toEqual(['turn.started', 'turn.cancelled']);
    expect(world.kernel.calls).toEqual([]);
  });

  it('whose call is answered after the end gets no answer', async () => {
    const answer = Promise.withResolvers<void>();
    let outcome: unknown;
    const world = aWorld({
      runtime: runtimeOf((host) => {
        outcome = thrownBy(() => host.invokeTool(aCall('c1')));
        return outcome;
      }),
      kernel: {
        tools: [
          {
            definition: READ,
            answer: async (call, context) => {
              await answer.promise;
              return succeeded(call, context, 'secret');
            },
          },
        ],
      },
    });
    const turn = world.run();
    await reached('the call', () => world.kernel.calls.length === 1);
    await world.time.advance(60_000);
    const result = await turn;
    answer.resolve();
    await othersRun();
    expect(await outcome).not.toBeUndefined();
    expect(JSON.stringify(result)).not.toContain('secret');
  });
});

describe('a plugin that calls wrongly', () => {
  const getter = {
    get tool() {
      reads += 1;
      return reads === 1 ? READ.name : APPEND.name;
    },
    id: 'c1',
    arguments: {},
    traceId: 'trace-1',
    requestedAt: '2027-03-10T10:00:00Z',
  };
  let reads = 0;
  const deep = (levels: number): JsonObj => {
    let value: JsonObj = {};
    for (let level = 1; level < levels; level += 1) value = { value };
    return value;
  };
  const cyclic: Record<string, unknown> = {};
  cyclic['self'] = cyclic;

  it.each<[string, unknown, unknown?]>([
    ['nothing', undefined],
    ['a text', 'files.read'],
    ['a call without an id', { ...aCall('c1'), id: '' }],
    ['an unknown key', { ...aCall('c1'), grant: 'all' }],
    ['arguments that are a list', { ...aCall('c1'), arguments: [] }],
    ['arguments with a function', { ...aCall('c1'), arguments: { run: () => 1 } }],
    ['arguments of a class', { ...aCall('c1'), arguments: { at: new Date() } }],
    ['arguments with an absent value', { ...aCall('c1'), arguments: { path: undefined } }],
    ['arguments with __proto__', { ...aCall('c1'), arguments: JSON.parse('{"__proto__":{"admin":true}}') }],
    ['arguments with an empty __proto__', { ...aCall('c1'), arguments: JSON.parse('{"__proto__":null}') }],
    ['arguments 65 deep', { ...aCall('c1'), arguments: deep(65) }],
    ['arguments 100 000 deep', { ...aCall('c1'), arguments: deep(100_000) }],
    ['arguments that hold themselves', { ...aCall('c1'), arguments: cyclic }],
    ['a time without an offset', { ...aCall('c1'), requestedAt: '2027-03-10T10:00:00' }],
    ['a revoked proxy', revokedProxy()],
    ['a negative step', aCall('c1'), { step: -1 }],
    ['half a step', aCall('c1'), { step: 0.5 }],
    ['a step as text', aCall('c1'), { step: '0' }],
    ['an option nobody knows', aCall('c1'), { force: true }],
  ])('with %s gets a contract error and no event', async (_case, call, options) => {
    const world = aWorld({
      runtime: runtimeOf(async (host) => {
        expect(await thrownBy(() => host.invokeTool(call as ToolCall, options as { step: number }))).toBe(ContractError);
        return complete;
      }),
    });
    const result = await world.run();
    expect(result.events.map((event) => event.type)).toEqual(['turn.started', 'turn.completed']);
    expect(world.kernel.calls).toEqual([]);
  });

  it('takes arguments 64 deep', async () => {
    const world = aWorld({
      runtime: runtimeOf(async (host) => {
        await host.invokeTool(aCall('c1', READ.name, { arguments: deep(64) }));
        return complete;
      }),
    });
    expect((await world.run()).status).toBe('succeeded');
  });

  it('cannot change a call between its check and its use', async () => {
    const call = aCall('c1', READ.name, { arguments: { path: ['a.md'] } }) as unknown as { tool: string; arguments: { path: string[] } };
    const world = aWorld({
      runtime: runtimeOf(async (host) => {
        const answer = host.invokeTool(call as unknown as ToolCall);
        call.tool = 'files.delete';
        call.arguments.path[0] = 'b.md';
        await answer;
        await host.invokeTool(getter);
        return complete;
      }),
    });
    const result = await world.run();
    expect(world.kernel.calls.map((taken) => [taken.tool, taken.arguments])).toEqual([
      [READ.name, { path: ['a.md'] }],
      [READ.name, {}],
    ]);
    expect(reads).toBe(1);
    expect(Object.isFrozen(world.kernel.calls[0]?.arguments['path'])).toBe(true);
    expect(JSON.stringify(result.events)).not.toContain('files.delete');
  });

  it('gets a contract error when the kernel’s answer is not one', async () => {
    const world = aWorld({
      runtime: runtimeOf(async (host) => {
        expect(await thrownBy(() => host.invokeTool(aCall('c1')))).toBe(ContractError);
        return complete;
      }),
      kernel: { tools: [{ definition: READ, answer: () => ({ status: 'succeeded' }) as never }] },
    });
    expect((await world.run()).events.map((event) => event.type)).toEqual(['turn.started', 'tool.requested', 'turn.completed']);
  });
});

const revokedProxy = (): unknown => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};

describe('a plugin that reaches for what it was given', () => {
  it('cannot change its request, its limits, its host or an answer', async () => {
    const world = aWorld({
      runtime: runtimeOf(async (host, request) => {
        const answer = await host.invokeTool(aCall('c1'));
        const attempts = [
          () => ((request.context as { purpose: string }).purpose = 'other'),
          () => request.tools.push(APPEND),
          () => ((request.message as { payload: unknown }).payload = 'x'),
          () => ((host.limits as { maxToolCalls: number }).maxToolCalls = 99),
          () => ((host as { invokeTool: unknown }).invokeTool = undefined),
          () => ((answer as { status: string }).status = 'denied'),
        ];
        for (const attempt of attempts) expect(attempt).toThrow(TypeError);
        return complete;
      }),
    });
    expect((await world.run()).status).toBe('succeeded');
  });

  it('cannot fake a stop towards a handler or the envelope', async () => {
    const answer = Promise.withResolvers<void>();
    let falseStops = 0;
    const world = aWorld({
      runtime: runtimeOf(async (host, _request, signal) => {
        const call = host.invokeTool(aCall('c1'));
        await reached('the handler', () => world.kernel.calls.length === 1);
        signal.dispatchEvent(new Event('abort'));
        host.draining.dispatchEvent(new Event('abort'));
        await othersRun();
        answer.resolve();
        return { type: 'complete', output: (await call).status };
      }),
      kernel: {
        tools: [
          {
            definition: READ,
            answer: async (call, context, signal) => {
              signal.addEventListener('abort', () => {
                if (!signal.aborted) falseStops += 1;
              });
              await answer.promise;
              return succeeded(call, context, null);
            },
          },
        ],
      },
    });
    expect(await world.run()).toMatchObject({ status: 'succeeded', output: 'succeeded' });
    expect(falseStops).toBe(0);
  });

  it('cannot change what it said after it said it', async () => {
    const output = { list: ['a'] };
    const note = { list: ['a'] };
    const world = aWorld({
      runtime: runtimeOf((host) => {
        host.annotate('note', note);
        host.emit({ type: 'note', data: note });
        note.list.push('b');
        return { type: 'complete', output };
      }),
    });
    const result = await world.run();
    output.list.push('b');
    expect(result).toMatchObject({ output: { list: ['a'] }, metadata: { note: { list: ['a'] } } });
    expect(result.events[1]?.data).toEqual({ runtime: 'test.runtime', type: 'note', data: { list: ['a'] } });
    expect(Object.isFrozen(result.events[1]?.data)).toBe(true);
  });

  it.each<[string, string, unknown]>([
    ['an empty key', '', 1],
    ['the key of the manifest', 'runtime', {}],
    ['the key __proto__', '__proto__', {}],
    ['a value that is not JSON', 'note', () => 1],
    ['no value', 'note', undefined],
  ])('cannot annotate %s', async (_case, key, value) => {
    const world = aWorld({
      runtime: runtimeOf((host) => {
        expect(() => host.annotate(key, value as never)).toThrow(ContractError);
        return complete;
      }),
    });
    expect((await world.run()).status).toBe('succeeded');
  });
});

describe('a plugin that floods', () => {
  it('with events is stopped at ten thousand, and the turn ends as it says', async () => {
    const world = aWorld({
      runtime: runtimeOf((host) => {
        let told = 0;
        const flood = (): void => {
          for (;;) {
            host.emit({ type: 'n', data: told });
            told += 1;
          }
        };
        expect(flood).toThrow(BrokerLimit);
        return { type: 'complete', output: told };
      }),
    });
    const result = await world.run();
    expect(result.status).toBe('succeeded');
    expect(result).toMatchObject({ output: 10_000 });
    expect(result.events).toHaveLength(10_002);
    expect(result.events.at(-1)).toMatchObject({ type: 'turn.completed', sequence: result.events.length - 1 });
    expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThan(4 * 1024 * 1024);
  });

  it('with large events, large annotations and the largest output still gives a result that fits the bus', async () => {
    const large = 'x'.repeat(60 * 1024);
    const world = aWorld({
      runtime: runtimeOf(async (host) => {
        expect(() => host.emit({ type: 'n', data: 'x'.repeat(64 * 1024) })).toThrow(BrokerLimit);
        expect(
          await thrownBy(() => {
            for (;;) host.emit({ type: 'n', data: large });
          }),
        ).toBe(BrokerLimit);
        host.annotate('a', large);
        expect(() => host.annotate('b', large)).toThrow(BrokerLimit);
        return { type: 'complete', output: 'x'.repeat(4 * 1024 * 1024 - 100) };
      }),
    });
    const result = await world.run();
    expect(result.status).toBe('succeeded');
    expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThan(8 * 1024 * 1024);
  });

  it('with refused calls is stopped by the room for events', async () => {
    let refused = 0;
    const world = aWorld({
      runtime: runtimeOf(async (host) => {
        const thrown = await thrownBy(async () => {
          for (;;) {
            await host.invokeTool(aCall(`c${refused}`, 'guess'));
            refused += 1;
          }
        });
        expect(thrown).toBe(BrokerLimit);
        return complete;
      }),
    });
    const result = await world.run();
    expect(result.status).toBe('succeeded');
    expect(refused).toBeGreaterThan(10_000);
    expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThan(8 * 1024 * 1024);
  });

  it('with ten thousand calls that it was given makes them all, and only its output must be smaller', async () => {
    const world = aWorld({
      runtime: runtimeOf(async (host) => {
        for (let call = 0; call < 10_000; call += 1) await host.invokeTool(aCall(`c${call}`));
        return { type: 'complete', output: 'x'.repeat(3 * 1024 * 1024) };
      }),
    });
    const result = await world.run(aRequest({ options: { maxToolCalls: 10_000 } }));
    expect(result).toMatchObject({ error: { code: 'invalid_runtime_outcome' } });
    expect(result.events).toHaveLength(20_002);
    expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThan(6.5 * 1024 * 1024);
  });

  it.each<[string, unknown]>([
    ['no type', { data: 1 }],
    ['an empty type', { type: '', data: 1 }],
    ['no data', { type: 'n' }],
    ['a key too many', { type: 'n', data: 1, sequence: 0 }],
    ['data that is not JSON', { type: 'n', data: new Map() }],
  ])('with a malformed event (%s) is refused', async (_case, event) => {
    const world = aWorld({
      runtime: runtimeOf((host) => {
        expect(() => host.emit(event as never)).toThrow(ContractError);
        return complete;
      }),
    });
    expect((await world.run()).events).toHaveLength(2);
  });

  it('with a thousand concurrent calls gets as many as the budget has', async () => {
    const world = aWorld({
      runtime: runtimeOf(async (host) => {
        const answers = await Promise.all(Array.from({ length: 1_000 }, (_, index) => host.invokeTool(aCall(`c${index}`))));
        return { type: 'complete', output: answers.filter((answer) => answer.status === 'succeeded').length };
      }),
    });
    const result = await world.run(aRequest({ options: { maxToolCalls: 64 } }));
    expect(result).toMatchObject({ status: 'succeeded', output: 64 });
    expect(world.kernel.calls).toHaveLength(64);
    expect(result.events.map((event) => event.sequence)).toEqual(result.events.map((_, index) => index));
  });

  it('with concurrent steps gets as many distinct ones as the limit', async () => {
    const world = aWorld({
      runtime: runtimeOf(async (host) => {
        const answers = await Promise.all([0, 0, 1, 2, 3, 0].map((step, index) => host.invokeTool(aCall(`c${index}`), { step })));
        return { type: 'complete', output: answers.map((answer) => answer.status) };
      }),
    });
    const result = await world.run(aRequest({ options: { maxSteps: 2, maxToolCalls: 10 } }));
    expect(result).toMatchObject({ output: ['succeeded', 'succeeded', 'succeeded', 'denied', 'denied', 'succeeded'] });
  });
});

describe('a plugin that returns rubbish', () => {
  it.each<[string, () => unknown]>([
    [
      'an outcome that throws when it is read',
      () =>
        Object.defineProperty({}, 'type', {
          enumerable: true,
          get: () => {
            throw new Error('no');
          },
        }),
    ],
    ['a function', () => () => complete],
    ['a promise in a promise of the wrong thing', async () => never],
    ['an array', () => [complete]],
  ])('%s fails by itself', async (_case, outcome) => {
    const world = aWorld({ runtime: runtimeOf(outcome) });
    const result = await world.run();
    expect(ExecutionResult.safeParse(result).success).toBe(true);
    expect(result).toMatchObject({ status: 'failed', error: { code: 'invalid_runtime_outcome' } });
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['an error with a hostile message', Object.defineProperty(new Error(), 'message', { get: () => expect.unreachable() })],
  ])('throws %s and is only a failed runtime', async (_case, thrown) => {
    const world = aWorld({
      runtime: runtimeOf(() => {
        throw thrown;
      }),
    });
    expect(await world.run()).toMatchObject({ status: 'failed', error: { code: 'runtime_failed' } });
    expect(world.errors).toHaveLength(1);
  });

  it('throws an outage of its own and is not believed', async () => {
    const { AuditOutage, TurnLost } = await import('./turn-kernel.ts');
    for (const forged of [new AuditOutage('forged'), new TurnLost('forged')]) {
      const world = aWorld({ runtime: runtimeOf(() => Promise.reject(forged)) });
      expect(await world.run()).toMatchObject({ status: 'failed', error: { code: 'runtime_failed' } });
    }
  });
});
