import { type ChildProcess, spawn } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Bus, connectBus, jetStreamRights, serviceInboxPrefix } from '@sharedos/bus';
import { type NatsConnection, type StreamConfig, connect } from 'nats';

/** The inbox of the service's user, the only place where it may listen. */
const SERVICE_INBOX = serviceInboxPrefix('authorizer');
const LOG_SUBJECTS = 'sharedos.v1.*.log.>';
const START_TIMEOUT_MS = 10_000;
const RETRY_MS = 25;
const MIB = 1024 * 1024;

/** A real broker in a folder of its own, which a test may stop, kill, start again and set back in time. */
export interface NatsServerUnderTest {
  /** A user that may do everything, such as the one that makes streams. */
  admin(): Promise<NatsConnection>;
  /** A user with no more rights than the log's services have. */
  service(): Promise<Bus>;
  /** A service that may read the log and not write it. */
  reader(): Promise<Bus>;
  stop(): void;
  resume(): void;
  /** Ends the process as a crash would. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Keeps a copy of the data on disk; only while the process is not running. */
  saveData(): Promise<void>;
  restoreData(): Promise<void>;
  end(): Promise<void>;
}

export const logStream = (settings: Partial<StreamConfig> = {}): Partial<StreamConfig> =>
  ({ name: 'LOG', subjects: [LOG_SUBJECTS], retention: 'limits', storage: 'file', discard: 'new', ...settings }) as Partial<StreamConfig>;

export const makeLogStream = async (server: NatsServerUnderTest, settings: Partial<StreamConfig> = {}): Promise<void> => {
  const admin = await server.admin();
  await (await admin.jetstreamManager()).streams.add(logStream(settings));
  await admin.close();
};

export const startNatsServer = async (): Promise<NatsServerUnderTest> => {
  const folder = await mkdtemp(join(tmpdir(), 'event-store-'));
  const port = await freePort();
  const reading = [...jetStreamRights.head('LOG'), ...jetStreamRights.read('LOG'), ...jetStreamRights.follow('LOG')];
  const userOf = (user: string, publish: readonly string[]) => ({
    user,
    password: user,
    permissions: { publish: { allow: publish }, subscribe: { allow: [`${SERVICE_INBOX}.>`] } },
  });
  const config = {
    listen: `127.0.0.1:${port}`,
    jetstream: { store_dir: join(folder, 'data'), max_memory_store: 64 * MIB, max_file_store: 1024 * MIB },
    authorization: {
      users: [{ user: 'admin', password: 'admin' }, userOf('service', [LOG_SUBJECTS, ...reading]), userOf('reader', reading)],
    },
  };
  await writeFile(join(folder, 'nats.json'), JSON.stringify(config));

  let child: ChildProcess | undefined;
  const killChild = () => void child?.kill('SIGKILL');
  process.once('exit', killChild);

  const login = (user: string, more: object = {}) =>
    connect({ servers: `127.0.0.1:${port}`, user, pass: user, maxReconnectAttempts: -1, reconnectTimeWait: RETRY_MS, ...more });

  const bus = (user: string) => connectBus({ servers: `127.0.0.1:${port}`, user, pass: user, name: 'test', inboxPrefix: SERVICE_INBOX });

  const start = async () => {
    child = spawn('nats-server', ['-c', join(folder, 'nats.json')], { stdio: 'ignore' });
    for (const startedAt = performance.now(); ;) {
      const probe = await login('admin', { reconnect: false }).catch(() => undefined);
      if (probe !== undefined) return probe.close();
      if (performance.now() - startedAt > START_TIMEOUT_MS) throw new Error('nats-server did not start');
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  };
  const kill = () =>
    new Promise<void>((resolve) => {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return resolve();
      child.once('exit', () => resolve());
      child.kill('SIGKILL');
    });

  await start();
  return {
    admin: () => login('admin'),
    service: () => bus('service'),
    reader: () => bus('reader'),
    stop: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    kill,
    start,
    saveData: () => cp(join(folder, 'data'), join(folder, 'saved'), { recursive: true }),
    restoreData: async () => {
      await rm(join(folder, 'data'), { recursive: true });
      await cp(join(folder, 'saved'), join(folder, 'data'), { recursive: true });
    },
    end: async () => {
      await kill();
      process.off('exit', killChild);
      await rm(folder, { recursive: true, force: true });
    },
  };
};

const freePort = () =>
  new Promise<number>((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => (typeof address === 'object' && address !== null ? resolve(address.port) : reject(new Error('no port'))));
    });
  });
