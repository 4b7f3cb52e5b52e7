import { PROTOCOL_VERSION, type RuntimeManifest, type RuntimeTurnOutcome } from '@sharedos/contracts';
import { contractValue } from './contract-value.ts';
import { type Driver, DriverDecision, type DriverInput, type DriverSession, type SessionStatus } from './driver.ts';
import { ContractError, TurnStopped } from './errors.ts';
import { ESCALATE_TOOL } from './escalate-tool.ts';
import type { Runtime, RuntimeHost } from './runtime.ts';
import { type Timers, systemTimers } from './timers.ts';
import { untilAborted } from './until-aborted.ts';

export const STANDARD_MANIFEST: RuntimeManifest = { id: 'sharedos.standard', version: '1.0.0', protocolVersion: PROTOCOL_VERSION };

export interface StandardLoopOptions {
  readonly driver: Driver;
  /** A driver whose evidence must not be pooled with others states its own; {@link STANDARD_MANIFEST} when absent. */
  readonly manifest?: RuntimeManifest;
  /** How long a session may take to close, in milliseconds; 1 000 when absent. */
  readonly closeTimeoutMs?: number;
  readonly timers?: Timers;
  /** Told of what the driver threw; on the host alone. */
  readonly onTurnError?: (error: unknown) => void;
}

const CLOSE_TIMEOUT_MS = 1_000;

/**
 * Asks a driver for one decision after another and carries it out, at most `maxSteps` times.
 *
 * @see spec/runtimes.md §3
 */
export const standardLoop = (options: StandardLoopOptions): Runtime => {
  const { driver, timers = systemTimers, closeTimeoutMs = CLOSE_TIMEOUT_MS } = options;
  if (!Number.isInteger(closeTimeoutMs) || closeTimeoutMs < 1)
    throw new ContractError('standard loop', 'closeTimeoutMs must be a positive integer');

  const report = (error: unknown): void => {
    try {
      options.onTurnError?.(error);
    } catch {
      // A hook watches; it cannot change how a turn ends.
    }
  };

  /** Not waited for: a session that is slow to close must not run a finished turn into its deadline. */
  const close = (session: DriverSession, status: SessionStatus): void => {
    const limit = new AbortController();
    const cancel = timers.after(closeTimeoutMs, () => limit.abort(new TurnStopped()));
    void (async () => session.close?.(status, limit.signal))().catch(report).finally(cancel);
  };

  return {
    manifest: options.manifest ?? STANDARD_MANIFEST,
    run: async (request, host, signal) => {
      /** What the driver throws ends the turn as its own failure, unless the turn is ending anyway. */
      const asked = async <T>(work: () => Promise<T>): Promise<T | typeof FAILED> => {
        try {
          return await untilAborted(work(), signal);
        } catch (error) {
          if (signal.aborted || host.draining.aborted) throw error;
          report(error);
          return FAILED;
        }
      };
      const session = await asked(async () => driver.open(request, signal));
      if (session === FAILED) return DRIVER_FAILED;
      let status: SessionStatus = 'cancelled';
      try {
        if (session.promptHash !== undefined) host.annotate('promptHash', session.promptHash);
        const outcome = await loop(session, host, asked, signal);
        status = outcome.type === 'complete' ? 'succeeded' : outcome.type === 'escalate' ? 'escalated' : 'failed';
        return outcome;
      } catch (error) {
        status = signal.aborted || host.draining.aborted ? 'cancelled' : 'failed';
        throw error;
      } finally {
        close(session, status);
      }
    },
  };
};

const FAILED = Symbol('the driver failed');

const failed = (code: string, message: string, retryable?: boolean): RuntimeTurnOutcome => ({
  type: 'fail',
  error: { code, message, ...(retryable === undefined ? {} : { retryable }) },
});
const DRIVER_FAILED = failed('driver_failed', 'The driver failed.', true);
const INVALID_DECISION = failed('invalid_driver_decision', 'The driver gave a decision that is not one.');

const loop = async (
  session: DriverSession,
  host: RuntimeHost,
  asked: <T>(work: () => Promise<T>) => Promise<T | typeof FAILED>,
  signal: AbortSignal,
): Promise<RuntimeTurnOutcome> => {
  let input: DriverInput = { type: 'start' };
  for (let position = 0; position < host.limits.maxSteps; position += 1) {
    host.draining.throwIfAborted();
    const question = input;
    const answer: unknown = await asked(async () => session.next(question, signal));
    if (answer === FAILED) return DRIVER_FAILED;
    const parsed = contractValue(DriverDecision, answer);
    if (!parsed.ok) return INVALID_DECISION;
    const decision = parsed.value;
    if (decision.type === 'escalate') {
      // Stated before the turn ends: whatever becomes of it, it is known that it asked.
      host.annotate('escalationAsked', { tool: ESCALATE_TOOL, reason: decision.reason });
      return decision;
    }
    if (decision.type !== 'tool_call') return decision;
    // Naming a step gives nothing: behind the loop it is wrong, ahead of it the envelope judges it.
    if (decision.step !== undefined && decision.step < position) return INVALID_DECISION;
    const result = await host.invokeTool(decision.call, { step: decision.step ?? position });
    host.draining.throwIfAborted();
    input = { type: 'tool_result', result };
  }
  return failed('step_limit_exceeded', 'The driver still asked for tools after the last step.');
};
