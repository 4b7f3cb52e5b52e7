import type { ResourceRef } from '@sharedos/contracts';

/** Under which of the mediated operations a port threw. */
export type ProviderErrorKind = 'tool' | 'tool_catalog' | 'resource' | 'message' | 'policy';

/** What was going on when a port threw. `reasonCode` is what was answered instead, and what the record of it says. */
export interface ProviderErrorContext {
  readonly kind: ProviderErrorKind;
  readonly reasonCode: string;
  readonly traceId: string;
  readonly namespaceId: string;
  readonly operationId?: string;
  readonly tool?: string;
  readonly resource?: ResourceRef;
  readonly action?: string;
}

/**
 * Where a host hears what its ports threw, as it was thrown: it may hold secrets, so it goes nowhere else. Never for a
 * cancellation. It watches and cannot change what is answered.
 */
export type ProviderErrorReporter = (error: unknown, operation: ProviderErrorContext) => void;

/** Tells a diagnostic hook of an error and swallows what the hook throws: a diagnostic must not turn one failure into two. */
export const reportContainedError = <Context>(
  report: ((error: unknown, context: Context) => void) | undefined,
  error: unknown,
  context: Context,
): void => {
  try {
    report?.(error, context);
  } catch {
    // It only watches.
  }
};
