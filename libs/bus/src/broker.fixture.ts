import { type NatsConfig, startOwnNats, waitFor } from '@sharedos/testing';
import { type JetStreamManager, type NatsConnection, type StreamConfig, connect } from 'nats';
import type { Bus } from './bus.ts';
import { type BusOptions, connectBus } from './connect.ts';
import type { UserRights } from './permissions.ts';

/** A real broker of this test's own, with one user that may do everything and one that may not. */
export interface TestServer {
  readonly url: string;
  readonly connect: (options?: Partial<BusOptions>) => Promise<Bus>;
  /** A raw connection that may do anything, and JetStream's management. */
  readonly admin: NatsConnection;
  readonly jsm: JetStreamManager;
  readonly stop: () => Promise<void>;
  readonly start: () => Promise<void>;
  readonly pause: () => void;
  readonly resume: () => void;
  readonly end: () => Promise<void>;
}

const twoUsers =
  (narrow: UserRights): NatsConfig =>
  ({ name, host, port, storeDir }) =>
    `server_name: ${JSON.stringify(name)}
listen: "${host}:${port}"
max_payload: 8388608
jetstream { store_dir: ${JSON.stringify(storeDir)}, max_file_store: 1073741824 }
authorization {
  users: [
    { user: service, password: secret }
    { user: narrow, password: secret, permissions: { publish: { allow: ${JSON.stringify(narrow.publish)} }, subscribe: { allow: ${JSON.stringify(narrow.subscribe)} } } }
  ]
}
`;

/** @param narrow What the user `narrow` may do; the user `service` may do everything. */
export const testServer = async (narrow: UserRights = { publish: [], subscribe: [] }): Promise<TestServer> => {
  const { url, server, end } = await startOwnNats(twoUsers(narrow));
  const admin = await connect({ servers: url, user: 'service', pass: 'secret', maxReconnectAttempts: -1, reconnectTimeWait: 50 });
  const adminAnswers = (): Promise<boolean> =>
    admin.rtt().then(
      () => true,
      () => false,
    );
  const buses: Bus[] = [];
  return {
    url,
    admin,
    jsm: await admin.jetstreamManager(),
    start: async () => {
      await server.restart();
      await until('the admin is back', adminAnswers);
    },
    stop: server.stop,
    pause: server.pause,
    resume: server.resume,
    connect: async (options) => {
      const bus = await connectBus({ ...busOptions(url), ...options });
      buses.push(bus);
      return bus;
    },
    end: async () => {
      await Promise.all([...buses.map((bus) => bus.close()), admin.close()]);
      await end();
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
  await waitFor(state, holds, timeoutMs);
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
