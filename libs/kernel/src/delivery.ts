import {
  type DeliveryEvent,
  type DeliveryPlace,
  type Instant,
  type LedgerRecord,
  type RouteState,
  instantOf,
  timestampOf,
} from '@sharedos/contracts';
import { type Decider, accept, refuse, unreachable } from './decider.ts';
import { routeAt } from './route.ts';

/** How long a message waits for a route, where its sender says no less: shorter than the ledger remembers the send. */
export const PARKED_MS_MAX = 7 * 86_400_000;
/** A message leaves on a decision of this moment. One that is older is made again: what allowed it may be gone. */
export const DECISION_FRESH_MS = 30_000;

/** What was decided on a send, and when. */
export interface SendDecision {
  readonly at: Instant;
  /** Why it was refused; absent where it was allowed. */
  readonly code?: string | undefined;
}

export type DeliveryCommand =
  | { readonly type: 'AcceptMessage'; readonly at: Instant }
  | {
      readonly type: 'DispatchMessage';
      readonly at: Instant;
      readonly to: DeliveryPlace;
      readonly route: RouteState;
      /** Absent while nobody could say: then nothing leaves. */
      readonly decision?: SendDecision | undefined;
      /** From when on nobody is shown it, as its sender says. */
      readonly expiresAt?: Instant | undefined;
      /** Why no more can be parked for this recipient. */
      readonly noRoom?: 'parking_full' | 'sender_parking_full' | undefined;
    }
  | { readonly type: 'ConfirmDelivery'; readonly at: Instant }
  | { readonly type: 'RevokeDelivery'; readonly at: Instant; readonly code: string }
  | { readonly type: 'ExpireDelivery'; readonly at: Instant }
  | { readonly type: 'FailDelivery'; readonly at: Instant; readonly code: string };

export type FinalDelivery = 'delivered' | 'denied' | 'failed' | 'revoked' | 'expired';

export type DeliveryState =
  /** Nobody has admitted it here. What a turn sends is admitted on the turn's own record, and is absent until it was dispatched. */
  | { readonly status: 'absent' }
  | { readonly status: 'accepted'; readonly at: string }
  | { readonly status: 'parked'; readonly at: string; readonly until: string }
  | { readonly status: 'dispatched'; readonly at: string; readonly to: DeliveryPlace; readonly lease?: number | undefined }
  | { readonly status: FinalDelivery; readonly at: string; readonly code?: string | undefined };

/**
 * - `decision_missing`, `decision_too_old`: nobody has decided it for this moment; decide it, and dispatch it then.
 * - `not_dispatched`: it is parked, so nobody can have received it.
 * - `delivery_over`: it has arrived, or never will.
 */
export type DeliveryRefusal = { readonly code: 'decision_missing' | 'decision_too_old' | 'not_dispatched' | 'delivery_over' };

/**
 * One message on its way. The route is judged at the moment of dispatch, and so is the authority of its sender: neither what was
 * found out when it was accepted nor what stood while it was parked lets it go. What is over stays over, and every step before that
 * may be repeated by whoever finds it undone.
 *
 * @see spec/messaging.md §4
 */
export const delivery: Decider<DeliveryState, DeliveryCommand, DeliveryEvent, DeliveryRefusal> = {
  initial: { status: 'absent' },
  decide: (command, state) => {
    const at = timestampOf(command.at);
    switch (command.type) {
      case 'AcceptMessage':
        return state.status === 'absent' ? accept([{ type: 'MessageAccepted', at }]) : accept([]);
      case 'DispatchMessage':
        if (isOver(state)) return refuse({ code: 'delivery_over' });
        // Whoever dispatched it may have died before it was there: it is brought there again, and this is no news.
        return state.status === 'dispatched' ? accept([]) : dispatching(command, state);
      case 'ConfirmDelivery':
        if (state.status === 'parked') return refuse({ code: 'not_dispatched' });
        if (state.status === 'delivered') return accept([]);
        return isOver(state) ? refuse({ code: 'delivery_over' }) : accept([{ type: 'MessageDelivered', at }]);
      case 'RevokeDelivery':
        return isOver(state) ? accept([]) : accept([{ type: 'MessageRevoked', at, code: command.code }]);
      case 'ExpireDelivery':
        return isOver(state) ? accept([]) : accept([{ type: 'MessageExpired', at }]);
      case 'FailDelivery':
        return isOver(state) ? accept([]) : accept([{ type: 'MessageFailed', at, code: command.code }]);
      default:
        return unreachable(command);
    }
  },
  // A reader of the record refuses nothing that stands there. What is over stays as it ended, whatever was written after it.
  evolve: (state, event) => {
    if (isOver(state)) return state;
    const { at } = event;
    switch (event.type) {
      case 'MessageAccepted':
        return state.status === 'absent' ? { status: 'accepted', at } : state;
      case 'MessageParked':
        return { status: 'parked', at, until: event.until };
      case 'MessageDispatched':
        return { status: 'dispatched', at, to: event.to, ...(event.lease === undefined ? {} : { lease: event.lease }) };
      case 'MessageDelivered':
        return { status: 'delivered', at };
      case 'MessageDenied':
        return { status: 'denied', at, code: event.code };
      case 'MessageFailed':
        return { status: 'failed', at, code: event.code };
      case 'MessageRevoked':
        return { status: 'revoked', at, code: event.code };
      case 'MessageExpired':
        return { status: 'expired', at, code: 'message_expired' };
      default:
        return unreachable(event);
    }
  },
};

type Dispatch = Extract<DeliveryCommand, { type: 'DispatchMessage' }>;

const dispatching = (command: Dispatch, state: DeliveryState) => {
  const at = timestampOf(command.at);
  const parked = state.status === 'parked' ? state : undefined;
  const endsAt = Math.min(
    command.expiresAt ?? Number.POSITIVE_INFINITY,
    parked === undefined ? Number.POSITIVE_INFINITY : (instantOf(parked.until) ?? 0),
  );
  if (command.at >= endsAt) return accept<DeliveryEvent>([{ type: 'MessageExpired', at }]);
  // The turn that waits for a reply is itself the live path.
  const path = command.to === 'reply' ? 'none' : routeAt(command.route, command.at);
  if (path === 'closed')
    return accept<DeliveryEvent>([{ type: parked === undefined ? 'MessageDenied' : 'MessageRevoked', at, code: 'route_closed' }]);
  if (path === 'lapsed' && parked !== undefined) return accept<DeliveryEvent>([]);
  const { decision } = command;
  if (decision === undefined) return refuse<DeliveryRefusal>({ code: 'decision_missing' });
  if (command.at - decision.at > DECISION_FRESH_MS) return refuse<DeliveryRefusal>({ code: 'decision_too_old' });
  if (decision.code !== undefined) return accept<DeliveryEvent>([{ type: 'MessageDenied', at, code: decision.code }]);
  if (path === 'lapsed') {
    if (command.noRoom !== undefined) return accept<DeliveryEvent>([{ type: 'MessageFailed', at, code: command.noRoom }]);
    const until = Math.min(command.at + PARKED_MS_MAX, endsAt);
    return accept<DeliveryEvent>([{ type: 'MessageParked', at, until: timestampOf(until) }]);
  }
  const lease = path === 'live' ? { lease: command.route.lease } : {};
  return accept<DeliveryEvent>([{ type: 'MessageDispatched', at, to: command.to, ...lease }]);
};

/** Whether nothing more will happen to a message. */
export const isOver = (state: DeliveryState): state is Extract<DeliveryState, { status: FinalDelivery }> =>
  !['absent', 'accepted', 'parked', 'dispatched'].includes(state.status);

/** What the record of a send says of its message. */
export const deliveryOf = (records: readonly LedgerRecord[]): DeliveryState =>
  records.flatMap(eventsIn).reduce((state, event) => delivery.evolve(state, event), delivery.initial);

const eventsIn = (record: LedgerRecord): readonly DeliveryEvent[] => {
  const { at } = record;
  if (record.type === 'admitted') return [{ type: 'MessageAccepted', at }];
  if (record.type === 'delivery') return [record.event];
  if (record.type !== 'ended') return [];
  if (record.delivery !== undefined) return [record.delivery];
  const { result } = record;
  if (!('messageId' in result)) return [];
  if (result.status === 'denied') return [{ type: 'MessageDenied', at, code: result.error.code }];
  if (result.status === 'failed') return [{ type: 'MessageFailed', at, code: result.error.code }];
  return [{ type: 'MessageDispatched', at, to: 'inbox' }];
};
