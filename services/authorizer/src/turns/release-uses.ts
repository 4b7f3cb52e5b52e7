import type { Delivery } from '@sharedos/bus';
import { type HeldUse, type Reply, type UsageHeld, type UsageRelease, refused } from '@sharedos/contracts';
import type { Ports } from '../ports.ts';

const closed = () => refused('usage_store_unavailable', 'the counters are closed; ask again', true);

/** Tells which uses a turn was handed out: whoever ended it compares them with what its records admitted. */
export const heldUses =
  ({ usage }: Ports) =>
  async ({ turn }: UsageHeld, { namespaceId }: Delivery): Promise<Reply<{ epoch: string; uses: HeldUse[] }>> => {
    const held = await usage.held(namespaceId, turn);
    return held.ok ? { ok: true, value: { epoch: held.value.epoch, uses: [...held.value.uses] } } : closed();
  };

/** Frees uses that the ledger says nothing will ever run on. */
export const releaseUses =
  ({ usage }: Ports) =>
  async ({ epoch, turn, uses }: UsageRelease, { namespaceId }: Delivery): Promise<Reply<Record<string, never>>> => {
    const released = await usage.release(namespaceId, turn, epoch, uses);
    return released.ok ? { ok: true, value: {} } : closed();
  };
