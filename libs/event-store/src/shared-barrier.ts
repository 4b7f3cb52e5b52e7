import { type Result, type Unavailable, unavailable } from '@sharedos/contracts';
import type { Position } from './event-store.ts';

/** Takes one barrier by itself; must end within a bound of its own. */
export type TakeBarrier = () => Promise<Result<Position, Unavailable>>;

/**
 * Lets callers share barriers: at most one is in flight and one is queued.
 *
 * A caller joins only a barrier that is not yet sent. One in flight may have been answered before an append that this caller
 * already knows to be acknowledged, so joining it would open a turn at a stale revision.
 *
 * @see docs/adr/0004-linearizable-open.md
 */
export const sharedBarrier = (take: TakeBarrier): ((timeoutMs: number) => Promise<Result<Position, Unavailable>>) => {
  let inFlight: Promise<Result<Position, Unavailable>> | undefined;
  let queued: Promise<Result<Position, Unavailable>> | undefined;

  const send = (): Promise<Result<Position, Unavailable>> => {
    const sent = take().finally(() => {
      if (inFlight === sent) inFlight = undefined;
    });
    inFlight = sent;
    return sent;
  };

  const join = (): Promise<Result<Position, Unavailable>> => {
    // Looked at first: between the end of one barrier and the sending of the next there is nothing in flight.
    if (queued !== undefined) return queued;
    if (inFlight === undefined) return send();
    const sendNext = () => {
      queued = undefined;
      return send();
    };
    // A barrier that broke must not stop the next one: it is sent whichever way the one before ended.
    queued = inFlight.then(sendNext, sendNext);
    return queued;
  };

  return (timeoutMs) => within(join(), timeoutMs);
};

const within = (barrier: Promise<Result<Position, Unavailable>>, timeoutMs: number): Promise<Result<Position, Unavailable>> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Result<Position, Unavailable>>((resolve) => {
    timer = setTimeout(() => resolve(unavailable(`no barrier within ${timeoutMs} ms`)), timeoutMs);
  });
  return Promise.race([barrier, late]).finally(() => clearTimeout(timer));
};
