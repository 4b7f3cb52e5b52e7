import { readdir } from 'node:fs/promises';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Measurements } from './measurements.ts';

const NS_PER_S = 1e9;

/** What every process says of itself. @returns A function that ends it. */
export const watchProcess = (
  measured: Measurements,
  { service, instance, version }: { readonly service: string; readonly instance: string; readonly version: string },
): (() => void) => {
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  measured.watch('process', () => [{ labels: [service, instance, version], value: 1 }]);
  measured.watch('memory', () => process.memoryUsage.rss());
  measured.watch('descriptors', openFiles);
  measured.watch('loopDelay', () => {
    const late = delay.percentile(99) / NS_PER_S;
    delay.reset();
    return Number.isFinite(late) ? late : undefined;
  });
  return () => delay.disable();
};

/** Known on Linux, where the folder lists them; elsewhere there is no answer. */
const openFiles = async (): Promise<number | undefined> => (await readdir('/proc/self/fd').catch(() => undefined))?.length;
