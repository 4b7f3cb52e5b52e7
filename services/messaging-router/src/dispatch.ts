import { type DeliveryEvent, type DeliveryResult, type Instant, type ParkedMessage, instantOf } from '@sharedos/contracts';
import { type DeliveryState, delivery, route, routeAt } from '@sharedos/kernel';
import { SPAN, withSpan } from '@sharedos/telemetry';
import type { Place } from './find-place.ts';
import { handOver } from './hand-over.ts';
import { type Outgoing, accepted, denied, failed } from './outgoing.ts';
import type { Ports } from './ports.ts';

/** What came of dispatching: the receipt, and what it means for the delivery where the receipt alone does not say it. */
export interface Dispatched {
  readonly result: DeliveryResult;
  readonly event?: DeliveryEvent | undefined;
}

/**
 * Dispatches or parks a message that was just decided. `undefined` when its fate is unknown, also after looking for it where it goes,
 * and when its decision grew old meanwhile: whoever sends it again has it decided anew.
 */
export const dispatch = (ports: Ports, send: Outgoing, place: Place, decidedAt: Instant): Promise<Dispatched | undefined> =>
  withSpan(SPAN.messageDeliver, {}, async () => {
    const { envelope } = send;
    if (place.kind === 'unknown') return { result: failed(ports, envelope, 'message_delivery_failed') };
    if (place.kind !== 'reply') {
      const unheard = ports.rules.fault(send, place.rules);
      if (unheard !== undefined) return { result: denied(ports, envelope, unheard) };
    }
    const event = await judged(ports, send, place, decidedAt);
    if (event === undefined) return undefined;
    switch (event.type) {
      case 'MessageDispatched':
        return withEvent(await handOver(ports, send, place, event.lease), event);
      case 'MessageParked':
        return withEvent(await park(ports, send, event.until), event);
      case 'MessageDenied':
        return { result: denied(ports, envelope, event.code) };
      case 'MessageFailed':
        return { result: failed(ports, envelope, event.code) };
      default:
        return { result: failed(ports, envelope, 'message_expired') };
    }
  });

const JUST_ADMITTED: DeliveryState = { status: 'absent' };

const judged = async (
  ports: Ports,
  { context, envelope, expiresAt }: Outgoing,
  place: Exclude<Place, { kind: 'unknown' }>,
  decidedAt: Instant,
): Promise<DeliveryEvent | undefined> => {
  const found = place.kind === 'reply' ? route.initial : place.route;
  const away = routeAt(found, ports.clock()) === 'lapsed';
  const room = away ? await ports.parked.noRoomFor(context.namespaceId, envelope) : undefined;
  if (room?.ok === false) return undefined;
  const decided = delivery.decide(
    {
      type: 'DispatchMessage',
      at: ports.clock(),
      to: place.kind,
      route: found,
      decision: { at: decidedAt },
      expiresAt: expiresAt === undefined ? undefined : instantOf(expiresAt),
      noRoom: room?.value,
    },
    JUST_ADMITTED,
  );
  return decided.ok ? decided.value[0] : undefined;
};

/** The copy is kept before the record says so: what the record promises is there. */
const park = async (ports: Ports, send: Outgoing, until: string): Promise<DeliveryResult | undefined> => {
  const { context, envelope, operation, callId, expiresAt } = send;
  const parked: ParkedMessage = {
    context: { ...context },
    envelope,
    operation,
    ...(callId === undefined ? {} : { callId }),
    until,
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
  const stored = await ports.parked.park(parked);
  if (stored.ok) return { ...accepted(ports, envelope), metadata: { delivery: 'parked' } };
  if (stored.error.kind === 'unavailable') return undefined;
  return failed(ports, envelope, stored.error.kind === 'full' ? 'parking_full' : 'message_delivery_failed');
};

const withEvent = (result: DeliveryResult | undefined, event: DeliveryEvent): Dispatched | undefined => {
  if (result === undefined) return undefined;
  return result.status === 'accepted' ? { result, event } : { result };
};
