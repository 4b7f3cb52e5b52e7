import {
  RuntimeManifest,
  type Json,
  type RuntimeEvent,
  type RuntimeExecutionRequest,
  type RuntimeTurnOutcome,
  type ToolCall,
  type ToolResult,
} from '@sharedos/contracts';
import { contractValue } from './contract-value.ts';
import { ContractError } from './errors.ts';
import type { TurnLimits } from './limits.ts';

/**
 * The broker: a runtime's only way to have an effect, and useless once the turn has ended.
 *
 * @see spec/turns.md §7
 */
export interface RuntimeHost {
  readonly limits: TurnLimits;
  /** Fires when the turn takes nothing new; calls already with the kernel may still answer. */
  readonly draining: AbortSignal;
  /**
   * One call, decided by the kernel from its exact arguments. A refusal is a result. Rejects when the turn is stopped or has
   * ended, with {@link ContractError} for a malformed call, and with `AuditOutage` when a decision could not be recorded.
   *
   * @param options.step Declares the step this call belongs to; it widens nothing.
   */
  invokeTool(call: ToolCall, options?: { readonly step?: number }): Promise<ToolResult>;
  /** Tells one event of the runtime's own. Throws once the turn is stopped, for a malformed event, and past the bounds. */
  emit(event: RuntimeEvent): void;
  /** States one fact for the result's metadata; the last write of a key wins. Dropped once the turn has ended. */
  annotate(key: string, value: Json): void;
}

/** A replaceable agent loop. One instance serves many turns at once, so what belongs to a turn lives inside `run`. */
export interface Runtime {
  readonly manifest: RuntimeManifest;
  /** @param signal The turn's hard signal: once it has fired nobody waits for the outcome. */
  run(request: RuntimeExecutionRequest, host: RuntimeHost, signal: AbortSignal): Promise<RuntimeTurnOutcome>;
}

/** Takes a plugin on: its manifest is copied and frozen now, so later edits to the plugin's object change nothing. */
export const registerRuntime = (runtime: Runtime): Runtime => {
  if (typeof runtime !== 'object' || runtime === null || typeof runtime.run !== 'function')
    throw new ContractError('runtime', 'it has no run function');
  const manifest = contractValue(RuntimeManifest, runtime.manifest);
  if (!manifest.ok) throw new ContractError('runtime manifest', manifest.error);
  const run = runtime.run.bind(runtime);
  return Object.freeze({ manifest: manifest.value, run });
};
