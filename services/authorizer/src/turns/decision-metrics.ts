import { INFRASTRUCTURE_CODES } from '@sharedos/contracts';
import { measurements } from '@sharedos/telemetry';
import type { UsageState } from '@sharedos/usage';
import type { AuthorityFold } from '../fold/authority-fold.ts';

/** Counts one decision. A denial because nobody could find out is none: it is counted apart, and a rate of denials stays one. */
export const countDecision = (outcome: string, reason: string): void => {
  if (INFRASTRUCTURE_CODES.has(reason)) measurements.count('decisionsUnavailable', reason);
  else measurements.count('decisions', outcome, reason);
};

export const watchFold = (fold: AuthorityFold): void => {
  measurements.watch('foldPosition', () => fold.position);
  measurements.watch('foldLag', () => fold.behind);
};

/** @returns What is to hear every state of the counters. */
export const watchUsage = (): ((state: UsageState) => void) => {
  let now: UsageState = { state: 'closed', reason: 'not opened yet' };
  measurements.watch('usageOpen', () => (now.state === 'open' ? 1 : 0));
  measurements.watch('usageEpoch', () =>
    now.state === 'open' && now.epoch !== undefined ? [{ labels: [now.epoch], value: 1 }] : undefined,
  );
  return (state) => {
    // A rebuild is told again and again while it goes on.
    if (state.state === 'rebuilding' && now.state !== 'rebuilding') measurements.count('usageRebuilds');
    now = state;
  };
};
