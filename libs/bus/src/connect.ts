import { type Status, type NatsConnection, ErrorCode, NatsError, connect } from 'nats';
import { Bus } from './bus.ts';
import { Outbox } from './outbox.ts';
import { Replies } from './replies.ts';
import { type SignIn, signIn } from './sign-in.ts';
import { backoffMs, pause } from './waiting.ts';

export type BusStatus =
  | { readonly kind: 'connected' | 'disconnected' }
  /** Closed by us, or for good by a fault of the client: the process should end. */
  | { readonly kind: 'closed'; readonly reason?: string }
  /** The broker refused something: a permission is missing, or somebody is trying. */
  | { readonly kind: 'not_permitted'; readonly operation: 'publish' | 'subscription'; readonly natsSubject: string };

export interface BusOptions extends SignIn {
  /** Shown by the broker's monitoring. */
  readonly name: string;
  /** The one prefix under which this user may subscribe to answers. */
  readonly inboxPrefix: string;
  readonly onStatus?: (status: BusStatus) => void;
  /** How long to wait for the broker at start. */
  readonly connectTimeoutMs?: number;
  /** Most requests and acknowledgements waiting at once. */
  readonly pendingMax?: number;
}

/** A connection that could not be made at start; the message says what to do. */
export class BusConnectError extends Error {
  override readonly name = 'BusConnectError';
}

const CONNECT_TIMEOUT_MS = 15_000;
const ATTEMPT_MS = 2_000;
const PENDING_MAX = 8_192;
// A frozen server keeps its socket: two unanswered pings are what tells us, within 10 to 15 s.
const PING_MS = 5_000;

/**
 * Connects, waiting for the broker at start up to a deadline. Afterwards a lost connection comes back by itself, for ever, with
 * jittered back-off; meanwhile everything asked of the bus is `unavailable` at once.
 *
 * @throws BusConnectError when there is no connection by the deadline, or the broker refuses the user or its inbox.
 */
export const connectBus = async (options: BusOptions): Promise<Bus> => {
  const nats = await firstConnection(options);
  const outbox = new Outbox(nats);
  const bus = new Bus(nats, outbox, new Replies(nats, outbox, options.inboxPrefix, options.pendingMax ?? PENDING_MAX));
  void follow(nats, (status) => {
    bus.statusChanged(status);
    options.onStatus?.(status);
  });
  await bus.flush(ATTEMPT_MS);
  if (bus.replies.inboxRefused) {
    await bus.close();
    throw new BusConnectError(
      `NATS does not let user "${options.user}" subscribe to "${options.inboxPrefix}.>": generate its permissions again, or correct the inbox prefix`,
    );
  }
  return bus;
};

const firstConnection = async (options: BusOptions): Promise<NatsConnection> => {
  const deadline = Date.now() + (options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS);
  const where = typeof options.servers === 'string' ? options.servers : options.servers.join(', ');
  if (where === '') throw new BusConnectError('no address of a NATS server is given: state one, such as nats://127.0.0.1:4222');
  let failures = 0;
  for (;;) {
    const remaining = deadline - Date.now();
    try {
      return await connect({
        ...signIn(options),
        name: options.name,
        inboxPrefix: options.inboxPrefix,
        timeout: Math.max(1, Math.min(remaining, ATTEMPT_MS)),
        reconnect: true,
        maxReconnectAttempts: -1,
        // A password changed on the server must not end a service that could be given the new one: it stays not ready.
        ignoreAuthErrorAbort: true,
        reconnectDelayHandler: () => backoffMs(4),
        pingInterval: PING_MS,
        maxPingOut: 2,
      });
    } catch (error) {
      const code = error instanceof NatsError ? error.code : 'unknown';
      if (code === ErrorCode.AuthorizationViolation) {
        throw new BusConnectError(
          `NATS at ${where} refused user "${options.user}": check its password, and that the server runs with our generated configuration`,
        );
      }
      if (Date.now() >= deadline) {
        throw new BusConnectError(`no NATS server answers at ${where} (${code}): start one, or correct the address`);
      }
    }
    await pause(Math.min(backoffMs(failures), Math.max(0, deadline - Date.now())));
    failures += 1;
  }
};

const follow = async (nats: NatsConnection, onStatus: (status: BusStatus) => void): Promise<void> => {
  void nats.closed().then((error) => onStatus({ kind: 'closed', ...(error instanceof Error ? { reason: error.message } : {}) }));
  for await (const event of nats.status()) {
    const status = statusOf(event);
    if (status !== undefined) onStatus(status);
  }
};

const statusOf = (event: Status): BusStatus | undefined => {
  if (event.type === 'disconnect') return { kind: 'disconnected' };
  if (event.type === 'reconnect') return { kind: 'connected' };
  if (event.type === 'error' && event.permissionContext !== undefined) {
    const { operation, subject } = event.permissionContext;
    return { kind: 'not_permitted', operation: operation === 'publish' ? 'publish' : 'subscription', natsSubject: subject };
  }
  return undefined;
};

export type { Bus };
