import type { Reply, UsageDistrust } from '@sharedos/contracts';
import type { Ports } from '../ports.ts';

/** The ledger contradicted the counters of this epoch: they are closed for every replica and rebuilt from the claims. */
export const distrustUsage =
  ({ usage }: Ports) =>
  async ({ epoch }: UsageDistrust): Promise<Reply<Record<string, never>>> => {
    await usage.distrust(epoch);
    return { ok: true, value: {} };
  };
