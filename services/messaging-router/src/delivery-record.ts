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

/**
 * What the record says of a message, and where it ends; `undefined` where there is none, or none any more. The last record says it
 * alone, whichever it is: a step of the delivery, or the end of the send with the step that stood then.
 */
export const readDelivery = async (
  { ledger }: Pick<Ports, 'ledger'>,
  key: OperationKey,
): Promise<Result<{ readonly state: DeliveryState; readonly history: OperationHistory } | undefined, Unavailable>> => {
  if (!NameId.safeParse(key.id).success) return ok(undefined);
  const last = await ledger.readLast(key);
  if (!last.ok) return last;
  if (last.value === undefined || last.value.records[0].type === 'expired') return ok(undefined);
  if (SAYS_IT_ALONE.has(last.value.records[0].type)) return ok({ state: deliveryOf(last.value.records), history: last.value });
  const all = await ledger.read(key);
  if (!all.ok || all.value === undefined) return all.ok ? ok(undefined) : all;
  return ok({ state: deliveryOf(all.value.records), history: all.value });
};

const SAYS_IT_ALONE: ReadonlySet<LedgerRecord['type']> = new Set(['claimed', 'admitted', 'ended', 'delivery']);

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
    const later = await sentLater(ports, key, event);
    if (!later.ok) return later;
    const { use, above } = record;
    const written = await ports.ledger.resume(key, history).append({
      type: 'delivery',
      at: timestampOf(ports.clock()),
      event,
      ...(use === undefined ? {} : { use }),
      ...(above === undefined ? {} : { above }),
      audit: [...record.audit, ...later.value],
    });
    if (written.ok) return ok({ state: delivery.evolve(state, event), news: true });
    if (written.error.kind !== 'fenced') return unavailable('what became of the message could not be recorded');
  }
  return unavailable('the record of the message changed again and again');
};

/** A message that was accepted and does not arrive has one more record of how it was sent, for whoever reads its trace. */
const sentLater = async (
  { ids, ledger }: Pick<Ports, 'ids' | 'ledger'>,
  key: OperationKey,
  event: DeliveryEvent,
): Promise<Result<readonly AuditEvent[], Unavailable>> => {
  const why = reasonOf(event);
  if (why === undefined) return ok([]);
  const read = await ledger.read(key);
  if (!read.ok) return read;
  const records = read.value?.records.flatMap((record) => ('audit' in record ? record.audit : []));
  const sent = records?.findLast(({ type }) => type === 'message.sent');
  if (sent === undefined) return ok([]);
  const { grantId: _, ...frame } = sent;
  return ok([{ ...frame, id: ids(), at: event.at, ...why }]);
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
