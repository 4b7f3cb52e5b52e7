import type { ForwardDelivery } from '@sharedos/bus';
import { SCHEMA_HEADER } from '@sharedos/contracts';
import { decodeLedgerRecord } from '@sharedos/ledger';
import { ATTRIBUTE, SPAN, measurements, withSpan } from '@sharedos/telemetry';
import type { Ports } from './ports.ts';

const RETRY_MS = 1_000;

/**
 * Publishes the audit records that a ledger record carries. The ledger is their outbox: it is read until each of them is stored,
 * and a record published twice has the same id twice.
 */
export const forwardOutcomes =
  ({ audit, onParked }: Pick<Ports, 'audit' | 'onParked'>) =>
  async (delivery: ForwardDelivery): Promise<void> => {
    const { parsed } = delivery;
    if (parsed?.verb !== 'ledger') return delivery.term('not a subject of the ledger');
    // A claim of a use says nothing that the decision it belongs to does not say.
    if (parsed.rest[0] === 'use') return delivery.done();
    const record = decodeLedgerRecord({ schema: delivery.header(SCHEMA_HEADER) ?? '', data: delivery.data });
    if (!record.ok) {
      onParked(`ledger record ${delivery.sequence}: ${record.error}`);
      return delivery.term('not a record of the ledger');
    }
    measurements.count('ledgerRecords', record.value.type);
    const events = 'audit' in record.value ? record.value.audit : [];
    if (events.length === 0) return delivery.done();
    const attributes = { [ATTRIBUTE.namespaceId]: parsed.namespaceId };
    // Sent in order and awaited together: the broker keeps the order of one connection.
    const stored = await withSpan(SPAN.auditForward, { attributes }, () => Promise.all(events.map(audit)));
    return stored.every(({ ok }) => ok) ? delivery.done() : delivery.nak(RETRY_MS);
  };
