import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (options: { readonly type: 'minor' }) => void;
/** What one measurement left behind is not collected in the time of the next. */
const collectLeftovers = (): void => collect({ type: 'minor' });

/** The clock is looked at no more often than this, so that looking costs nothing of what is measured. */
const BATCH_MS = 0.5;

/** Does something so many times. Its loop is its own, so that nothing but the work is in it. */
export type Times = (times: number) => unknown;
export type TimesAsync = (times: number) => Promise<unknown>;

/** Goes through the items in turn, and on where it stopped: a few slow ones never reach the last of them otherwise. */
export const inTurn = <Item>(items: readonly Item[], work: (item: Item) => unknown): Times => {
  let next = 0;
  return (times) => {
    for (let done = 0; done < times; done += 1) {
      work(items[next] as Item);
      next = next + 1 === items.length ? 0 : next + 1;
    }
  };
};

/**
 * Microseconds of this process's own processor time that one of many takes. Other load on the machine takes wall time from us
 * but little processor time; garbage collection and compilation on other threads are in it.
 */
export const processorTimeOf = (forMs: number, work: Times): number => {
  let times = 1;
  while (times < 2 ** 24 && elapsed(() => work(times)) < BATCH_MS) times *= 2;
  collectLeftovers();
  let done = 0;
  const before = process.cpuUsage();
  const until = performance.now() + forMs;
  do {
    work(times);
    done += times;
  } while (performance.now() < until);
  return microsecondsSince(before) / done;
};

/** The same for work that is waited for. */
export const processorTimeOfAsync = async (forMs: number, work: TimesAsync): Promise<number> => {
  const times = 256;
  await work(times);
  collectLeftovers();
  let done = 0;
  const before = process.cpuUsage();
  const until = performance.now() + forMs;
  do {
    await work(times);
    done += times;
  } while (performance.now() < until);
  return microsecondsSince(before) / done;
};

const elapsed = (work: () => unknown): number => {
  const begun = performance.now();
  work();
  return performance.now() - begun;
};

const microsecondsSince = (before: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(before);
  return user + system;
};
