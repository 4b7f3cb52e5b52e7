import { PROTOCOL_VERSION } from '@sharedos/contracts';
import { ContractError } from '../errors.ts';
import type { Runtime } from '../runtime.ts';
import { type StandardLoopOptions, standardLoop } from '../standard-loop.ts';
import { type RemoteDriverOptions, remoteDriver } from './remote-driver.ts';

export { type AskAgent, RemoteAgentFailure } from './remote-driver.ts';

export const STEP_TIMEOUT_MS = 30_000;
/** No step outlasts the longest turn. */
export const STEP_TIMEOUT_MS_MAX = 600_000;

export interface RemoteRuntimeOptions extends Omit<RemoteDriverOptions, 'stepTimeoutMs'>, Omit<StandardLoopOptions, 'driver' | 'manifest'> {
  /** {@link STEP_TIMEOUT_MS} when absent. */
  readonly stepTimeoutMs?: number;
}

/**
 * The standard loop over an agent in another process. An agent that is silent, late, or answers anything but the step it was asked ends
 * its turn `driver_failed`, and nothing else.
 *
 * @throws ContractError on a time-out that is none.
 */
export const remoteRuntime = (options: RemoteRuntimeOptions): Runtime => {
  const { stepTimeoutMs = STEP_TIMEOUT_MS } = options;
  if (!Number.isInteger(stepTimeoutMs) || stepTimeoutMs < 1 || stepTimeoutMs > STEP_TIMEOUT_MS_MAX)
    throw new ContractError('remote runtime', `stepTimeoutMs must be a whole number up to ${STEP_TIMEOUT_MS_MAX}`);
  return standardLoop({
    ...options,
    manifest: { id: 'sharedos.remote', version: '1.0.0', protocolVersion: PROTOCOL_VERSION, metadata: { driver: 'remote' } },
    driver: remoteDriver({ ...options, stepTimeoutMs }),
  });
};
