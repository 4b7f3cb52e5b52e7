import { z } from 'zod';
import { Ts } from '../time.ts';
import { replyMessage, wireMessage } from './wire.ts';

/** How long a route may be leased at once, in milliseconds. It is renewed long before, or it ends by itself. */
export const ROUTE_TTL_MS = { least: 1_000, most: 3_600_000 } as const;
const TtlMs = z.int().min(ROUTE_TTL_MS.least).max(ROUTE_TTL_MS.most);

/** The leases of one recipient's route are counted from 1: a later one is greater, and none is given twice. */
export const RouteLease = z.int().min(1);

const counted = {
  /** The last lease given; 0 where none was. */
  lease: z.int().min(0),
  /** What was sent under this lease and those before it was revoked with them. */
  revokedThrough: z.int().min(0),
};

/**
 * Whether there is a live path to a recipient, as it says itself. It is no authority: a route lets nobody send, and a grant opens none.
 *
 * - `none`: it leases no route. Its inbox is where messages reach it, whenever it looks.
 * - `open`: there is one until `expiresAt`; after that it has lapsed, and messages are parked until it is opened again.
 * - `closed`: it takes nothing, and what had not arrived was revoked.
 */
export const RouteState = z.discriminatedUnion('status', [
  z.strictObject({ status: z.literal('none'), ...counted }),
  z.strictObject({ status: z.literal('open'), ...counted, openedAt: Ts, expiresAt: Ts }),
  z.strictObject({ status: z.literal('closed'), ...counted, closedAt: Ts }),
]);
export type RouteState = z.infer<typeof RouteState>;

/** One recipient's route as it is kept. */
export const RouteRecord = wireMessage('route.record/1', RouteState);

/**
 * What a recipient does with its own route. `open` gives a new lease and ends the one before; `pause` lets it lapse now, so that what
 * comes is parked; `close` revokes all that has not arrived; `forget` goes back to an inbox without a route. `show` changes nothing.
 */
export const MessageRoute = wireMessage(
  'message.route/1',
  z.discriminatedUnion('act', [
    z.strictObject({ act: z.literal('show') }),
    z.strictObject({ act: z.literal('open'), ttlMs: TtlMs }),
    z.strictObject({ act: z.literal('renew'), lease: RouteLease, ttlMs: TtlMs }),
    z.strictObject({ act: z.literal('pause'), lease: RouteLease }),
    z.strictObject({ act: z.literal('close'), lease: RouteLease.optional() }),
    z.strictObject({ act: z.literal('forget') }),
  ]),
);
export type MessageRoute = z.infer<typeof MessageRoute.schema>;
/** `live`: whether there is a path at this moment. `parked`: how many messages wait for one. */
export const RouteShown = z.strictObject({ route: RouteState, live: z.boolean(), parked: z.int().min(0) });
export type RouteShown = z.infer<typeof RouteShown>;
export const MessageRouteReply = replyMessage('message.route.reply/1', RouteShown);
