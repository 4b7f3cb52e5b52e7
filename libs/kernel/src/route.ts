import { type Instant, type RouteState, instantOf, timestampOf } from '@sharedos/contracts';
import { type Decider, accept, refuse, unreachable } from './decider.ts';

export type RouteCommand =
  | { readonly type: 'OpenRoute'; readonly at: Instant; readonly ttlMs: number }
  | { readonly type: 'RenewRoute'; readonly at: Instant; readonly lease: number; readonly ttlMs: number }
  | { readonly type: 'PauseRoute'; readonly at: Instant; readonly lease: number }
  | { readonly type: 'CloseRoute'; readonly at: Instant; readonly lease?: number | undefined }
  | { readonly type: 'ForgetRoute' };

export type RouteEvent =
  | { readonly type: 'RouteOpened'; readonly lease: number; readonly at: Instant; readonly expiresAt: Instant }
  | { readonly type: 'RouteRenewed'; readonly expiresAt: Instant }
  | { readonly type: 'RoutePaused'; readonly at: Instant }
  | { readonly type: 'RouteClosed'; readonly at: Instant }
  | { readonly type: 'RouteForgotten' };

/** `route_lease_ended`: the lease lapsed, was closed, or gave way to a later one; open another. */
export type RouteRefusal = { readonly code: 'route_lease_ended' | 'route_not_open' };

/**
 * One recipient's route, as it leases it itself: no authority, only whether there is a path. Opening always gives a new lease, so that
 * a process that takes over from one that died need not wait for it; the one that was thought dead finds its own ended.
 *
 * @see spec/messaging.md §4, "Route lease"
 */
export const route: Decider<RouteState, RouteCommand, RouteEvent, RouteRefusal> = {
  initial: { status: 'none', lease: 0, revokedThrough: 0 },
  decide: (command, state) => {
    switch (command.type) {
      case 'OpenRoute':
        return accept([{ type: 'RouteOpened', lease: state.lease + 1, at: command.at, expiresAt: command.at + command.ttlMs }]);
      case 'RenewRoute':
        if (!isLive(state, command.at) || state.lease !== command.lease) return refuse({ code: 'route_lease_ended' });
        return accept([{ type: 'RouteRenewed', expiresAt: command.at + command.ttlMs }]);
      case 'PauseRoute':
        if (state.status !== 'open' || state.lease !== command.lease) return refuse({ code: 'route_lease_ended' });
        return isLive(state, command.at) ? accept([{ type: 'RoutePaused', at: command.at }]) : accept([]);
      case 'CloseRoute':
        if (state.status === 'none') return refuse({ code: 'route_not_open' });
        if (command.lease !== undefined && command.lease !== state.lease) return refuse({ code: 'route_lease_ended' });
        // A lapsed route is closed as well: what is parked for it is revoked.
        return state.status === 'closed' ? accept([]) : accept([{ type: 'RouteClosed', at: command.at }]);
      case 'ForgetRoute':
        return state.status === 'none' ? accept([]) : accept([{ type: 'RouteForgotten' }]);
      default:
        return unreachable(command);
    }
  },
  evolve: (state, event) => {
    const { lease, revokedThrough } = state;
    switch (event.type) {
      case 'RouteOpened':
        return {
          status: 'open',
          lease: event.lease,
          revokedThrough,
          openedAt: timestampOf(event.at),
          expiresAt: timestampOf(event.expiresAt),
        };
      case 'RouteRenewed':
        return state.status === 'open' ? { ...state, expiresAt: timestampOf(event.expiresAt) } : state;
      case 'RoutePaused':
        return state.status === 'open' ? { ...state, expiresAt: timestampOf(event.at) } : state;
      case 'RouteClosed':
        return { status: 'closed', lease, revokedThrough: lease, closedAt: timestampOf(event.at) };
      case 'RouteForgotten':
        return { status: 'none', lease, revokedThrough };
      default:
        return unreachable(event);
    }
  },
};

/** What a route is at an instant: nobody has to end a lease for it to lapse. */
export const routeAt = (state: RouteState, now: Instant): 'none' | 'live' | 'lapsed' | 'closed' => {
  if (state.status !== 'open') return state.status;
  return isLive(state, now) ? 'live' : 'lapsed';
};

/** Whether what was dispatched under a lease was revoked with it. Without one, closing the route revokes it as long as it is closed. */
export const isRevoked = (state: RouteState, lease: number | undefined): boolean =>
  lease === undefined ? state.status === 'closed' : lease <= state.revokedThrough;

const isLive = (state: RouteState, now: Instant): boolean =>
  state.status === 'open' && now < (instantOf(state.expiresAt) ?? Number.NEGATIVE_INFINITY);
