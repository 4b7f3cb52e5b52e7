import {
  type Bus,
  type Maintainer,
  PROVISIONER,
  brokerAccounts,
  connectBus,
  describeProvisionRefusal,
  provision,
  renderNatsConfig,
  serviceInboxPrefix,
} from '@sharedos/bus';
import type { ServiceName } from '@sharedos/contracts';
import { type Servers, findServers } from './find-servers.ts';
import { onFreePort } from './free-port.ts';
import { type NatsConfig, natsStoreDir, startNats } from './nats-server.ts';
import { privateFolder } from './private-folder.ts';
import { startRedis } from './redis-server.ts';
import type { ServerHandle } from './server-process.ts';

/** One real server of a spec's own, on a free port that it keeps over restarts. Nothing of it outlives this process. */
export interface OwnServer {
  /** With the password in it, when that is how its clients take one. */
  readonly url: string;
  /** To stop, kill, freeze and restart it. */
  readonly server: ServerHandle;
  /** Ends it and removes its folder. */
  end(): Promise<void>;
}

export interface OwnNats extends OwnServer {
  /** The folder of its streams; it may be replaced while the server is not running. */
  readonly storeDir: string;
}

export interface ProvisionedNats extends OwnNats {
  connect(user: ServiceName | Maintainer): Promise<Bus>;
}

/** The password of every user of a spec's own server that has the product's users, and of its Redis. */
export const OWN_PASSWORD = 'test-only';

/** @param config What the spec is about; it must give the server the name, the address and the folder that it is told. */
export const startOwnNats = async (config: NatsConfig): Promise<OwnNats> => {
  const { port, folder, ...own } = await startOwn((programs, path, free) => startNats(programs.nats, path, free, config));
  return { ...own, url: `nats://127.0.0.1:${port}`, storeDir: natsStoreDir(folder) };
};

/** A NATS with the accounts, rights and streams of the product, and no principals. */
export const startProvisionedNats = async (): Promise<ProvisionedNats> => {
  const accounts = brokerAccounts([], () => OWN_PASSWORD);
  const own = await startOwnNats((listener) => renderNatsConfig(listener, accounts));
  const provisioned = await provision({ servers: own.url, user: PROVISIONER, pass: OWN_PASSWORD });
  if (!provisioned.ok) {
    await own.end();
    throw new Error(describeProvisionRefusal(provisioned.error));
  }
  return {
    ...own,
    connect: (user) =>
      connectBus({ servers: own.url, user, pass: OWN_PASSWORD, name: `test ${user}`, inboxPrefix: serviceInboxPrefix(user) }),
  };
};

/** A Redis with a password, which comes back empty from a restart. */
export const startOwnRedis = async (): Promise<OwnServer> => {
  const { port, server, end } = await startOwn((programs, path, free) => startRedis(programs.redis, path, free, OWN_PASSWORD));
  return { url: `redis://:${OWN_PASSWORD}@127.0.0.1:${port}`, server, end };
};

let programs: Promise<Servers> | undefined;

const startOwn = async (start: (programs: Servers, folder: string, port: number) => Promise<ServerHandle>) => {
  // Specs run side by side: whoever runs them has installed the servers before.
  const found = await (programs ??= findServers({ install: false }));
  const folder = await privateFolder();
  try {
    const [server, port] = await onFreePort((free) => start(found, folder.path, free));
    const end = async (): Promise<void> => {
      await server.kill();
      await folder.remove();
    };
    return { port, folder: folder.path, server, end };
  } catch (error) {
    await folder.remove();
    throw error;
  }
};
