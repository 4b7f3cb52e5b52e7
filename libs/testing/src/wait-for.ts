/** Waiting went past its deadline; the message says for what. */
export class DeadlinePassed extends Error {
  override readonly name = 'DeadlinePassed';
}

const POLL_MS = 20;

/**
 * Waits for a state instead of sleeping: asks `probe` until it answers something other than `undefined` or `false`.
 *
 * @throws DeadlinePassed naming `what` when that has not happened within `deadlineMs`.
 */
export const waitFor = async <T>(what: string, probe: () => T | Promise<T>, deadlineMs: number): Promise<Exclude<T, undefined | false>> => {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    const answer = await probe();
    if (answer !== undefined && answer !== false) return answer as Exclude<T, undefined | false>;
    if (performance.now() >= deadline) throw new DeadlinePassed(`${what}: not within ${deadlineMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
};
