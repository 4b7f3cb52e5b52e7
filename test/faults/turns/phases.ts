import { setTimeout as pause } from 'node:timers/promises';

/** The phases of a run, one after the other: each has a deadline, and a run that hangs says where. */
export interface Phases {
  /**
   * Runs one phase. `signal` aborts when its time is over; nobody waits for it any more then.
   *
   * @param howFar How far the phase is, in words.
   * @returns What the phase returned, or nothing when it failed or took too long: `failures` says so.
   */
  run<T>(name: string, deadlineMs: number, work: (signal: AbortSignal) => Promise<T>, howFar?: () => string): Promise<T | undefined>;
  readonly failures: readonly string[];
}

const TELL_MS = 5_000;

export const phasesOf = (onProgress: (line: string) => void): Phases => {
  const failures: string[] = [];
  return {
    failures,
    run: async (name, deadlineMs, work, howFar = () => '') => {
      const startedAt = performance.now();
      const seconds = (): number => Math.round((performance.now() - startedAt) / 1_000);
      const tell = (): void => onProgress([`${name}, ${seconds()} s`, howFar()].filter((part) => part !== '').join(': '));
      tell();
      const telling = setInterval(tell, TELL_MS);
      const over = new AbortController();
      const overdue = pause(deadlineMs, undefined, { signal: over.signal }).then(
        () => Promise.reject(new Error(`not within ${deadlineMs / 1_000} s`)),
        () => undefined as never,
      );
      try {
        return await Promise.race([work(over.signal), overdue]);
      } catch (error) {
        const failure = `${name}: ${error instanceof Error ? error.message : String(error)}${howFar() === '' ? '' : ` (${howFar()})`}`;
        failures.push(failure);
        onProgress(failure);
        return undefined;
      } finally {
        clearInterval(telling);
        over.abort();
      }
    },
  };
};
