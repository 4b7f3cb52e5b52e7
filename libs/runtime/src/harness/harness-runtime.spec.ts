import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ExecutionResult, instantOf } from '@sharedos/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ContractError } from '../errors.ts';
import { denied, succeeded } from '../testing/memory-turn-kernel.ts';
import { ESCALATE, READ, START, type World, aRequest, aWorld } from '../testing/turn-fixture.ts';
import { claudeCode } from './claude-code.ts';
import { codex } from './codex.ts';
import { deepseek } from './deepseek.ts';
import { type HarnessRuntimeOptions, harnessRuntime } from './harness-runtime.ts';
import { pi } from './pi.ts';
import type { HarnessVendor } from './vendor.ts';

const FIXTURE = join(import.meta.dirname, 'cli.fixture.ts');
const VENDORS: readonly HarnessVendor[] = [codex, claudeCode, deepseek, pi('/opt/mcp.js')];

let scratchRoot: string;
beforeAll(async () => {
  scratchRoot = await mkdtemp(join(tmpdir(), 'harness-spec-'));
});
afterAll(() => rm(scratchRoot, { recursive: true, force: true }));

interface Told {
  readonly calls?: readonly { readonly name: string; readonly arguments?: object }[];
  readonly end: string;
}

const aTurn = (
  vendor: HarnessVendor,
  options: Partial<HarnessRuntimeOptions> = {},
  kernel: Parameters<typeof aWorld>[0]['kernel'] = {},
): World =>
  aWorld({
    runtime: harnessRuntime({
      vendor,
      command: process.execPath,
      args: [FIXTURE, vendor.harness],
      env: { PATH: process.env['PATH'] ?? '' },
      clock: () => instantOf(START) ?? NaN,
      scratchRoot,
      graceMs: 10_000,
      ...options,
    }),
    kernel,
  });
const told = (script: Told) => aRequest({ message: { ...aRequest().message, payload: JSON.stringify(script) } });
const run = (script: Told, vendor: HarnessVendor = codex, options: Partial<HarnessRuntimeOptions> = {}): Promise<ExecutionResult> =>
  aTurn(vendor, options).run(told(script));
const saidIn = (result: ExecutionResult): string => (result.status === 'succeeded' ? (result.output as { text: string }).text : '');
const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

describe.each(VENDORS.map((vendor) => [vendor.harness, vendor] as const))('a turn of %s', (name, vendor) => {
  it('calls the tools of the turn over MCP, and ends as it says', async () => {
    const answer = (call: Parameters<typeof succeeded>[0], context: Parameters<typeof succeeded>[1]) =>
      succeeded(call, context, 'the notes');
    const world = aTurn(vendor, { model: 'some-model', modelProvider: 'some-provider' }, { tools: [{ definition: READ, answer }] });
    const result = await world.run(
      told({ calls: [{ name: 'files_read', arguments: { path: ['a'] } }, { name: 'files.purge' }], end: 'complete' }),
    );
    expect(result).toMatchObject({
      status: 'succeeded',
      metadata: {
        runtime: { id: `sharedos.${name}.mcp` },
        harness: name,
        toolshare: 'mcp',
        mcpServer: 'sharedos',
        catalogHash: expect.stringMatching(/^[0-9a-f]{64}$/),
        model: 'some-model',
        modelProvider: 'some-provider',
        toolAliases: { files_read: 'files.read' },
        toolPolicy: { mode: 'strict', externalDirect: [] },
      },
    });
    if (name !== 'claude-code') expect(saidIn(result)).toContain('did the notes\nrefused {"status":"denied","code":"tool_unavailable"');
    else expect(saidIn(result)).toBe('all done');
    expect(world.kernel.calls).toMatchObject([{ tool: 'files.read', arguments: { path: ['a'] }, traceId: 'trace-1', requestedAt: START }]);
    expect(world.kernel.asked).toContain('refused files.purge tool_unavailable not_offered');
  });

  it('that it calls failed is the harness’s failure, and its words stay with it', async () => {
    const result = await run({ end: 'failed' }, vendor);
    const code = { deepseek: 'context_too_long', 'claude-code': 'error_max_turns' }[name] ?? 'harness_failed';
    expect(result).toMatchObject({ status: 'failed', error: { code } });
    if (code === 'harness_failed') expect(result).toMatchObject({ error: { retryable: true } });
    expect(JSON.stringify(result)).not.toContain('secret');
  });

  it('gives it nothing of our environment, files for it alone, and no token where others look', async () => {
    process.env['SECRET_OF_OURS'] = 'x';
    const result = await run(
      { end: 'look-around' },
      { ...vendor, read: (line) => (vendor.read(line)?.type === 'complete' ? { type: 'complete' } : vendor.read(line)) },
    );
    delete process.env['SECRET_OF_OURS'];
    const seen = JSON.parse(saidIn(result)) as {
      env: string[];
      argv: string[];
      cwd: boolean;
      modes: string[];
      scratch: string;
      authorization: string;
    };
    expect(seen.env).toEqual(name === 'codex' ? ['CODEX_HOME', 'HOME', 'PATH', 'TMPDIR'] : ['HOME', 'PATH', 'TMPDIR']);
    expect(seen.authorization).toMatch(/^Bearer [\w-]+\.[\w-]{43}$/);
    expect(seen.argv.join(' ')).not.toContain(seen.authorization.slice('Bearer '.length));
    expect(seen.modes).toEqual(['700', '600']);
    expect(seen.cwd).toBe(true);
    expect(existsSync(seen.scratch)).toBe(false);
  });
});

describe('how a harness ends', () => {
  it('not started, where there is no such program', async () => {
    const errors: unknown[] = [];
    const world = aTurn(codex, { command: '/no/such/program', onTurnError: (error) => void errors.push(error) });
    expect(await world.run(told({ end: 'complete' }))).toMatchObject({ status: 'failed', error: { code: 'harness_not_started' } });
    expect(errors).toMatchObject([{ code: 'ENOENT' }]);
  });

  it('by itself and well, with what it had said', async () => {
    const result = await run({ end: 'exit' });
    expect(result).toMatchObject({ status: 'succeeded', output: { text: 'that is all' } });
  });

  it.each(['exit-3', 'killed'])('by itself and not well: %s', async (end) =>
    expect(await run({ end })).toMatchObject({ status: 'failed', error: { code: 'harness_exited_without_outcome' } }),
  );

  it('with a failure that it has no code for', async () =>
    expect(await run({ end: 'failed-without-code' }, deepseek)).toMatchObject({ error: { code: 'harness_failed', retryable: true } }));

  it('by its own word, even if it does not go: then it is made to', async () => {
    const result = await run({ end: 'linger' }, codex, { graceMs: 50 });
    expect(result).toMatchObject({ status: 'succeeded' });
  });

  it.each(['long-line', 'much-text'])('for it says more than one turn may: %s', async (end) =>
    expect(await run({ end })).toMatchObject({ status: 'failed', error: { code: 'harness_frame_limit_exceeded' } }),
  );

  it('with all that it started', async () => {
    const result = await run({ end: 'leave-child' });
    expect(result.status).toBe('succeeded');
    const pid = Number(/pid (\d+)/.exec(saidIn(result))?.[1]);
    await expect.poll(() => alive(pid), { timeout: 30_000 }).toBe(false);
  });

  it('when nobody has spoken for long, for a session whose input is then closed', async () =>
    expect(await run({ end: 'until-input-ends' }, deepseek, { silenceMs: 200 })).toMatchObject({
      status: 'succeeded',
      output: { text: 'nobody speaks any more' },
    }));

  it.each([
    ['hang', 10_000],
    ['hang-deaf', 100],
  ])('with the turn, when that is stopped: one that would %s', async (end, graceMs) => {
    const stop = new AbortController();
    let pid = 0;
    const watched: HarnessVendor = {
      ...codex,
      read: (line) => {
        const frame = codex.read(line);
        if (frame?.type === 'text') {
          pid = Number(/pid (\d+)/.exec(frame.text)?.[1]);
          stop.abort();
        }
        return frame;
      },
    };
    const result = await aTurn(watched, { graceMs }).run(told({ end }), { signal: stop.signal });
    expect(result).toMatchObject({ status: 'cancelled', error: { code: 'turn_cancelled' } });
    await expect.poll(() => alive(pid), { timeout: 30_000 }).toBe(false);
  });

  it('and leaves nothing behind', () => expect.poll(() => readdir(scratchRoot), { timeout: 30_000 }).toEqual([]));
});

describe('a harness that asks for a human', () => {
  const calls = [
    { name: 'sharedos.escalate', arguments: { reason: 'outside my authority' } },
    { name: 'files.read' },
    { name: 'files.append' },
    { name: 'files.read' },
  ];

  it('10: ends its turn with the ask, whatever it tried afterwards', async () => {
    const world = aTurn(codex);
    const result = await world.run(told({ calls, end: 'exit' }));
    expect(result).toMatchObject({
      status: 'escalated',
      escalation: { reason: 'outside my authority', status: 'pending' },
      metadata: {
        harnessOutcome: 'complete',
        callsAfterEscalation: 3,
        escalationAsked: { tool: ESCALATE.name, reason: 'outside my authority' },
      },
    });
    expect(result.metadata).not.toHaveProperty('harnessErrorCode');
    expect(world.kernel.calls).toEqual([]);
  });

  it('has asked even if it fails then', async () =>
    expect(await run({ calls: calls.slice(0, 1), end: 'exit-3' })).toMatchObject({
      status: 'escalated',
      metadata: { harnessOutcome: 'fail', harnessErrorCode: 'harness_exited_without_outcome', callsAfterEscalation: 0 },
    }));

  it('11: is cancelled if it hangs, and that it asked is still known', async () => {
    const stop = new AbortController();
    const watched: HarnessVendor = {
      ...codex,
      read: (line) => (codex.read(line)?.type === 'text' ? (stop.abort(), undefined) : undefined),
    };
    const world = aTurn(watched);
    const result = await world.run(told({ calls: calls.slice(0, 1), end: 'hang' }), { signal: stop.signal });
    expect(result).toMatchObject({ status: 'cancelled', metadata: { escalationAsked: { reason: 'outside my authority' } } });
    expect(world.kernel.asked.filter((asked) => asked.startsWith('escalation'))).toEqual([]);
  });
});

describe('what a harness may do', () => {
  it('9: goes on after a refusal, which it reads', async () => {
    const answer: Parameters<typeof aTurn>[2] = {
      tools: [{ definition: READ, answer: (call, context) => denied(call, context, 'no_matching_grant') }],
    };
    const result = await aTurn(codex, {}, answer).run(told({ calls: [{ name: 'files.read' }, { name: 'files.read' }], end: 'complete' }));
    expect(saidIn(result).match(/refused .*no_matching_grant/g)).toHaveLength(2);
  });

  it('is bounded by the calls of the turn, since it declares no step', async () => {
    const world = aTurn(codex);
    const many = Array.from({ length: 4 }, () => ({ name: 'files.read' }));
    const result = await world.run({ ...told({ calls: many, end: 'complete' }), options: { maxSteps: 1, maxToolCalls: 3 } });
    expect(saidIn(result)).toContain('tool_call_limit_exceeded');
    expect(world.kernel.calls).toHaveLength(3);
    expect(new Set(world.kernel.calls.map(({ id }) => id)).size).toBe(3);
  });

  it('is what the host declares: a strict one has nothing external', () =>
    expect(() =>
      aTurn(codex, { toolPolicy: { mode: 'strict', managedMcp: ['sharedos'], harnessLocal: [], externalDirect: ['web'] } }),
    ).toThrow(ContractError));
});
