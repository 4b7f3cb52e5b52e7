import { setTimeout as delay } from 'node:timers/promises';
import { MessageRoute, MessageRouteReply, type Result, type RouteShown, ok } from '@sharedos/contracts';
import { type ClientError, mayChange } from './client-error.ts';
import { type Session, ask } from './session.ts';

const TTL_MS = 60_000;
/** Renewed so often within a lease, so that one lost answer does not end it. */
const RENEWALS = 3;

export interface HeldRoute {
  readonly lease: number;
  /** Ends the renewing, and lets the route lapse now: what is sent from here on waits. False when that was not answered. */
  pause(): Promise<boolean>;
}

export interface HoldOptions {
  /** How long each lease lasts, in milliseconds; 60 000 when absent. Somebody who dies is taken for present that much longer. */
  readonly ttlMs?: number;
  /** Called once when the lease is another's, or could not be renewed before it ended. Then nothing is renewed any more. */
  readonly onLost?: (error: ClientError) => void;
}

/**
 * The caller's own route: whether there is a live path to it. While it has one open, messages go out to it at once; once the lease has
 * lapsed they are parked, and wait for the next; once it is closed they are denied. A lease is a number, greater each time.
 */
export interface Route {
  show(): Promise<Result<RouteShown, ClientError>>;
  /** Opens a new lease, and ends the one before. @param ttlMs 1 000 to 3 600 000. */
  open(ttlMs?: number): Promise<Result<RouteShown, ClientError>>;
  /** `route_lease_ended` when it lapsed or gave way to another. */
  renew(lease: number, ttlMs?: number): Promise<Result<RouteShown, ClientError>>;
  /** Lets the route lapse now. */
  pause(lease: number): Promise<Result<RouteShown, ClientError>>;
  /** Closes the route, and revokes all that has not arrived. @param lease Only if it is still the present one. */
  close(lease?: number): Promise<Result<RouteShown, ClientError>>;
  /** Back to an inbox without a route. */
  forget(): Promise<Result<RouteShown, ClientError>>;
  /** Opens a route and renews it until it is paused, or the lease is lost. */
  hold(options?: HoldOptions): Promise<Result<HeldRoute, ClientError>>;
}

export const routeOf = (session: Session): Route => {
  const act = (body: MessageRoute) => ask(session, 'message.route', MessageRoute, body, MessageRouteReply);
  const route: Route = {
    show: () => act({ act: 'show' }),
    open: (ttlMs = TTL_MS) => act({ act: 'open', ttlMs }),
    renew: (lease, ttlMs = TTL_MS) => act({ act: 'renew', lease, ttlMs }),
    pause: (lease) => act({ act: 'pause', lease }),
    close: (lease) => act({ act: 'close', ...(lease === undefined ? {} : { lease }) }),
    forget: () => act({ act: 'forget' }),
    hold: async ({ ttlMs = TTL_MS, onLost } = {}) => {
      const opened = await route.open(ttlMs);
      if (!opened.ok) return opened;
      const { lease } = opened.value.route;
      const ended = new AbortController();
      void renewing(route, lease, ttlMs, ended.signal, onLost);
      return ok({
        lease,
        pause: async () => {
          ended.abort();
          return (await route.pause(lease)).ok;
        },
      });
    },
  };
  return route;
};

const renewing = async (route: Route, lease: number, ttlMs: number, ended: AbortSignal, onLost: HoldOptions['onLost']): Promise<void> => {
  let renewedAt = performance.now();
  while (await delay(ttlMs / RENEWALS, true, { signal: ended, ref: false }).catch(() => false)) {
    const asked = performance.now();
    const renewed = await route.renew(lease, ttlMs);
    if (ended.aborted) return;
    if (renewed.ok) renewedAt = asked;
    // Silence is not yet the end of the lease; it is when no renewal came through for as long as it lasts.
    else if (!mayChange(renewed.error) || performance.now() - renewedAt >= ttlMs) return onLost?.(renewed.error);
  }
};
