import type { Delivery } from '@sharedos/bus';
import { type Address, type Instant, type MessageRoute, type Reply, type RouteShown, type RouteState, refused } from '@sharedos/contracts';
import { type RouteCommand, invariant, routeAt } from '@sharedos/kernel';
import type { Ports } from './ports.ts';
import { revokeDeliveries } from './revoke-deliveries.ts';

/** Shows or changes the route of the caller, and does what follows from that to the messages that are on their way to it. */
export const messageRoute =
  (ports: Ports) =>
  async (body: MessageRoute, { namespaceId, principal }: Delivery): Promise<Reply<RouteShown>> => {
    invariant(principal !== undefined, 'a route is leased by its principal');
    const { routes, clock, waiting } = ports;
    if (body.act === 'show') {
      const shown = await routes.of(namespaceId, principal);
      return shown.ok ? show(ports, namespaceId, principal, shown.value) : away();
    }
    const changed = await routes.change(namespaceId, principal, commandOf(body, clock()));
    if (!changed.ok) {
      if ('kind' in changed.error) return away();
      const { code } = changed.error;
      return refused(code, code === 'route_not_open' ? 'there is no route to close' : 'the lease has ended; open another');
    }
    if (changed.value.status === 'closed') await revokeDeliveries(ports, namespaceId, principal);
    else waiting.wake(namespaceId, principal);
    return show(ports, namespaceId, principal, changed.value);
  };

const commandOf = (body: Exclude<MessageRoute, { act: 'show' }>, at: Instant): RouteCommand => {
  switch (body.act) {
    case 'open':
      return { type: 'OpenRoute', at, ttlMs: body.ttlMs };
    case 'renew':
      return { type: 'RenewRoute', at, lease: body.lease, ttlMs: body.ttlMs };
    case 'pause':
      return { type: 'PauseRoute', at, lease: body.lease };
    case 'close':
      return { type: 'CloseRoute', at, lease: body.lease };
    case 'forget':
      return { type: 'ForgetRoute' };
  }
};

const show = async ({ parked, clock }: Ports, namespaceId: string, principal: Address, route: RouteState): Promise<Reply<RouteShown>> => {
  const count = await parked.count(namespaceId, principal);
  if (!count.ok) return away();
  return { ok: true, value: { route, live: routeAt(route, clock()) === 'live', parked: count.value } };
};

const away = () => refused('inbox_unavailable', 'the inbox did not answer in time; try again', true);
