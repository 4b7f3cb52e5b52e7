import type { Delivery } from '@sharedos/bus';
import { type DeliveryStatus, type MessageStatus, type Reply, refused } from '@sharedos/contracts';
import { type DeliveryState, invariant } from '@sharedos/kernel';
import { keyOf, readDelivery } from './delivery-record.ts';
import type { Ports } from './ports.ts';

/** What became of a message that the caller sent. Nobody learns of another's: the record is found under the sender alone. */
export const messageStatus =
  (ports: Pick<Ports, 'ledger'>) =>
  async ({ id }: MessageStatus, { namespaceId, principal }: Delivery): Promise<Reply<DeliveryStatus>> => {
    invariant(principal !== undefined, 'a sender asks for its own messages');
    const read = await readDelivery(ports, keyOf(namespaceId, { sender: principal, id }));
    if (!read.ok) return refused('ledger_unavailable', 'the record did not answer in time; ask again', true);
    if (read.value === undefined) return refused('message_not_found', 'no message of this id was sent by you');
    const { state, history } = read.value;
    return { ok: true, value: { messageId: id, ...statusOf(state, history.records[0].at) } };
  };

const statusOf = (state: DeliveryState, claimedAt: string): Omit<DeliveryStatus, 'messageId'> => {
  switch (state.status) {
    case 'absent':
      return { state: 'pending', at: claimedAt };
    case 'accepted':
    case 'dispatched':
      return { state: state.status, at: state.at };
    case 'parked':
      return { state: 'parked', at: state.at, until: state.until };
    default:
      return { state: state.status, at: state.at, ...(state.code === undefined ? {} : { code: state.code }) };
  }
};
