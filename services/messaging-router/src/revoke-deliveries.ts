import { readSubject, deleteMessage } from '@sharedos/bus';
import { type Address, InboxMessage, type MessageEnvelope, decodeOwnBody, principalSubject } from '@sharedos/contracts';
import { keyOf, stepDelivery } from './delivery-record.ts';
import type { Ports } from './ports.ts';

const READ_MS = 10_000;
const AT_ONCE = 16;

/**
 * Ends every delivery to a recipient that has not arrived, because its route was closed: parked ones and those in its inbox. One that
 * is on its way to a turn ends when the turn is about to take it. What is not reached here is ended by whoever comes upon it.
 */
export const revokeDeliveries = async (ports: Ports, namespaceId: string, recipient: Address): Promise<void> => {
  const inbox = await readSubject(ports.bus, 'MESSAGES', principalSubject('inbox', namespaceId, recipient), { timeoutMs: READ_MS });
  const parked = await ports.parked.waitingFor(namespaceId, recipient);
  const ends: (() => Promise<void>)[] = [
    ...(parked.ok ? parked.value : []).map((copy) => async () => {
      if (await revoke(ports, namespaceId, copy.parked.envelope)) await ports.parked.takeOut(copy);
    }),
    ...(inbox.ok ? inbox.value : []).map(({ data, sequence }) => async () => {
      const message = decodeOwnBody(InboxMessage, data);
      if (!message.ok || !(await revoke(ports, namespaceId, message.value))) return;
      await deleteMessage(ports.bus, 'MESSAGES', sequence, { timeoutMs: READ_MS });
    }),
  ];
  const next = async (): Promise<void> => {
    for (let end = ends.shift(); end !== undefined; end = ends.shift()) await end();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
};

/** @returns Whether nothing more will come of the message, and its copy may go. */
export const revoke = async (
  ports: Pick<Ports, 'ledger' | 'clock' | 'ids'>,
  namespaceId: string,
  envelope: Pick<MessageEnvelope, 'sender' | 'id'>,
): Promise<boolean> => {
  const step = await stepDelivery(ports, keyOf(namespaceId, envelope), { type: 'RevokeDelivery', at: ports.clock(), code: 'route_closed' });
  // Without a record there is nothing to say; the copy goes with its route all the same.
  return step.ok || step.error.kind === 'absent';
};
