import type { Delivery } from '@sharedos/bus';
import { type MessageTake, type Reply, type TakenMessage, refused } from '@sharedos/contracts';
import { isRevoked } from '@sharedos/kernel';
import { keyOf, stepDelivery } from './delivery-record.ts';
import type { Ports } from './ports.ts';
import { revoke } from './revoke-deliveries.ts';

/**
 * Hands a message to the turn that it starts, if the route it was dispatched under still stands: the route may have been closed while
 * the turn was queued. Asked again by the same turn, which its execution id makes the only one, it is handed over again.
 */
export const takeMessage =
  (ports: Ports) =>
  async ({ sender, receiver, id, lease }: MessageTake, { namespaceId }: Delivery): Promise<Reply<TakenMessage>> => {
    const route = await ports.routes.of(namespaceId, receiver);
    if (!route.ok) return away();
    if (isRevoked(route.value, lease)) await revoke(ports, namespaceId, { sender, id });
    const step = await stepDelivery(ports, keyOf(namespaceId, { sender, id }), { type: 'ConfirmDelivery', at: ports.clock() });
    if (step.ok) return { ok: true, value: { taken: true } };
    if (step.error.kind === 'unavailable') return away();
    if (step.error.kind === 'absent') return { ok: true, value: { taken: false, code: 'message_not_found' } };
    return { ok: true, value: { taken: false, code: isRevoked(route.value, lease) ? 'route_closed' : step.error.code } };
  };

const away = () => refused('ledger_unavailable', 'what became of the message could not be read; ask again', true);
