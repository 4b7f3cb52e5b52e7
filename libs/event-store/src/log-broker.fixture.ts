import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Bus, connectBus, jetStreamRights, serviceInboxPrefix } from '@sharedos/bus';
import { type NatsConfig, type ServerHandle, type TcpFront, openTcpFront, startOwnNats } from '@sharedos/testing';
import { type NatsConnection, type StreamConfig, connect } from 'nats';

/** The inbox of the service's user, the only place where it may listen. */
const SERVICE_INBOX = serviceInboxPrefix('authorizer');
const LOG_SUBJECTS = 'sharedos.v1.*.log.>';
const RETRY_MS = 25;
const MIB = 1024 * 1024;

/** A real broker of a test's own, with the users that the log knows, whose data can be set back in time. */
export interface LogBroker {
  readonly server: ServerHandle;
  /** What services connect through. */
  readonly network: TcpFront;
  /** A user that may do anything, such as the one that makes streams. */
  admin(): Promise<NatsConnection>;
  /** A user with no more rights than the log's services have. */
  service(): Promise<Bus>;
  /** A service that may read the log and not write it. */
  reader(): Promise<Bus>;
  /** Keeps a copy of the data on disk; only while the process is not running. */
  saveData(): Promise<void>;
  restoreData(): Promise<void>;
  end(): Promise<void>;
}

export const logStream = (settings: Partial<StreamConfig> = {}): Partial<StreamConfig> =>
  ({ name: 'LOG', subjects: [LOG_SUBJECTS], retention: 'limits', storage: 'file', discard: 'new', ...settings }) as Partial<StreamConfig>;

export const makeLogStream = async (broker: LogBroker, settings: Partial<StreamConfig> = {}): Promise<void> => {
  const admin = await broker.admin();
  await (await admin.jetstreamManager()).streams.add(logStream(settings));
  await admin.close();
};

/** The configuration is JSON, which nats-server reads too. */
const logUsers: NatsConfig = ({ name, host, port, storeDir }) => {
  const reading = [...jetStreamRights.head('LOG'), ...jetStreamRights.read('LOG'), ...jetStreamRights.follow('LOG')];
  const userOf = (user: string, publish: readonly string[]) => ({
    user,
    password: user,
    permissions: { publish: { allow: publish }, subscribe: { allow: [`${SERVICE_INBOX}.>`] } },
  });
  return JSON.stringify({
    server_name: name,
    listen: `${host}:${port}`,
    jetstream: { store_dir: storeDir, max_memory_store: 64 * MIB, max_file_store: 1024 * MIB },
    authorization: {
      users: [{ user: 'admin', password: 'admin' }, userOf('service', [LOG_SUBJECTS, ...reading]), userOf('reader', reading)],
    },
  });
};

export const startLogBroker = async (): Promise<LogBroker> => {
  const { url, server, storeDir, end } = await startOwnNats(logUsers);
  const saved = join(storeDir, '../saved');
  const network = await openTcpFront(0, Number(new URL(url).port));
  const bus = (user: string) =>
    connectBus({ servers: `nats://127.0.0.1:${network.port}`, user, pass: user, name: 'test', inboxPrefix: SERVICE_INBOX });
  return {
    server,
    network,
    admin: () => connect({ servers: url, user: 'admin', pass: 'admin', maxReconnectAttempts: -1, reconnectTimeWait: RETRY_MS }),
    service: () => bus('service'),
    reader: () => bus('reader'),
    saveData: () => cp(storeDir, saved, { recursive: true }),
    restoreData: async () => {
      await rm(storeDir, { recursive: true });
      await cp(saved, storeDir, { recursive: true });
    },
    end: async () => {
      await network.close();
      await end();
    },
  };
};
