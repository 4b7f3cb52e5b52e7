import type { ExecutionOptions } from '@sharedos/contracts';
import { z } from 'zod';

/**
 * The host's limits for turns that state none. `timeoutMs` and `drainGraceMs` in milliseconds; a grace of 0 turns draining off.
 * `maxToolCalls`, when absent, is the step limit in force. @see spec/turns.md §2
 */
export const EnvelopeDefaults = z.strictObject({
  maxSteps: z.int().min(1).max(1_000).default(16),
  maxToolCalls: z.int().min(1).max(10_000).optional(),
  timeoutMs: z.int().min(1).max(600_000).default(120_000),
  drainGraceMs: z.int().min(0).max(600_000).default(0),
});
/** As a host states them: what is left out is 16 steps, 120 000 ms and no grace. */
export type EnvelopeDefaults = z.input<typeof EnvelopeDefaults>;

/** The limits of one turn, as its runtime sees them. */
export interface TurnLimits {
  readonly maxSteps: number;
  readonly maxToolCalls: number;
  readonly timeoutMs: number;
}

export const limitsInForce = (options: ExecutionOptions | undefined, defaults: z.output<typeof EnvelopeDefaults>): TurnLimits => {
  const maxSteps = options?.maxSteps ?? defaults.maxSteps;
  return Object.freeze({
    maxSteps,
    maxToolCalls: options?.maxToolCalls ?? defaults.maxToolCalls ?? maxSteps,
    timeoutMs: options?.timeoutMs ?? defaults.timeoutMs,
  });
};

/** Events a runtime may emit in one turn, and the size of the data of each. */
export const RUNTIME_EVENTS_MAX = 10_000;
export const RUNTIME_EVENT_BYTES_MAX = 64 * 1024;
/**
 * All events of a turn together, of tools and of the runtime. With the largest outcome and the annotations the result still
 * fits into one message of the bus (8 MiB).
 */
export const EVENTS_BYTES_MAX = 3 * 1024 * 1024;
export const ANNOTATIONS_BYTES_MAX = 64 * 1024;
