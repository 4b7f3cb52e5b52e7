/** Waits `ms`, or until `signal` is aborted, whichever is first. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
  });

/** The promise's value, or `undefined` when it did not resolve within `ms`; a rejection counts as no answer. */
export const within = <T>(promise: Promise<T>, ms: number): Promise<T | undefined> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), ms);
    const settle = (value: T | undefined): void => {
      clearTimeout(timer);
      resolve(value);
    };
    promise.then(settle, () => settle(undefined));
  });

const BACKOFF_FIRST_MS = 50;
const BACKOFF_MOST_MS = 2_000;

/**
 * How long to wait before attempt `failures + 1`: doubling, and anywhere in the upper half, so that replicas which lost the same
 * server do not come back in one instant.
 */
export const backoffMs = (failures: number, mostMs: number = BACKOFF_MOST_MS): number => {
  const whole = Math.min(mostMs, BACKOFF_FIRST_MS * 2 ** Math.min(failures, 16));
  return whole / 2 + Math.random() * (whole / 2);
};
