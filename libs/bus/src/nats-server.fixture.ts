import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type JetStreamManager, type NatsConnection, type StreamConfig, connect } from 'nats';
import type { Bus } from './bus.ts';
import { type BusOptions, connectBus } from './connect.ts';
import type { UserRights } from './permissions.ts';

/** A real broker of this test's own, on a free port and with a private folder. */
export interface TestServer {
  readonly url: string;
  readonly connect: (options?: Partial<BusOptions>) => Promise<Bus>;
  /** A raw connection that may do anything, and JetStream's management. */
  readonly admin: NatsConnection;
  readonly jsm: JetStreamManager;
  readonly stop: () => Promise<void>;
  readonly start: () => Promise<void>;
  readonly signal: (signal: NodeJS.Signals) => void;
  readonly end: () => Promise<void>;
}

/** @param narrow What the user `narrow` may do; the user `service` may do everything. */
export const testServer = async (narrow: UserRights = { publish: [], subscribe: [] }): Promise<TestServer> => {
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-bus-'));
  const port = await freePort();
  const url = `nats://127.0.0.1:${port}`;
  const allow = (subjects: readonly string[]): string => JSON.stringify([...subjects]);
  await writeFile(
    join(folder, 'nats.conf'),
    `listen: "127.0.0.1:${port}"
max_payload: 8388608
jetstream { store_dir: ${JSON.stringify(join(folder, 'store'))}, max_file_store: 1073741824 }
authorization {
  users: [
    { user: service, password: secret }
    { user: narrow, password: secret, permissions: { publish: { allow: ${allow(narrow.publish)} }, subscribe: { allow: ${allow(narrow.subscribe)} } } }
  ]
}
`,
  );
  let process: ChildProcess;
  const clients: { admin?: NatsConnection } = {};
  const start = async (): Promise<void> => {
    process = spawn('nats-server', ['-c', join(folder, 'nats.conf')], { stdio: 'ignore' });
    const probe = await connectBus({ ...busOptions(url), connectTimeoutMs: 10_000 });
    await probe.close();
    const { admin } = clients;
    if (admin !== undefined)
      await until('the admin is back', () =>
        admin.rtt().then(
          () => true,
          () => false,
        ),
      );
  };
  const stop = async (): Promise<void> => {
    if (process.exitCode !== null || process.signalCode !== null) return;
    const exited = once(process, 'exit');
    process.kill('SIGCONT');
    process.kill('SIGTERM');
    await exited;
  };
  await start();
  const connected = await connect({ servers: url, user: 'service', pass: 'secret', maxReconnectAttempts: -1, reconnectTimeWait: 50 });
  clients.admin = connected;
  const buses: Bus[] = [];
  return {
    url,
    admin: connected,
    jsm: await connected.jetstreamManager(),
    start,
    stop,
    signal: (signal) => void process.kill(signal),
    connect: async (options) => {
      const bus = await connectBus({ ...busOptions(url), ...options });
      buses.push(bus);
      return bus;
    },
    end: async () => {
      await Promise.all([...buses.map((bus) => bus.close()), connected.close()]);
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
};

/** Options of the user that may do everything. */
export const busOptions = (url: string): BusOptions => ({
  servers: url,
  user: 'service',
  pass: 'secret',
  name: 'test',
  inboxPrefix: '_INBOX.test',
});

export const addStream = (server: TestServer, name: string, settings: Partial<StreamConfig> = {}): Promise<unknown> =>
  server.jsm.streams.add({ name, subjects: [`${name.toLowerCase()}.>`], ...settings });

/** Waits for a state; says which one when it does not come. */
export const until = async (state: string, holds: () => boolean | Promise<boolean>, timeoutMs = 10_000): Promise<void> => {
  const deadline = Date.now() + timeoutMs;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${state}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};

export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
};

/** Publishes into a stream, again and again until it is stored: the broker may just be coming back. */
export const store = async (server: TestServer, natsSubject: string, text: string): Promise<void> => {
  const once = (): Promise<boolean> =>
    server.admin
      .jetstream()
      .publish(natsSubject, text, { timeout: 250 })
      .then(
        () => true,
        () => false,
      );
  await until(`stored on ${natsSubject}`, once);
};
