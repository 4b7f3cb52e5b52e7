import {
  type AuditEvent,
  type DeliveryEvent,
  type LedgerRecord,
  type MessageEnvelope,
  NameId,
  type Result,
  type Unavailable,
  type UseTaken,
  err,
  ok,
  timestampOf,
  unavailable,
} from '@sharedos/contracts';
import { type DeliveryCommand, type DeliveryRefusal, type DeliveryState, delivery, deliveryOf } from '@sharedos/kernel';
import type { OperationHistory, OperationKey } from '@sharedos/ledger';
import type { Ports } from './ports.ts';

/** One for each record that somebody else writes about the message meanwhile. */
const ATTEMPTS = 8;

/** The record of the send that a message came by. */
export const keyOf = (namespaceId: string, { sender, id }: Pick<MessageEnvelope, 'sender' | 'id'>): OperationKey => ({
  namespaceId,
  kind: 'message',
  requester: sender,
  id,
});

/** What the record says of a message, and where it ends; `undefined` where there is none, or none any more. */
export const readDelivery = async (
  { ledger }: Pick<Ports, 'ledger'>,
  key: OperationKey,
): Promise<Result<{ readonly state: DeliveryState; readonly history: OperationHistory } | undefined, Unavailable>> => {
  if (!NameId.safeParse(key.id).success) return ok(undefined);
  const history = await ledger.read(key);
  if (!history.ok) return history;
  if (history.value === undefined || history.value.records.at(-1)?.type === 'expired') return ok(undefined);
  return ok({ state: deliveryOf(history.value.records), history: history.value });
};

/** What is recorded together with a step of a delivery: what was decided on it, and the use that this took. */
export interface StepRecord {
  readonly audit: readonly AuditEvent[];
  readonly use?: UseTaken | undefined;
  readonly above?: UseTaken[] | undefined;
}

/**
 * Takes one step of a delivery, against what is on record at this moment: of two that take a step at once, one sees the other's.
 *
 * @returns The state after it and whether this step was news; `absent` where there is no record to take it on.
 */
export const stepDelivery = async (
  ports: Pick<Ports, 'ledger' | 'clock' | 'ids'>,
  key: OperationKey,
  command: DeliveryCommand,
  record: StepRecord = { audit: [] },
): Promise<
  Result<
    { readonly state: DeliveryState; readonly news: boolean },
    { readonly kind: 'absent' } | ({ readonly kind: 'refused' } & DeliveryRefusal) | Unavailable
  >
> => {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const read = await readDelivery(ports, key);
    if (!read.ok) return read;
    if (read.value === undefined) return err({ kind: 'absent' });
    const { state, history } = read.value;
    const decided = delivery.decide(command, state);
    if (!decided.ok) return err({ kind: 'refused', ...decided.error });
    const [event] = decided.value;
    if (event === undefined) return ok({ state, news: false });
    const { use, above } = record;
    const written = await ports.ledger.resume(key, history).append({
      type: 'delivery',
      at: timestampOf(ports.clock()),
      event,
      ...(use === undefined ? {} : { use }),
      ...(above === undefined ? {} : { above }),
      audit: [...record.audit, ...sentLater(ports, history.records, event)],
    });
    if (written.ok) return ok({ state: delivery.evolve(state, event), news: true });
    if (written.error.kind !== 'fenced') return unavailable('what became of the message could not be recorded');
  }
  return unavailable('the record of the message changed again and again');
};

/** A message that was accepted and does not arrive has one more record of how it was sent, for whoever reads its trace. */
const sentLater = ({ ids }: Pick<Ports, 'ids'>, records: readonly LedgerRecord[], event: DeliveryEvent): readonly AuditEvent[] => {
  const why = reasonOf(event);
  const sent = records.flatMap((record) => ('audit' in record ? record.audit : [])).findLast(({ type }) => type === 'message.sent');
  if (why === undefined || sent === undefined) return [];
  const { grantId: _, ...frame } = sent;
  return [{ ...frame, id: ids(), at: event.at, ...why }];
};

const reasonOf = (event: DeliveryEvent): Pick<AuditEvent, 'outcome' | 'reason'> | undefined => {
  switch (event.type) {
    case 'MessageDenied':
    case 'MessageRevoked':
      return { outcome: 'denied', reason: event.code };
    case 'MessageFailed':
      return { outcome: 'failed', reason: event.code };
    case 'MessageExpired':
      return { outcome: 'failed', reason: 'message_expired' };
    default:
      return undefined;
  }
};
