import { type Address, type ParkedMessage, type RouteState, instantOf, timestampOf } from '@sharedos/contracts';
import { type DeliveryState, isOver, routeAt } from '@sharedos/kernel';
import type { OperationHistory } from '@sharedos/ledger';
import { decideSend } from './decide-send.ts';
import { keyOf, readDelivery, stepDelivery } from './delivery-record.ts';
import { findPlace } from './find-place.ts';
import { handOver } from './hand-over.ts';
import { type Outgoing, accepted, outgoing, sentRecord } from './outgoing.ts';
import type { ParkedCopy } from './parked-messages.ts';
import type { Ports } from './ports.ts';

/** What became of one copy: taken out, left for later, or left because nothing more can leave for this recipient now. */
type Outcome = 'over' | 'later' | 'stop';

/** Few enough that one recipient's backlog does not keep the others' sends waiting. */
const AT_ONCE = 8;

/**
 * Lets go what waits for a recipient, a few at a time and oldest first: each message is judged by the route and decided anew at the
 * moment it leaves, and the step is on its record before it does. What a router that died left half done is finished.
 *
 * @returns Whether all of it is settled; otherwise some of it waits on.
 */
export const dispatchWaiting = async (ports: Ports, namespaceId: string, recipient: Address): Promise<boolean> => {
  const waiting = await ports.parked.waitingFor(namespaceId, recipient);
  if (!waiting.ok) return false;
  const queue = [...waiting.value];
  let settled = true;
  const lane = async (): Promise<void> => {
    for (let copy = queue.shift(); copy !== undefined; copy = queue.shift()) {
      // Read anew for each: it may be closed while they leave, and the rest goes nowhere.
      const route = await ports.routes.of(namespaceId, recipient);
      const outcome = route.ok ? await settle(ports, copy, route.value) : 'stop';
      if (outcome === 'over') await ports.parked.takeOut(copy);
      else settled = false;
      if (outcome === 'stop') queue.length = 0;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return settled;
};

const settle = async (ports: Ports, { parked }: ParkedCopy, route: RouteState): Promise<Outcome> => {
  const send = sendOf(ports, parked);
  // All that a route which has lapsed lets one find out is that the time of a message is over, and it says that itself.
  const now = ports.clock();
  if (routeAt(route, now) === 'lapsed' && now < (instantOf(parked.until) ?? 0)) return 'later';
  const read = await readDelivery(ports, send.key);
  if (!read.ok) return 'stop';
  if (read.value === undefined) return 'over';
  const { state, history } = read.value;
  if (isOver(state)) return 'over';
  if (state.status === 'dispatched') return bring(ports, send, state.lease);
  if (state.status === 'parked') return letGo(ports, send, state, route);
  return takeUp(ports, send, parked, history);
};

/** Its router parked it and did not live to say so: the sender is told that it was accepted, and it leaves with the next look at it. */
const takeUp = async (ports: Ports, send: Outgoing, { until }: ParkedMessage, history: OperationHistory): Promise<Outcome> => {
  const heardOf = instantOf(history.records.at(-1)?.at ?? '') ?? 0;
  if (ports.clock() - heardOf < ports.sendLeaseMs) return 'later';
  const at = timestampOf(ports.clock());
  const result = accepted(ports, send.envelope);
  await ports.ledger.resume(send.key, history).append({
    type: 'ended',
    at,
    by: 'recovery',
    result,
    delivery: { type: 'MessageParked', at, until },
    audit: [sentRecord(ports, send, result)],
  });
  return 'later';
};

const letGo = async (ports: Ports, send: Outgoing, state: DeliveryState, route: RouteState): Promise<Outcome> => {
  const { namespaceId } = send.context;
  const command = {
    type: 'DispatchMessage',
    to: 'inbox',
    route,
    expiresAt: send.expiresAt === undefined ? undefined : instantOf(send.expiresAt),
  } as const;
  const path = routeAt(route, ports.clock());
  // Neither the end of its time nor that of its route needs a decision.
  if (path === 'closed' || path === 'lapsed') {
    const ended = await stepDelivery(ports, keyOf(namespaceId, send.envelope), { ...command, at: ports.clock() });
    return ended.ok && isOver(ended.value.state) ? 'over' : 'later';
  }
  const place = await findPlace(ports, send, undefined);
  if (place.kind === 'unknown' || place.kind === 'reply') return 'stop';
  const decidedAt = ports.clock();
  const decided = await decideSend(ports, send);
  if (decided.kind === 'unavailable') return 'stop';
  const refusedBy = decided.kind === 'denied' ? decided.code : ports.rules.blocks(send, place.rules) ? 'sender_blocked' : undefined;
  const step = await stepDelivery(
    ports,
    keyOf(namespaceId, send.envelope),
    { ...command, at: ports.clock(), to: place.kind, route: place.route, decision: { at: decidedAt, code: refusedBy } },
    decided,
  );
  if (!step.ok) return step.error.kind === 'unavailable' ? 'stop' : 'later';
  const { state: after } = step.value;
  if (isOver(after)) return 'over';
  return after.status === 'dispatched' ? bring(ports, send, after.lease) : 'later';
};

/** On record it is on its way; now it goes there. Where it is there already, or was acknowledged, this changes nothing. */
const bring = async (ports: Ports, send: Outgoing, lease: number | undefined): Promise<Outcome> => {
  const place = await findPlace(ports, send, undefined);
  if (place.kind === 'unknown') return 'stop';
  const brought = await handOver(ports, send, place, lease);
  return brought?.status === 'accepted' ? 'over' : 'stop';
};

/** As it was sent, as of now. */
const sendOf = (
  { clock, ids }: Pick<Ports, 'clock' | 'ids'>,
  { context, envelope, operation, callId, expiresAt }: ParkedMessage,
): Outgoing =>
  outgoing({ ...context, now: timestampOf(clock()) }, envelope, ids(), {
    operation,
    ...(callId === undefined ? {} : { callId }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  });
