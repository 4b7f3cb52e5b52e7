import { type DeliveryEvent, type LedgerRecord, type RouteState, timestampOf } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { DECISION_FRESH_MS, type DeliveryCommand, PARKED_MS_MAX, delivery, deliveryOf } from './delivery.ts';
import { NOW } from './testing/base-world.ts';
import { given } from './testing/given.ts';

const HOURS = 3_600_000;
const AT = timestampOf(NOW);
const counted = { lease: 4, revokedThrough: 2 };
const none: RouteState = { status: 'none', lease: 0, revokedThrough: 0 };
const openUntil = (until: number): RouteState => ({ status: 'open', ...counted, openedAt: AT, expiresAt: timestampOf(until) });
const live = openUntil(NOW + 1);
const lapsed = openUntil(NOW);
const closed: RouteState = { status: 'closed', lease: 4, revokedThrough: 4, closedAt: AT };

const accepted: DeliveryEvent = { type: 'MessageAccepted', at: AT };
const parked: DeliveryEvent = { type: 'MessageParked', at: AT, until: timestampOf(NOW + PARKED_MS_MAX) };
const dispatched: DeliveryEvent = { type: 'MessageDispatched', at: AT, to: 'inbox', lease: 4 };
const delivered: DeliveryEvent = { type: 'MessageDelivered', at: AT };
const revoked: DeliveryEvent = { type: 'MessageRevoked', at: AT, code: 'route_closed' };
const expired: DeliveryEvent = { type: 'MessageExpired', at: AT };
const denied: DeliveryEvent = { type: 'MessageDenied', at: AT, code: 'sender_blocked' };
const failed: DeliveryEvent = { type: 'MessageFailed', at: AT, code: 'inbox_full' };

type Dispatch = Extract<DeliveryCommand, { type: 'DispatchMessage' }>;
const dispatch = (route: RouteState, more: Partial<Dispatch> = {}): Dispatch => {
  const at = more.at ?? NOW;
  return { type: 'DispatchMessage', at, to: 'inbox', route, decision: { at }, ...more };
};
const waiting = [accepted, parked];

describe('dispatching an accepted message', () => {
  it('goes to an inbox whose owner leases no route', () =>
    given(delivery, [accepted]).when(dispatch(none)).thenEvents({ type: 'MessageDispatched', at: AT, to: 'inbox' }));
  it('goes out under the lease of a live route', () => given(delivery, [accepted]).when(dispatch(live)).thenEvents(dispatched));
  it('is parked while the route has lapsed', () => given(delivery, [accepted]).when(dispatch(lapsed)).thenEvents(parked));
  it('is parked no longer than its sender says', () =>
    given(delivery, [accepted])
      .when(dispatch(lapsed, { expiresAt: NOW + HOURS }))
      .thenEvents({ ...parked, until: timestampOf(NOW + HOURS) }));
  it('is denied by the route’s own code once the route is closed', () =>
    given(delivery, [accepted]).when(dispatch(closed)).thenEvents({ type: 'MessageDenied', at: AT, code: 'route_closed' }));
  it.each(['parking_full', 'sender_parking_full'] as const)('has failed by %s where no more can be parked', (noRoom) => {
    given(delivery, [accepted]).when(dispatch(lapsed, { noRoom })).thenEvents({ type: 'MessageFailed', at: AT, code: noRoom });
    given(delivery, [accepted]).when(dispatch(live, { noRoom })).thenEvents(dispatched);
  });
  it('needs no route to the turn that waits for it', () =>
    given(delivery, [accepted])
      .when(dispatch(closed, { to: 'reply' }))
      .thenEvents({ type: 'MessageDispatched', at: AT, to: 'reply' }));
  it('is not dispatched on a decision that is older than it may be', () => {
    given(delivery, [accepted])
      .when(dispatch(live, { decision: { at: NOW - DECISION_FRESH_MS } }))
      .thenEvents(dispatched);
    given(delivery, [accepted])
      .when(dispatch(live, { decision: { at: NOW - DECISION_FRESH_MS - 1 } }))
      .thenRefused({ code: 'decision_too_old' });
  });
});

describe('dispatching a parked message', () => {
  it('waits on while the route has lapsed, whatever was decided', () =>
    given(delivery, waiting)
      .when(dispatch(lapsed, { decision: { at: NOW, code: 'no_matching_grant' } }))
      .thenNothing());
  it('goes out once a route is open, on a decision of that moment', () =>
    given(delivery, waiting).when(dispatch(live)).thenEvents(dispatched));
  it('does not go out on the decision it was accepted by', () => {
    const later = NOW + 5 * HOURS;
    given(delivery, waiting)
      .when(dispatch(openUntil(later + 1), { at: later, decision: { at: NOW } }))
      .thenRefused({ code: 'decision_too_old' });
  });
  it('does not go out while nobody can decide it', () =>
    given(delivery, waiting)
      .when(dispatch(live, { decision: undefined }))
      .thenRefused({ code: 'decision_missing' }));
  it('goes to the inbox as it is when its owner gave the route up', () =>
    given(delivery, waiting).when(dispatch(none)).thenEvents({ type: 'MessageDispatched', at: AT, to: 'inbox' }));
  it('has expired at the end of its time, route or not', () => {
    const end = NOW + PARKED_MS_MAX;
    const over = { type: 'MessageExpired', at: timestampOf(end) } as const;
    given(delivery, waiting)
      .when(dispatch(openUntil(end + 1), { at: end }))
      .thenEvents(over);
    given(delivery, waiting)
      .when(dispatch(closed, { at: end }))
      .thenEvents(over);
    given(delivery, waiting)
      .when(dispatch(lapsed, { at: end - 1 }))
      .thenNothing();
  });
});

describe('a message parked for hours, whose sender lost its grant meanwhile', () => {
  const later = NOW + 5 * HOURS;
  const at = timestampOf(later);
  const decision = { at: later, code: 'no_matching_grant' };
  it('is denied by that when a route is open', () =>
    given(delivery, waiting)
      .when(dispatch(openUntil(later + 1), { at: later, decision }))
      .thenEvents({ type: 'MessageDenied', at, code: 'no_matching_grant' }));
  it('is revoked by the route, and never by an authorization code, when the route is closed', () =>
    given(delivery, waiting)
      .when(dispatch(closed, { at: later, decision }))
      .thenEvents({ type: 'MessageRevoked', at, code: 'route_closed' }));
  it('stays parked while the route has lapsed', () =>
    given(delivery, waiting)
      .when(dispatch(lapsed, { at: later, decision }))
      .thenNothing());
});

describe('a dispatched message', () => {
  it('is delivered when its recipient says so, once', () => {
    given(delivery, [accepted, dispatched]).when({ type: 'ConfirmDelivery', at: NOW }).thenEvents(delivered);
    given(delivery, [accepted, dispatched, delivered]).when({ type: 'ConfirmDelivery', at: NOW }).thenNothing();
  });
  it('may be brought there again by whoever finds that undone: this is no news', () =>
    given(delivery, [...waiting, dispatched])
      .when(dispatch(live))
      .thenNothing());
  it('is revoked with its route as long as it has not arrived', () => {
    const revoke = { type: 'RevokeDelivery', at: NOW, code: 'route_closed' } as const;
    given(delivery, [accepted, dispatched]).when(revoke).thenEvents(revoked);
    given(delivery, waiting).when(revoke).thenEvents(revoked);
    given(delivery, [accepted, dispatched, delivered]).when(revoke).thenNothing();
  });
  it('can be confirmed before its dispatch is on record, for its recipient is quick', () =>
    given(delivery, [accepted]).when({ type: 'ConfirmDelivery', at: NOW }).thenEvents(delivered));
  it('cannot be confirmed while it is parked', () =>
    given(delivery, waiting).when({ type: 'ConfirmDelivery', at: NOW }).thenRefused({ code: 'not_dispatched' }));
});

describe('what is over', () => {
  const ends = [delivered, denied, failed, revoked, expired];
  it.each(ends)('stays over: $type', (end) => {
    const past = [accepted, end];
    given(delivery, past).when(dispatch(live)).thenRefused({ code: 'delivery_over' });
    given(delivery, past).when({ type: 'RevokeDelivery', at: NOW, code: 'route_closed' }).thenNothing();
    given(delivery, past).when({ type: 'ExpireDelivery', at: NOW }).thenNothing();
    given(delivery, past).when({ type: 'FailDelivery', at: NOW, code: 'inbox_full' }).thenNothing();
    given(delivery, past).when({ type: 'AcceptMessage', at: NOW }).thenNothing();
  });
  it.each(ends.filter((end) => end !== delivered))('is never delivered: $type', (end) =>
    given(delivery, [accepted, end]).when({ type: 'ConfirmDelivery', at: NOW }).thenRefused({ code: 'delivery_over' }),
  );
  it.each(ends)('stays as it ended, whatever is recorded after it: $type', (end) => {
    const state = [accepted, end].reduce(delivery.evolve, delivery.initial);
    for (const late of [accepted, parked, dispatched, ...ends]) expect(delivery.evolve(state, late)).toBe(state);
  });
});

describe('the record of a send', () => {
  const receipt = { messageId: 'm-1', timestamp: AT };
  const admitted: LedgerRecord = { type: 'admitted', at: AT, callId: 'm-1', audit: [] };
  const ended = (result: Extract<LedgerRecord, { type: 'ended' }>['result'], event?: DeliveryEvent): LedgerRecord => ({
    type: 'ended',
    at: AT,
    by: 'owner',
    result,
    ...(event === undefined ? {} : { delivery: event }),
    audit: [],
  });
  const error = { code: 'inbox_full', message: 'full', retryable: false };
  const after: LedgerRecord = { type: 'delivery', at: AT, event: dispatched, audit: [] };
  it.each<[string, readonly LedgerRecord[], string]>([
    ['nothing yet', [], 'absent'],
    ['that it was admitted', [admitted], 'accepted'],
    ['that it was parked', [admitted, ended({ status: 'accepted', ...receipt }, parked)], 'parked'],
    ['what happened after its end', [admitted, ended({ status: 'accepted', ...receipt }, parked), after], 'dispatched'],
    ['that it was accepted, before deliveries were recorded', [admitted, ended({ status: 'accepted', ...receipt })], 'dispatched'],
    ['that it was denied', [ended({ status: 'denied', ...receipt, error })], 'denied'],
    ['that it failed', [admitted, ended({ status: 'failed', ...receipt, error })], 'failed'],
  ])('says %s', (_, records, status) => expect(deliveryOf(records).status).toBe(status));
});
