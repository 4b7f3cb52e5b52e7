import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Instant, type JsonObj, type RuntimeExecutionRequest, type RuntimeTurnOutcome, ToolPolicy } from '@sharedos/contracts';
import { contractValue } from '../contract-value.ts';
import { ContractError } from '../errors.ts';
import { firstText } from '../model/prompt.ts';
import type { Runtime } from '../runtime.ts';
import { type Timers, systemTimers } from '../timers.ts';
import { untilAborted } from '../until-aborted.ts';
import { type HarnessProcess, startHarness } from './harness-process.ts';
import { type HarnessEnding, followHarness } from './harness-run.ts';
import { type TurnBridge, openTurnBridge } from './turn-bridge.ts';
import type { HarnessVendor } from './vendor.ts';

export interface HarnessRuntimeOptions {
  readonly vendor: HarnessVendor;
  /** The program, and what stands before the vendor's own arguments. */
  readonly command: string;
  readonly args?: readonly string[];
  /** All that it gets of an environment beside its scratch folder: state here what it needs of `PATH` and of a key for its model. */
  readonly env: Readonly<Record<string, string>>;
  /** Now, in milliseconds since the epoch. */
  readonly clock: () => Instant;
  /** Declared by the host and recorded as such: nobody can verify which model a vendor runs. */
  readonly model?: string;
  readonly modelProvider?: string;
  /** Which tools it has beside ours. Claims about refusals hold as far as those lists are empty or harmless. */
  readonly toolPolicy?: ToolPolicy;
  /** What it is told; the message's text when absent. */
  readonly prompt?: (request: RuntimeExecutionRequest) => string;
  /** Where scratch folders are made; the system's place for temporary files when absent. */
  readonly scratchRoot?: string;
  /** Milliseconds: 120 000 of silence before the input of a session is closed, 5 000 to go after being told to. */
  readonly silenceMs?: number;
  readonly graceMs?: number;
  readonly timers?: Timers;
  /** Told why it could not be started; on the host alone. */
  readonly onTurnError?: (error: unknown) => void;
}

export const MCP_SERVER_NAME = 'sharedos';
const SILENCE_MS = 120_000;
const GRACE_MS = 5_000;

/**
 * Lets a coding command line tool run a turn: it owns the loop, and the turn's tools are all it gets from us, over an MCP server of
 * its own that lives as long as the turn.
 *
 * @throws ContractError for a tool policy that is none.
 * @see spec/runtimes.md §5
 */
export const harnessRuntime = (options: HarnessRuntimeOptions): Runtime => {
  const stated = options.toolPolicy ?? { mode: 'strict', managedMcp: [MCP_SERVER_NAME], harnessLocal: [], externalDirect: [] };
  const toolPolicy = contractValue(ToolPolicy, stated);
  if (!toolPolicy.ok) throw new ContractError('tool policy', toolPolicy.error);
  return {
    manifest: options.vendor.manifest,
    run: async (request, host, signal) => {
      let touch = (): void => undefined;
      const { clock } = options;
      const bridge = await openTurnBridge(request, host, signal, { clock, serverName: MCP_SERVER_NAME, onActivity: () => touch() });
      const turn: HarnessTurn = { options, request, bridge, signal };
      try {
        const ending = await runHarness(turn, (run) => (touch = run));
        return outcomeOf(ending, turn, toolPolicy.value);
      } finally {
        await bridge.close();
      }
    },
  };
};

interface HarnessTurn {
  readonly options: HarnessRuntimeOptions;
  readonly request: RuntimeExecutionRequest;
  readonly bridge: TurnBridge;
  readonly signal: AbortSignal;
}

const runHarness = async (turn: HarnessTurn, onStart: (touch: () => void) => void): Promise<HarnessEnding> => {
  const { options, bridge, signal } = turn;
  const { vendor, timers = systemTimers, silenceMs = SILENCE_MS, graceMs = GRACE_MS } = options;
  let scratch: string | undefined;
  let harness: HarnessProcess | undefined;
  try {
    try {
      scratch = await mkdtemp(join(options.scratchRoot ?? tmpdir(), 'sharedos-harness-'));
      harness = await launch(turn, scratch, timers);
    } catch (error) {
      report(options, error);
      return { type: 'fail', code: 'harness_not_started' };
    }
    signal.throwIfAborted();
    const run = followHarness(harness, { vendor, timers, silenceMs, graceMs });
    onStart(run.touch);
    return await untilAborted(run.ending, signal);
  } finally {
    // Told to go first and waited for last: by then it can reach nothing more, and its folder is nobody's.
    const gone = harness?.stop(graceMs);
    await bridge.close();
    await gone;
    if (scratch !== undefined) await rm(scratch, { recursive: true, force: true, maxRetries: 5 }).catch((error) => report(options, error));
  }
};

/** Writes what the vendor needs, for this user alone, and starts it in an empty folder. */
const launch = async ({ options, request, bridge }: HarnessTurn, scratch: string, timers: Timers): Promise<HarnessProcess> => {
  const { vendor, command, args = [], env, model } = options;
  const { url, token } = bridge;
  const prompt = (options.prompt ?? firstText)(request);
  const told = { url, token, serverName: MCP_SERVER_NAME, scratch, prompt, ...(model === undefined ? {} : { model }) };
  const { files, args: own, env: vendorEnv = {}, input } = vendor.launch(told);
  const work = join(scratch, 'work');
  await mkdir(work, { mode: 0o700 });
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(scratch, name)), { recursive: true, mode: 0o700 });
    await writeFile(join(scratch, name), content, { mode: 0o600 });
  }
  const process = await startHarness(
    { command, args: [...args, ...own], cwd: work, env: { HOME: scratch, TMPDIR: scratch, ...vendorEnv, ...env } },
    timers,
  );
  if (input !== undefined) process.write(input);
  if (vendor.session !== true) process.endInput();
  return process;
};

const outcomeOf = (ending: HarnessEnding, { options, bridge }: HarnessTurn, toolPolicy: ToolPolicy): RuntimeTurnOutcome => {
  const { vendor, model, modelProvider } = options;
  const { latch, catalogHash } = bridge;
  const metadata: JsonObj = {
    harness: vendor.harness,
    toolshare: 'mcp',
    mcpServer: MCP_SERVER_NAME,
    catalogHash,
    toolPolicy,
    toolAliases: { ...bridge.bridge.aliases },
    ...(model === undefined ? {} : { model }),
    ...(modelProvider === undefined ? {} : { modelProvider }),
  };
  if (latch.reason !== undefined) {
    const { callsAfterEscalation } = latch;
    const failed = ending.type === 'fail' ? { harnessErrorCode: ending.code } : {};
    return {
      type: 'escalate',
      reason: latch.reason,
      metadata: { ...metadata, harnessOutcome: ending.type, ...failed, callsAfterEscalation },
    };
  }
  if (ending.type === 'complete') return { type: 'complete', output: { text: ending.text }, metadata };
  const { code, retryable } = ending;
  const error = { code, message: MESSAGES[code] ?? 'The harness failed.', ...(retryable === undefined ? {} : { retryable }) };
  return { type: 'fail', error, metadata };
};

/** What a harness says of itself stays with it: it may hold anything. */
const MESSAGES: Readonly<Record<string, string>> = {
  harness_not_started: 'The harness could not be started.',
  harness_exited_without_outcome: 'The harness ended without saying how.',
  harness_frame_limit_exceeded: 'The harness said more than one turn may.',
};

const report = ({ onTurnError }: HarnessRuntimeOptions, error: unknown): void => {
  try {
    onTurnError?.(error);
  } catch {
    // A hook watches; it cannot change how a turn ends.
  }
};
