import type { RouteState } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { type RouteEvent, isRevoked, route, routeAt } from './route.ts';
import { NOW } from './testing/base-world.ts';
import { given } from './testing/given.ts';

const TTL_MS = 60_000;
const opened = (lease = 1, at = NOW): RouteEvent => ({ type: 'RouteOpened', lease, at, expiresAt: at + TTL_MS });
const closed: RouteEvent = { type: 'RouteClosed', at: NOW };
const open = (at = NOW) => ({ type: 'OpenRoute', at, ttlMs: TTL_MS }) as const;
const renew = (lease = 1, at = NOW + 1) => ({ type: 'RenewRoute', lease, at, ttlMs: TTL_MS }) as const;
const pause = (lease = 1, at = NOW + 1) => ({ type: 'PauseRoute', lease, at }) as const;
const close = (lease?: number) => ({ type: 'CloseRoute', at: NOW, lease }) as const;
const after = (...events: readonly RouteEvent[]): RouteState => events.reduce<RouteState>(route.evolve, route.initial);

describe('opening a route', () => {
  it('leases it for a time', () => given(route, []).when(open()).thenEvents(opened()));
  it('while it is open ends the lease before, for whoever takes over from one that died', () => {
    given(route, [opened()]).when(open()).thenEvents(opened(2));
    given(route, [opened(), opened(2)])
      .when(renew(1))
      .thenRefused({ code: 'route_lease_ended' });
  });
  it('is possible again after it was closed, under a lease never given before', () =>
    given(route, [opened(), closed]).when(open()).thenEvents(opened(2)));
  it('counts on from the last lease also after the route was forgotten', () =>
    given(route, [opened(), closed, { type: 'RouteForgotten' }])
      .when(open())
      .thenEvents(opened(2)));
});

describe('renewing a route', () => {
  it('moves its end', () =>
    given(route, [opened()])
      .when(renew())
      .thenEvents({ type: 'RouteRenewed', expiresAt: NOW + 1 + TTL_MS }));
  it('is refused once the lease has lapsed, to the millisecond', () => {
    given(route, [opened()])
      .when(renew(1, NOW + TTL_MS - 1))
      .thenEvents({ type: 'RouteRenewed', expiresAt: NOW + 2 * TTL_MS - 1 });
    given(route, [opened()])
      .when(renew(1, NOW + TTL_MS))
      .thenRefused({ code: 'route_lease_ended' });
  });
  it.each([
    ['of another lease', [opened()], 2],
    ['of a closed route', [opened(), closed], 1],
    ['of no route', [], 1],
  ] as const)('is refused %s', (_, events, lease) => given(route, events).when(renew(lease)).thenRefused({ code: 'route_lease_ended' }));
});

describe('pausing a route', () => {
  it('lets it lapse now', () => {
    given(route, [opened()])
      .when(pause())
      .thenEvents({ type: 'RoutePaused', at: NOW + 1 });
    expect(routeAt(after(opened(), { type: 'RoutePaused', at: NOW + 1 }), NOW + 1)).toBe('lapsed');
  });
  it('changes nothing of one that has lapsed', () =>
    given(route, [opened()])
      .when(pause(1, NOW + TTL_MS))
      .thenNothing());
  it('is refused of a lease that gave way to another', () =>
    given(route, [opened(), opened(2)])
      .when(pause(1))
      .thenRefused({ code: 'route_lease_ended' }));
});

describe('closing a route', () => {
  it('is recorded, also of one that has lapsed', () =>
    given(route, [opened(1, NOW - 2 * TTL_MS)])
      .when(close())
      .thenEvents(closed));
  it('changes nothing the second time', () => given(route, [opened(), closed]).when(close()).thenNothing());
  it('is refused where there is none', () => given(route, []).when(close()).thenRefused({ code: 'route_not_open' }));
  it('is refused to whoever holds an earlier lease', () =>
    given(route, [opened(), opened(2)])
      .when(close(1))
      .thenRefused({ code: 'route_lease_ended' }));
  it('revokes what went out under it and under every lease before it, and nothing under a later one', () => {
    const state = after(opened(), opened(2), closed, opened(3));
    expect([1, 2, 3].map((lease) => isRevoked(state, lease))).toEqual([true, true, false]);
  });
  it('revokes what went out without a lease only as long as it is closed', () => {
    expect(isRevoked(after(opened(), closed), undefined)).toBe(true);
    expect(isRevoked(after(opened(), closed, opened(2)), undefined)).toBe(false);
  });
});

describe('a route', () => {
  it('lapses by itself at the instant it was leased until', () => {
    const state = after(opened());
    expect([NOW, NOW + TTL_MS - 1, NOW + TTL_MS].map((at) => routeAt(state, at))).toEqual(['live', 'live', 'lapsed']);
  });
  it('is none before it was opened, and after it was forgotten', () => {
    expect(routeAt(route.initial, NOW)).toBe('none');
    expect(routeAt(after(opened(), { type: 'RouteForgotten' }), NOW)).toBe('none');
  });
});
