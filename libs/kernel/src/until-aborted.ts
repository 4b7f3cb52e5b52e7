/**
 * Waits for `work`, or until `signal` fires, and then rejects with its reason. The work is not stopped by this: cancelling is
 * cooperative, giving up the wait is not.
 */
export const untilAborted = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  // A wait that was given up may still be rejected later, and nobody listens then.
  work.catch(() => undefined);
  signal.throwIfAborted();
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort);
  }
};
