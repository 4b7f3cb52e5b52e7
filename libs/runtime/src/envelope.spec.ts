import { getEventListeners } from 'node:events';
import { ExecutionResult, type ExecutionRequest } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { createEnvelope } from './envelope.ts';
import { ContractError, TurnStopped } from './errors.ts';
import { registerRuntime } from './runtime.ts';
import { standardLoop } from './standard-loop.ts';
import {
  APPEND,
  ESCALATE,
  type MemoryTool,
  READ,
  aCall,
  aRequest,
  aWorld,
  countingIds,
  denied,
  manualTime,
  othersRun,
  reached,
  runtimeOf,
  START,
  succeeded,
  toolNamed,
} from './testing/index.ts';
import { AuditOutage, TurnLost } from './turn-kernel.ts';

const completing = runtimeOf(async () => ({ type: 'complete', output: 'done' }));
const never = (): Promise<never> => new Promise(() => undefined);
const types = (events: readonly { readonly type: string }[]): string[] => events.map((event) => event.type);
const codeOf = (result: ExecutionResult): string | undefined => ('error' in result ? result.error?.code : undefined);

/** What holds of every turn whatever happened in it. */
const checkWhole = (world: ReturnType<typeof aWorld>, result: ExecutionResult): void => {
  expect(ExecutionResult.safeParse(result).success).toBe(true);
  expect(result.events.map((event) => event.sequence)).toEqual(result.events.map((_, index) => index));
  expect(world.heard).toEqual(result.events);
  expect(
    result.events.filter((event) => /^turn\.(completed|failed|denied|cancelled|escalated)$/.test(event.type)).length,
  ).toBeLessThanOrEqual(1);
  expect(world.kernel.ends).toHaveLength(1);
  expect(world.kernel.asked.filter((asked) => asked.startsWith('end '))).toHaveLength(1);
  expect(world.kernel.asked.at(-1)).toMatch(/^end /);
  expect(world.kernel.held).toBe(false);
  expect(world.time.pending).toBe(0);
};

describe('a turn, case by case (turns.md §17)', () => {
  it('1: makes one granted read and completes', async () => {
    const world = aWorld({
      runtime: runtimeOf(async (host) => ({ type: 'complete', output: (await host.invokeTool(aCall('c1'), { step: 0 })).status })),
    });
    const result = await world.run();
    checkWhole(world, result);
    expect(result).toMatchObject({ status: 'succeeded', output: 'succeeded' });
    expect(types(result.events)).toEqual(['turn.started', 'tool.requested', 'tool.completed', 'turn.completed']);
    expect(result.events.map((event) => event.data)).toEqual([
      {
        agent: { kind: 'agent', agentId: 'scout' },
        visibleTools: ['files.read', 'files.append', 'sharedos.escalate'],
        runtime: { id: 'test.runtime', version: '1.0.0', protocolVersion: '1' },
      },
      { callId: 'c1', tool: 'files.read', step: 0 },
      { callId: 'c1', tool: 'files.read', step: 0, status: 'succeeded' },
      {},
    ]);
    expect(world.kernel.asked).toEqual([
      'open',
      'admit',
      'list',
      'offered files.read files.append sharedos.escalate',
      'call files.read',
      'close',
      'end succeeded',
    ]);
    expect(world.kernel.ends[0]).toMatchObject({ at: START, failClosed: false });
    expect(world.kernel.ends[0]).not.toHaveProperty('endedBy');
  });

  it('2: raises an unknown key to the caller; there is no turn', async () => {
    const world = aWorld({ runtime: completing });
    await expect(world.run({ ...aRequest(), runtimeId: 'mine' } as ExecutionRequest)).rejects.toThrow(ContractError);
    expect(world.kernel.asked).toEqual([]);
    expect(world.heard).toEqual([]);
  });

  const context = aRequest().context;
  const message = aRequest().message;
  it.each<[string, string, Partial<ExecutionRequest>]>([
    ['3: a context whose actor is the sender', 'actor_mismatch', { context: { ...context, actor: message.sender } }],
    ['4: a message to another agent', 'receiver_mismatch', { message: { ...message, receiver: { kind: 'agent', agentId: 'clerk' } } }],
    [
      '4: a message to a service of the same id',
      'receiver_mismatch',
      { message: { ...message, receiver: { kind: 'service', serviceId: 'scout' } } },
    ],
    ['5: a message whose purpose differs by one letter', 'message_context_mismatch', { message: { ...message, purpose: 'draft-briefs' } }],
    ['5: a message of another trace', 'message_context_mismatch', { message: { ...message, traceId: 'trace-2' } }],
    ['the actor is judged before the receiver', 'actor_mismatch', { agent: { kind: 'agent', agentId: 'clerk' } }],
  ])('%s is denied before anything is opened', async (_case, code, wrong) => {
    const world = aWorld({ runtime: completing });
    const result = await world.run(aRequest(wrong));
    checkWhole(world, result);
    expect(result).toMatchObject({ status: 'denied', error: { code }, metadata: { runtime: { id: 'test.runtime' } } });
    expect(result.events.map(({ type, data }) => ({ type, data }))).toEqual([{ type: 'turn.denied', data: { code } }]);
    expect(world.kernel.asked).toEqual(['end denied']);
  });

  it('does not compare the sender with anything', async () => {
    const world = aWorld({ runtime: completing });
    const result = await world.run(aRequest({ message: { ...message, sender: { kind: 'service', serviceId: 'anyone' } } }));
    expect(result.status).toBe('succeeded');
  });

  it('6: is cancelled without any event when the caller had given up before', async () => {
    const world = aWorld({ runtime: completing });
    const result = await world.run(aRequest(), { signal: AbortSignal.abort() });
    checkWhole(world, result);
    expect(result).toMatchObject({ status: 'cancelled', events: [], error: { code: 'turn_cancelled', retryable: true } });
    expect(world.kernel.asked).toEqual(['end cancelled']);
    expect(world.kernel.ends[0]).toMatchObject({ endedBy: 'envelope', failClosed: false });
  });

  it('judges the binding before the caller’s signal', async () => {
    const world = aWorld({ runtime: completing });
    const result = await world.run(aRequest({ agent: { kind: 'agent', agentId: 'clerk' } }), { signal: AbortSignal.abort() });
    expect(codeOf(result)).toBe('actor_mismatch');
  });

  it.each([
    ['10', 'no_matching_grant', false],
    ['11', 'grant_exhausted', false],
    ['7', 'authority_unavailable', true],
    ['13', 'host_policy_unavailable', true],
    ['an uncounted use', 'usage_store_unavailable', true],
  ])('%s: an admission refused %s starts no runtime; fail-closed %s', async (_case, reasonCode, failClosed) => {
    let started = false;
    const world = aWorld({ runtime: runtimeOf(() => void (started = true)), kernel: { admission: { allowed: false, reasonCode } } });
    const result = await world.run();
    checkWhole(world, result);
    expect(result).toMatchObject({ status: 'denied', error: { code: reasonCode } });
    expect(types(result.events)).toEqual(['turn.denied']);
    expect(world.kernel.asked).toEqual(['open', 'admit', 'close', 'end denied']);
    expect(world.kernel.ends[0]).toMatchObject({ failClosed });
    expect(started).toBe(false);
  });

  it('12: a plugin that crashes at once has spent the use of its invoke grant', async () => {
    const invokeUses = { left: 1 };
    const crashing = aWorld({
      runtime: runtimeOf(() => {
        throw new Error('secret /etc/passwd');
      }),
      kernel: { invokeUses },
    });
    const result = await crashing.run();
    checkWhole(crashing, result);
    expect(result).toMatchObject({ status: 'failed', error: { code: 'runtime_failed', retryable: true } });
    expect(result.events.at(-1)?.data).toEqual({ code: 'runtime_failed', source: 'envelope' });
    expect(crashing.kernel.ends[0]).toMatchObject({ endedBy: 'envelope', failClosed: false });
    expect(JSON.stringify(result)).not.toContain('passwd');
    expect(crashing.errors).toHaveLength(1);
    const next = aWorld({ runtime: completing, kernel: { invokeUses } });
    expect(codeOf(await next.run())).toBe('grant_exhausted');
  });

  it.each([
    ['14: a guessed name', 'admin.grant.issue', aRequest().tools],
    ['15: a tool that is granted but was not asked for', 'files.append', [READ]],
  ])('%s is refused by the envelope and uses up one call', async (_case, tool, tools) => {
    const world = aWorld({
      runtime: runtimeOf(async (host) => {
        const first = await host.invokeTool(aCall('c1', tool));
        const second = await host.invokeTool(aCall('c2'));
        return { type: 'complete', output: [first, second] };
      }),
    });
    const result = await world.run(aRequest({ tools, options: { maxToolCalls: 1 } }));
    checkWhole(world, result);
    expect(result).toMatchObject({
      output: [{ status: 'denied', error: { code: 'tool_unavailable' } }, { error: { code: 'tool_call_limit_exceeded' } }],
    });
    expect(world.kernel.asked).toContain(`refused ${tool} tool_unavailable not_offered`);
    expect(world.kernel.asked).toContain('refused files.read tool_call_limit_exceeded');
    expect(world.kernel.calls).toEqual([]);
    expect(result.events.filter((event) => event.type === 'tool.completed').map((event) => event.data)).toEqual([
      { callId: 'c1', tool, status: 'denied', code: 'tool_unavailable' },
      { callId: 'c2', tool: 'files.read', status: 'denied', code: 'tool_call_limit_exceeded' },
    ]);
  });

  it('16: hands a refusal of the kernel to the runtime, and the turn goes on', async () => {
    const world = aWorld({
      runtime: runtimeOf(async (host) => ({ type: 'complete', output: await host.invokeTool(aCall('c1')) })),
      kernel: { tools: [{ definition: READ, answer: (call, at) => denied(call, at, 'no_matching_grant') }] },
    });
    const result = await world.run();
    expect(result).toMatchObject({ status: 'succeeded', output: { status: 'denied', error: { code: 'no_matching_grant' } } });
    expect(result.events.at(-2)?.data).toEqual({ callId: 'c1', tool: 'files.read', status: 'denied', code: 'no_matching_grant' });
  });

  it.each([
    ['25: a provider that throws while listing', 'list'],
    ['a kernel that throws while opening', 'open'],
    ['a kernel that throws while admitting', 'admit'],
  ] as const)('%s ends the turn', async (_case, step) => {
    const fault = new Error('provider down');
    const world = aWorld({ runtime: completing, kernel: { before: { [step]: () => Promise.reject(fault) } } });
    const result = await world.run();
    checkWhole(world, result);
    expect(result).toMatchObject({ status: 'failed', error: { code: 'runtime_failed' } });
    expect(world.kernel.ends[0]).toMatchObject({ endedBy: 'envelope' });
    expect(world.errors).toEqual([fault]);
  });

  it('29: refuses a declared step at the limit and leaves the call budget alone', async () => {
    const world = aWorld({
      runtime: runtimeOf(async (host) => {
        const refused = await host.invokeTool(aCall('c1'), { step: 2 });
        const taken = await host.invokeTool(aCall('c2'), { step: 1 });
        return { type: 'complete', output: [refused, taken] };
      }),
    });
    const result = await world.run(aRequest({ options: { maxSteps: 2, maxToolCalls: 1 } }));
    expect(result).toMatchObject({ output: [{ error: { code: 'step_limit_exceeded' } }, { status: 'succeeded' }] });
    expect(world.kernel.asked).toContain('refused files.read step_limit_exceeded');
    expect(result.events[1]?.data).toEqual({ callId: 'c1', tool: 'files.read', step: 2 });
  });

  it('30: refuses the 17th call of 16 and the turn goes on', async () => {
    const world = aWorld({
      runtime: runtimeOf(async (host) => {
        const codes = [];
        for (let call = 1; call <= 17; call += 1) codes.push((await host.invokeTool(aCall(`c${call}`))).status);
        return { type: 'complete', output: codes };
      }),
    });
    const result = await world.run();
    expect(result).toMatchObject({ status: 'succeeded', output: [...Array(16).fill('succeeded'), 'denied'] });
    expect(world.kernel.calls).toHaveLength(16);
  });

  it.each([
    ['33: an outcome of an unknown type', { type: 'done' }],
    ['an outcome with a key too many', { type: 'complete', output: 1, extra: true }],
    ['an outcome without output', { type: 'complete' }],
    ['nothing', undefined],
    ['an output that is not JSON', { type: 'complete', output: { at: new Date() } }],
    ['an output with an absent value', { type: 'complete', output: { a: undefined } }],
    ['an escalation without a reason', { type: 'escalate', reason: ' ' }],
    ['a reason of 513 units', { type: 'escalate', reason: 'x'.repeat(513) }],
    ['an output over the limit', { type: 'complete', output: 'x'.repeat(4 * 1024 * 1024) }],
  ])('%s is an invalid outcome', async (_case, outcome) => {
    const world = aWorld({ runtime: runtimeOf(() => outcome) });
    const result = await world.run();
    checkWhole(world, result);
    expect(result).toMatchObject({ status: 'failed', error: { code: 'invalid_runtime_outcome' } });
    expect(world.kernel.ends[0]).toMatchObject({ endedBy: 'envelope' });
  });

  it.each([
    ['34: a write handler', APPEND, false],
    ['a read', READ, true],
    ['an idempotent write', toolNamed('files.append', { annotations: { idempotent: true } }), true],
  ])('the deadline during %s cancels; retryable only if that is harmless', async (_case, definition, retryable) => {
    const world = aWorld({
      runtime: runtimeOf(async (host) => host.invokeTool(aCall('c1', definition.name))),
      kernel: { tools: [{ definition, answer: never }] },
    });
    const turn = world.run();
    await reached('the call', () => world.kernel.calls.length === 1);
    await world.time.advance(60_000);
    const result = await turn;
    checkWhole(world, result);
    expect(result).toMatchObject({ status: 'cancelled', error: { code: 'turn_cancelled', retryable } });
    expect(types(result.events)).toEqual(['turn.started', 'tool.requested', 'turn.cancelled']);
    expect(world.errors).toEqual([]);
  });

  it('35: refuses what is asked within the grace, and lets the running handler finish', async () => {
    const finish = Promise.withResolvers<void>();
    const seen: string[] = [];
    const world = aWorld({
      defaults: { drainGraceMs: 5_000 },
      runtime: runtimeOf(async (host) => {
        const running = host.invokeTool(aCall('c1', APPEND.name));
        await new Promise((resolve) => host.draining.addEventListener('abort', resolve));
        seen.push((await host.invokeTool(aCall('c2'))).status);
        finish.resolve();
        seen.push((await running).status);
        throw new Error('nothing more to do');
      }),
      kernel: {
        tools: [
          { definition: READ },
          {
            definition: APPEND,
            answer: async (call, at) => {
              await finish.promise;
              return succeeded(call, at, 'written');
            },
          },
        ],
      },
    });
    const turn = world.run();
    await reached('the call', () => world.kernel.calls.length === 1);
    await world.time.advance(54_999);
    expect(seen).toEqual([]);
    await world.time.advance(1);
    const result = await turn;
    checkWhole(world, result);
    expect(seen).toEqual(['denied', 'succeeded']);
    expect(world.kernel.asked).toContain('refused files.read turn_draining');
    expect(result).toMatchObject({ status: 'cancelled', error: { code: 'turn_cancelled', retryable: false } });
    expect(world.errors).toEqual([]);
  });

  it('36: a broker that was kept is useless after the turn', async () => {
    let kept: Parameters<Parameters<typeof runtimeOf>[0]>[0] | undefined;
    const world = aWorld({
      runtime: runtimeOf((host) => {
        kept = host;
        return { type: 'complete', output: null };
      }),
    });
    const result = await world.run();
    await expect(kept?.invokeTool(aCall('late'))).rejects.toThrow('ended');
    expect(() => kept?.emit({ type: 'late', data: null })).toThrow('ended');
    expect(() => kept?.annotate('late', true)).not.toThrow();
    expect(() => kept?.annotate('', true)).not.toThrow();
    expect(world.kernel.calls).toEqual([]);
    expect(result.events).toHaveLength(2);
    expect(result.metadata).not.toHaveProperty('late');
  });

  describe('37: the sink is down at a decision', () => {
    const outage = { invokeTool: () => Promise.reject(new AuditOutage('sink')) };

    it('ends the turn whatever the plugin makes of it', async () => {
      const world = aWorld({
        runtime: runtimeOf(async (host) => {
          await host.invokeTool(aCall('c1')).catch(() => undefined);
          return { type: 'complete', output: 'all is well' };
        }),
        kernel: { before: outage },
      });
      const result = await world.run();
      checkWhole(world, result);
      expect(result).toMatchObject({ status: 'failed', error: { code: 'audit_unavailable', retryable: true } });
      expect(result.events.at(-1)?.data).toEqual({ code: 'audit_unavailable', source: 'envelope' });
      expect(world.kernel.ends[0]).toMatchObject({ endedBy: 'envelope', failClosed: true });
    });

    it('is not retryable once a write may have run', async () => {
      const world = aWorld({
        runtime: runtimeOf(async (host) => host.invokeTool(aCall('c1', APPEND.name))),
        kernel: { before: outage },
      });
      expect(await world.run()).toMatchObject({ error: { code: 'audit_unavailable', retryable: false } });
    });

    it('is stronger than the deadline and than a cancel', async () => {
      const caller = new AbortController();
      const world = aWorld({
        defaults: { drainGraceMs: 5_000 },
        runtime: runtimeOf(async (host) => {
          await host.invokeTool(aCall('c1')).catch(() => undefined);
          return never();
        }),
        kernel: { before: outage },
      });
      const turn = world.run(aRequest(), { signal: caller.signal });
      await reached('the call', () => world.kernel.calls.length === 1);
      await othersRun();
      caller.abort();
      expect(codeOf(await turn)).toBe('audit_unavailable');
    });

    it('aborts at once when there is no grace', async () => {
      const world = aWorld({
        runtime: runtimeOf(async (host) => {
          await host.invokeTool(aCall('c1')).catch(() => undefined);
          return never();
        }),
        kernel: { before: outage },
      });
      expect(codeOf(await world.run())).toBe('audit_unavailable');
    });

    it('drains for the grace, then stops a plugin that goes on', async () => {
      const codes: string[] = [];
      const world = aWorld({
        defaults: { drainGraceMs: 5_000 },
        runtime: runtimeOf(async (host) => {
          await host.invokeTool(aCall('c1')).catch(() => undefined);
          codes.push((await host.invokeTool(aCall('c2'))).status);
          return never();
        }),
        kernel: { before: outage },
      });
      let ended = false;
      const turn = world.run().finally(() => (ended = true));
      await reached('the refused call', () => codes.length === 1);
      await world.time.advance(4_999);
      expect(ended).toBe(false);
      await world.time.advance(1);
      expect(codeOf(await turn)).toBe('audit_unavailable');
      expect(world.kernel.asked).toContain('refused files.read turn_draining');
    });

    it.each(['open', 'admit', 'list', 'recordEscalation'] as const)('ends the turn the same way at %s', async (step) => {
      const world = aWorld({
        runtime: runtimeOf(() => ({ type: 'escalate', reason: 'ask' })),
        kernel: { before: { [step]: () => Promise.reject(new AuditOutage('sink')) } },
      });
      const result = await world.run();
      checkWhole(world, result);
      expect(codeOf(result)).toBe('audit_unavailable');
      expect(world.kernel.ends[0]).toMatchObject({ failClosed: true });
    });
  });

  it('39: escalates when the affordance was offered; nothing is granted', async () => {
    const world = aWorld({ runtime: runtimeOf(() => ({ type: 'escalate', reason: ' needs the salary sheet ', metadata: { seat: 'a' } })) });
    const result = await world.run();
    checkWhole(world, result);
    const reviewer = { kind: 'human', userId: 'maren' };
    expect(result).toMatchObject({
      status: 'escalated',
      escalation: { reason: 'needs the salary sheet', reviewer, requestedAt: START, status: 'pending' },
      metadata: { seat: 'a' },
    });
    expect(result).not.toHaveProperty('error');
    expect(result.events.at(-1)).toMatchObject({ type: 'turn.escalated', data: { reason: 'needs the salary sheet', reviewer } });
    expect(world.kernel.asked.slice(-3)).toEqual(['escalation needs the salary sheet', 'close', 'end escalated']);
  });

  it('40: an escalation without the affordance fails, and nothing says a human was asked', async () => {
    const world = aWorld({ runtime: runtimeOf(() => ({ type: 'escalate', reason: 'please' })) });
    const result = await world.run(aRequest({ tools: [READ] }));
    checkWhole(world, result);
    expect(result).toMatchObject({ status: 'failed', error: { code: 'tool_unavailable' } });
    expect(world.kernel.ends[0]).toMatchObject({ endedBy: 'envelope' });
    expect(world.kernel.asked).not.toContain('escalation please');
  });

  it('41: goes on when reach is unavailable, and says so to the runtime', async () => {
    const reach = { status: 'unavailable', reasonCode: 'usage_store_unavailable' } as const;
    const world = aWorld({
      runtime: runtimeOf((_host, request) => ({ type: 'complete', output: request.context.reach })),
      kernel: { reach },
    });
    expect(await world.run()).toMatchObject({ status: 'succeeded', output: reach });
  });
});

describe('what the envelope is built from', () => {
  it.each([
    ['no steps', { maxSteps: 0 }],
    ['steps over the cap', { maxSteps: 1_001 }],
    ['no calls', { maxToolCalls: 0 }],
    ['calls over the cap', { maxToolCalls: 10_001 }],
    ['no time', { timeoutMs: 0 }],
    ['time over the cap', { timeoutMs: 600_001 }],
    ['a negative grace', { drainGraceMs: -1 }],
    ['half a millisecond', { timeoutMs: 0.5 }],
    ['a limit nobody knows', { maxTokens: 3 } as object],
  ])('refuses a default of %s', (_case, defaults) => {
    expect(() => aWorld({ runtime: completing, defaults })).toThrow(ContractError);
  });

  it.each([
    ['no run function', { manifest: completing.manifest }],
    ['no manifest', { run: async () => null }],
    ['another protocol', { ...completing, manifest: { ...completing.manifest, protocolVersion: '2' } }],
    ['an empty id', { ...completing, manifest: { ...completing.manifest, id: ' ' } }],
  ])('refuses a runtime with %s', (_case, runtime) => {
    expect(() => registerRuntime(runtime as typeof completing)).toThrow(ContractError);
  });

  it('keeps the manifest of the moment it was built', async () => {
    const runtime = {
      manifest: { id: 'first', version: '1', protocolVersion: '1' as const, metadata: { build: 1 } },
      run: async () => ({ type: 'complete', output: null }) as const,
    };
    const world = aWorld({ runtime });
    runtime.manifest.id = 'second';
    runtime.manifest.metadata.build = 2;
    expect((await world.run()).metadata).toEqual({ runtime: { id: 'first', version: '1', protocolVersion: '1', metadata: { build: 1 } } });
  });

  it.each([
    ['the request', { maxSteps: 3, maxToolCalls: 7, timeoutMs: 900 }, {}, { maxSteps: 3, maxToolCalls: 7, timeoutMs: 900 }],
    ['the host', undefined, { maxSteps: 5, maxToolCalls: 9 }, { maxSteps: 5, maxToolCalls: 9, timeoutMs: 60_000 }],
    ['the steps in force', { maxSteps: 3 }, {}, { maxSteps: 3, maxToolCalls: 3, timeoutMs: 60_000 }],
  ])('takes limits from %s', async (_case, options, defaults, limits) => {
    const world = aWorld({ runtime: runtimeOf((host) => ({ type: 'complete', output: { ...host.limits } })), defaults });
    expect(await world.run(aRequest(options === undefined ? {} : { options }))).toMatchObject({ output: limits });
  });

  it('has defaults of its own for a host that states none', () => {
    expect(() => createEnvelope({ runtime: completing, clock: Date.now, ids: countingIds('e'), defaults: {} })).not.toThrow();
  });
});

describe('what a runtime sees', () => {
  it('neither authority nor namespaces, the envelope’s instant, and the definitions that the kernel listed', async () => {
    let seen: object = {};
    const world = aWorld({
      runtime: runtimeOf((_host, request) => {
        seen = request;
        return { type: 'complete', output: null };
      }),
      kernel: {
        tools: [{ definition: toolNamed('a.hidden') }, { definition: ESCALATE }, { definition: READ }],
        reach: {
          status: 'computed',
          reach: [
            { namespace: 'files', path: ['Vault'], actions: ['read'], scope: 'descendants' },
            { namespace: 'repo', path: [], actions: ['log'], scope: 'descendants' },
          ],
        },
      },
    });
    const request = aRequest({
      tools: [toolNamed('files.read', { description: 'A lie about this tool.' }), ESCALATE],
      state: { step: 1 },
      metadata: { note: 'n' },
      options: { maxSteps: 2 },
    });
    await world.run(request);
    const { context: _context, tools: _tools, ...rest } = request;
    const { authority: _authority, enabledToolNamespaces: _namespaces, ...visible } = request.context;
    expect(seen).toEqual({
      ...rest,
      // The order is the kernel's, the words are the kernel's.
      tools: [ESCALATE, READ],
      context: {
        ...visible,
        now: START,
        reach: { status: 'computed', reach: [{ namespace: 'files', path: ['Vault'], actions: ['read'], scope: 'descendants' }] },
      },
    });
    expect(world.kernel.asked).toContain('offered sharedos.escalate files.read');
    expect(world.kernel.contexts[0]).toEqual({ ...request.context, now: START });
  });

  it('an instant for each call, from the envelope’s clock', async () => {
    const world = aWorld({
      runtime: runtimeOf(async (host) => {
        await host.invokeTool(aCall('c1'));
        await world.time.advance(1_500);
        await host.invokeTool(aCall('c2'));
        return { type: 'complete', output: null };
      }),
    });
    const result = await world.run();
    expect(world.kernel.contexts.map((context) => context.now)).toEqual([START, START, '2027-03-10T10:00:01.500Z']);
    expect(result).toMatchObject({ startedAt: START, completedAt: '2027-03-10T10:00:01.500Z' });
  });
});

describe('the deadline', () => {
  it.each(['open', 'admit', 'list'] as const)('covers %s: the turn stops waiting and never runs', async (step) => {
    const world = aWorld({ runtime: completing, kernel: { before: { [step]: never } } });
    const turn = world.run(aRequest({ options: { timeoutMs: 50 } }));
    await reached(step, () => world.kernel.asked.at(-1) === step);
    await world.time.advance(50);
    const result = await turn;
    checkWhole(world, result);
    expect(result).toMatchObject({ status: 'cancelled', error: { retryable: true } });
    expect(types(result.events)).toEqual(['turn.cancelled']);
  });

  it('covers the escalation record', async () => {
    const world = aWorld({
      runtime: runtimeOf(() => ({ type: 'escalate', reason: 'ask' })),
      kernel: { before: { recordEscalation: never } },
    });
    const turn = world.run();
    await reached('the record', () => world.kernel.asked.includes('escalation ask'));
    await world.time.advance(60_000);
    expect((await turn).status).toBe('cancelled');
  });

  it('releases a lease that arrives after its turn was abandoned', async () => {
    const late = Promise.withResolvers<void>();
    const world = aWorld({ runtime: completing, kernel: { before: { open: () => late.promise } } });
    const turn = world.run();
    await reached('open', () => world.kernel.asked.includes('open'));
    await world.time.advance(60_000);
    await turn;
    late.resolve();
    await reached('a closed lease', () => world.kernel.asked.includes('close'));
    expect(world.kernel.held).toBe(false);
  });

  it('takes no call at all when the grace is as long as the deadline', async () => {
    const world = aWorld({
      defaults: { timeoutMs: 1_000, drainGraceMs: 1_000 },
      runtime: runtimeOf(async (host) => ({ type: 'complete', output: (await host.invokeTool(aCall('c1'))).status })),
    });
    expect(await world.run()).toMatchObject({ status: 'succeeded', output: 'denied' });
    expect(world.kernel.calls).toEqual([]);
  });

  it('honours an ending that lands while draining', async () => {
    const world = aWorld({
      defaults: { drainGraceMs: 5_000 },
      runtime: runtimeOf(async (host) => {
        await new Promise((resolve) => host.draining.addEventListener('abort', resolve));
        return { type: 'complete', output: 'in time' };
      }),
    });
    const turn = world.run();
    await world.time.advance(55_000);
    expect(await turn).toMatchObject({ status: 'succeeded', output: 'in time' });
  });

  it('waits for calls in flight when the plugin stops while draining, but no longer than the deadline', async () => {
    const world = aWorld({
      defaults: { drainGraceMs: 5_000 },
      runtime: runtimeOf(async (host) => {
        void host.invokeTool(aCall('c1'));
        await new Promise((_, reject) => host.draining.addEventListener('abort', () => reject(new Error('stopping'))));
      }),
      kernel: { tools: [{ definition: READ, answer: never }] },
    });
    let ended = false;
    const turn = world.run().finally(() => (ended = true));
    await reached('the call', () => world.kernel.calls.length === 1);
    await world.time.advance(59_999);
    expect(ended).toBe(false);
    await world.time.advance(1);
    expect((await turn).status).toBe('cancelled');
  });
});

describe('a cancel by the caller', () => {
  it('stops the turn at once, skips draining and reaches the handler', async () => {
    const caller = new AbortController();
    let reachedHandler = false;
    const world = aWorld({
      defaults: { drainGraceMs: 5_000 },
      runtime: runtimeOf((host) => host.invokeTool(aCall('c1'))),
      kernel: {
        tools: [
          {
            definition: READ,
            answer: (_call, _context, signal) =>
              new Promise((_, reject) =>
                signal.addEventListener('abort', () => {
                  reachedHandler = true;
                  reject(new Error('aborted'));
                }),
              ),
          },
        ],
      },
    });
    const turn = world.run(aRequest(), { signal: caller.signal });
    await reached('the call', () => world.kernel.calls.length === 1);
    caller.abort();
    const result = await turn;
    checkWhole(world, result);
    expect(result.status).toBe('cancelled');
    expect(reachedHandler).toBe(true);
  });

  it('leaves the broker open for a fact and closed for everything else until the turn has ended', async () => {
    const caller = new AbortController();
    const thrown: unknown[] = [];
    const world = aWorld({
      runtime: runtimeOf((host, _request, signal) => {
        signal.addEventListener('abort', () => {
          host.annotate('escalationAsked', { tool: 'sharedos.escalate', reason: 'r' });
          expect(() => host.emit({ type: 'late', data: null })).toThrow(TurnStopped);
          host.invokeTool(aCall('late')).catch((error: unknown) => thrown.push(error));
        });
        caller.abort();
        return never();
      }),
    });
    const result = await world.run(aRequest(), { signal: caller.signal });
    expect(result).toMatchObject({ status: 'cancelled', metadata: { escalationAsked: { reason: 'r' } } });
    expect(types(result.events)).toEqual(['turn.started', 'turn.cancelled']);
    expect(thrown).toEqual([expect.any(TurnStopped)]);
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
  });

  it('by whoever watches a call being asked for stops it before the kernel hears of it', async () => {
    const caller = new AbortController();
    const world = aWorld({ runtime: runtimeOf((host) => host.invokeTool(aCall('c1'))) });
    const onEvent = ({ type }: { readonly type: string }): void => {
      if (type === 'tool.requested') caller.abort();
    };
    expect((await world.run(aRequest(), { signal: caller.signal, onEvent })).status).toBe('cancelled');
    expect(world.kernel.calls).toEqual([]);
  });

  it('does not stay listened to after the turn', async () => {
    const caller = new AbortController();
    await aWorld({ runtime: completing }).run(aRequest(), { signal: caller.signal });
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
  });

  it('that comes while authority is opened spends no admission', async () => {
    const caller = new AbortController();
    const world = aWorld({ runtime: completing, kernel: { before: { open: () => caller.abort() } } });
    expect((await world.run(aRequest(), { signal: caller.signal })).status).toBe('cancelled');
    expect(world.kernel.asked).not.toContain('admit');
  });
});

describe('a turn that was lost to another owner', () => {
  it.each(['open', 'admit', 'list', 'invokeTool', 'recordRefusal', 'recordEscalation', 'end'] as const)(
    'at %s rejects, and neither records nor tells an ending',
    async (step) => {
      const world = aWorld({
        runtime: runtimeOf(async (host) => {
          await host.invokeTool(aCall('c1')).catch(() => undefined);
          await host.invokeTool(aCall('c2', 'guess')).catch(() => undefined);
          return { type: 'escalate', reason: 'ask' };
        }),
        kernel: { before: { [step]: () => Promise.reject(new TurnLost('fenced')) } },
      });
      await expect(world.run()).rejects.toThrow(TurnLost);
      expect(world.kernel.ends).toEqual([]);
      expect(world.kernel.held).toBe(false);
      expect(world.time.pending).toBe(0);
      expect(types(world.heard).filter((type) => type.startsWith('turn.') && type !== 'turn.started')).toEqual([]);
    },
  );

  it('stops a plugin that never looks', async () => {
    const world = aWorld({
      runtime: runtimeOf(async (host) => {
        void host.invokeTool(aCall('c1'));
        return never();
      }),
      kernel: { before: { invokeTool: () => Promise.reject(new TurnLost('fenced')) } },
    });
    await expect(world.run()).rejects.toThrow(TurnLost);
    expect(types(world.heard)).toEqual(['turn.started', 'tool.requested']);
  });
});

describe('the end', () => {
  it('is not changed by a terminal record that could not be written; the host is told', async () => {
    const fault = new Error('store down');
    const world = aWorld({ runtime: completing, kernel: { before: { end: () => Promise.reject(fault) } } });
    expect((await world.run()).status).toBe('succeeded');
    expect(world.errors).toEqual([fault]);
    expect(types(world.heard)).toEqual(['turn.started', 'turn.completed']);
  });

  it('is told to an observer only after the record stands', async () => {
    const world = aWorld({ runtime: completing, kernel: { before: { end: () => expect(types(world.heard)).toEqual(['turn.started']) } } });
    await world.run();
    expect(world.errors).toEqual([]);
    expect(types(world.heard)).toEqual(['turn.started', 'turn.completed']);
  });

  it('is not changed by an observer that throws or a hook that rejects', async () => {
    const world = aWorld({
      runtime: runtimeOf(() => {
        throw new Error('crash');
      }),
      envelope: { onTurnError: () => Promise.reject(new Error('hook')) as never },
    });
    const result = await world.run(aRequest(), {
      onEvent: () => {
        throw new Error('observer');
      },
    });
    expect(types(result.events)).toEqual(['turn.started', 'turn.failed']);
  });

  it('has metadata of the outcome, then annotations, then the manifest', async () => {
    const world = aWorld({
      runtime: runtimeOf((host) => {
        host.annotate('promptHash', 'one');
        host.annotate('promptHash', 'two');
        return {
          type: 'fail',
          error: { code: 'model_call_failed', message: 'm' },
          metadata: { promptHash: 'zero', model: 'm1', runtime: 'forged' },
        };
      }),
    });
    const result = await world.run();
    expect(result).toMatchObject({ status: 'failed', error: { code: 'model_call_failed' } });
    expect(result.metadata).toEqual({ promptHash: 'two', model: 'm1', runtime: completing.manifest });
    expect(world.kernel.ends[0]).toMatchObject({ endedBy: 'runtime', failClosed: false });
  });

  it('lets no runtime claim an outage of ours', async () => {
    const world = aWorld({ runtime: runtimeOf(() => ({ type: 'fail', error: { code: 'audit_unavailable', message: 'm' } })) });
    await world.run();
    expect(world.kernel.ends[0]).toMatchObject({ endedBy: 'runtime', failClosed: false });
  });
});

describe('the retry hint', () => {
  const failing = (tool: string) =>
    runtimeOf(async (host) => {
      await host.invokeTool(aCall('c1', tool));
      return { type: 'fail', error: { code: 'model_call_failed', message: 'm', retryable: true } };
    });

  it.each([
    ['stays after a read', READ, undefined, true],
    ['is taken back after a write', APPEND, undefined, false],
    ['stays after a write that the kernel refused', APPEND, 'no_matching_grant', true],
    ['stays after an idempotent write', toolNamed('files.append', { annotations: { idempotent: true } }), undefined, true],
  ])('%s', async (_case, definition, refusedWith, retryable) => {
    const answer: MemoryTool['answer'] = (call, at) =>
      refusedWith === undefined ? succeeded(call, at, null) : denied(call, at, refusedWith);
    const world = aWorld({ runtime: failing(definition.name), kernel: { tools: [{ definition, answer }] } });
    expect(await world.run()).toMatchObject({ status: 'failed', error: { retryable } });
  });

  it('believes the kernel’s definition of a tool and not the request’s', async () => {
    const world = aWorld({ runtime: failing(APPEND.name) });
    const result = await world.run(aRequest({ tools: [toolNamed('files.append', { readWrite: 'read' })] }));
    expect(result).toMatchObject({ error: { retryable: false } });
  });

  it('is false while a write is still with the kernel at the end', async () => {
    const world = aWorld({
      runtime: runtimeOf((host) => {
        void host.invokeTool(aCall('c1', APPEND.name));
        throw new Error('crash');
      }),
      kernel: { tools: [{ definition: APPEND, answer: never }] },
    });
    expect(await world.run()).toMatchObject({ error: { code: 'runtime_failed', retryable: false } });
  });

  it('is not invented for a runtime that did not give one', async () => {
    const world = aWorld({ runtime: runtimeOf(() => ({ type: 'fail', error: { code: 'x', message: 'm' } })) });
    expect(await world.run()).toHaveProperty('error', { code: 'x', message: 'm' });
  });
});

describe('one envelope', () => {
  it('runs many turns at once without mixing them', async () => {
    const time = manualTime(START);
    const runtime = standardLoop({
      driver: {
        open: async (request) => {
          let asked = false;
          return {
            next: async () => {
              if (asked) return { type: 'complete', output: request.executionId };
              asked = true;
              return { type: 'tool_call', call: aCall(request.executionId) };
            },
          };
        },
      },
      timers: time.timers,
    });
    const worlds = Array.from({ length: 8 }, () => aWorld({ runtime, time }));
    const results = await Promise.all(worlds.map((world, index) => world.run(aRequest({ executionId: `exec-${index}` }))));
    expect(results.map((result) => result.status === 'succeeded' && result.output)).toEqual(results.map((_, index) => `exec-${index}`));
    worlds.forEach((world, index) => expect(world.kernel.calls.map((call) => call.id)).toEqual([`exec-${index}`]));
  });
});
