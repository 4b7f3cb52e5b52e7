import type { LedgerRecord } from '@sharedos/contracts';
import { type LocalStack, type ServiceProcess, waitFor } from '@sharedos/testing';

/** The tool-executors of a test that come and go. */
export interface Executors {
  /** Those that run now. */
  running(): readonly ServiceProcess[];
  /** The process that claimed the turn of these records. */
  ownerOf(records: readonly LedgerRecord[]): ServiceProcess;
  /** Starts some until so many run. */
  upTo(count: number): Promise<void>;
  start(env?: Readonly<Record<string, string>>): Promise<ServiceProcess>;
}

export const executorsOf = (stack: LocalStack): Executors => {
  const running = (): readonly ServiceProcess[] => stack.services().filter(({ name }) => name === 'tool-executor');
  const start: Executors['start'] = (env = {}) => stack.startService('tool-executor', { env });
  return {
    running,
    ownerOf: (records) => {
      const [claimed] = records;
      if (claimed?.type !== 'claimed') throw new Error('nobody has claimed this turn');
      const owner = running().find(({ instance }) => claimed.ownerId.startsWith(`${instance}-`));
      if (owner === undefined) throw new Error(`${claimed.ownerId} does not run`);
      return owner;
    },
    start,
    upTo: async (count) => {
      await Promise.all(Array.from({ length: Math.max(0, count - running().length) }, () => start()));
    },
  };
};

/**
 * Stops a process again and again, each time somewhere else, until `met` is true of what stands then, and left stopped there.
 * Only what it had sent before may still arrive.
 */
export const stopWhere = async (what: string, victim: ServiceProcess, met: () => Promise<boolean>, deadlineMs: number): Promise<void> =>
  void (await waitFor(
    what,
    async () => {
      victim.pause();
      if (await met()) return true;
      victim.resume();
      return false;
    },
    deadlineMs,
  ));
