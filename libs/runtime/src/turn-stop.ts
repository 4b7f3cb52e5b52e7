import { TurnStopped } from './errors.ts';
import type { Timers } from './timers.ts';
import { AuditOutage, TurnLost } from './turn-kernel.ts';
import { untilAborted } from './until-aborted.ts';

/** What can stop one turn, latched: the first loss, outage or stop stays true whatever a plugin throws afterwards. */
export interface TurnStop {
  /** The one hard signal: the caller's cancel, the deadline, or the envelope itself. */
  readonly signal: AbortSignal;
  /** Fires a grace before the deadline, or with an audit outage: nothing new is taken. */
  readonly draining: AbortSignal;
  readonly outage: boolean;
  readonly lost: TurnLost | undefined;
  /**
   * Asks the kernel and waits no longer than the turn lasts. What the kernel says about an outage or a loss is latched even if
   * nobody waits any more.
   */
  ask<T>(work: () => Promise<T>): Promise<T>;
  /** Waits for `work`, or for the hard signal, whichever comes first. */
  until<T>(work: Promise<T>): Promise<T>;
  /** Cancels timers, lets go of the caller's signal and fires the hard signal for whatever is still running. Idempotent. */
  release(): void;
}

/** @see spec/turns.md §12 */
export const createTurnStop = (options: {
  readonly timeoutMs: number;
  readonly drainGraceMs: number;
  readonly timers: Timers;
  readonly caller: AbortSignal | undefined;
}): TurnStop => {
  const { timeoutMs, drainGraceMs, timers, caller } = options;
  const hard = new AbortController();
  const drain = new AbortController();
  const cancels: (() => void)[] = [];
  let outage = false;
  let lost: TurnLost | undefined;
  let released = false;

  const stop = (): void => hard.abort(new TurnStopped());
  const startDraining = (): void => drain.abort(new TurnStopped());

  cancels.push(timers.after(timeoutMs, stop));
  if (drainGraceMs >= timeoutMs) startDraining();
  else if (drainGraceMs > 0) cancels.push(timers.after(timeoutMs - drainGraceMs, startDraining));
  if (caller?.aborted === true) stop();
  caller?.addEventListener('abort', stop, { once: true });

  const latch = (error: unknown): void => {
    if (error instanceof TurnLost && lost === undefined) {
      lost = error;
      stop();
    }
    if (error instanceof AuditOutage && !outage && !released) {
      outage = true;
      startDraining();
      if (drainGraceMs === 0) stop();
      // The deadline's own timer is still set, so the time left bounds the grace.
      else cancels.push(timers.after(drainGraceMs, stop));
    }
  };

  const until = <T>(work: Promise<T>): Promise<T> => untilAborted(work, hard.signal);

  return {
    signal: hard.signal,
    draining: drain.signal,
    get outage() {
      return outage;
    },
    get lost() {
      return lost;
    },
    ask: async (work) => {
      // A turn that was stopped between two steps must not take the next one: admission, for one, spends a use.
      hard.signal.throwIfAborted();
      const asked = (async () => work())();
      asked.catch(latch);
      return until(asked);
    },
    until,
    release: () => {
      released = true;
      for (const cancel of cancels) cancel();
      caller?.removeEventListener('abort', stop);
      stop();
    },
  };
};
