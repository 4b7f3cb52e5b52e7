import type { Delivery } from '@sharedos/bus';
import { type OperationAt, type OperationShow, type Reply, refused } from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';
import { mayAdminister } from './administer-turns.ts';
import { operationAt } from './operation-views.ts';
import type { Ports } from './ports.ts';

/** One operation of anybody's, for whoever may read the ledger of the namespace. */
export const showOperation =
  (ports: Ports) =>
  async ({ kind, requester, operationId }: OperationShow, delivery: Delivery): Promise<Reply<OperationAt>> => {
    const { namespaceId, principal } = delivery;
    invariant(principal !== undefined, 'the ledger is read by principals');
    const right = await mayAdminister(ports, { ...delivery, principal }, { area: 'ledger', action: 'read' }, operationId);
    if (!right.ok) return right;
    const read = await ports.ledger.read({ namespaceId, kind, requester, id: operationId });
    if (!read.ok) return ledgerUnavailable();
    return read.value === undefined ? operationNotFound() : { ok: true, value: operationAt(kind, read.value) };
  };

export const ledgerUnavailable = () => refused('ledger_unavailable', 'the ledger did not answer in time; try again', true);
export const operationNotFound = () => refused('operation_not_found', 'the ledger knows no such operation of this principal');
