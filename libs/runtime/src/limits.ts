import { type ExecutionOptions, PAYLOAD_BYTES_MAX, RESULT_BYTES_MAX } from '@sharedos/contracts';
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

/** Events a runtime may emit in one turn, the size of the data of each, and of all together. */
export const RUNTIME_EVENTS_MAX = 10_000;
export const RUNTIME_EVENT_BYTES_MAX = 64 * 1024;
export const RUNTIME_EVENTS_BYTES_MAX = 2 * 1024 * 1024;
/**
 * All events of a turn together, of tools and of the runtime: room for the ten thousand calls that a turn may be given. Past it
 * the broker takes nothing more, refused calls included: they are free of the call budget and must not be free of every bound.
 */
export const EVENTS_BYTES_MAX = 6 * 1024 * 1024;
export const ANNOTATIONS_BYTES_MAX = 64 * 1024;

/** What a result and the record that holds it need beside events and outcome. */
const MARGIN_BYTES = 512 * 1024;

/** Largest outcome of a turn that has told so many bytes of events: the whole result is one message of the bus. */
export const outcomeBytesMax = (eventBytes: number): number => Math.min(RESULT_BYTES_MAX, PAYLOAD_BYTES_MAX - MARGIN_BYTES - eventBytes);
