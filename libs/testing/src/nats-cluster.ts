import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { findServers } from './find-servers.ts';
import { freePort } from './free-port.ts';
import { type NatsConfig, startNats } from './nats-server.ts';
import { privateFolder } from './private-folder.ts';
import type { ServerHandle } from './server-process.ts';
import { type TcpFront, openTcpFront } from './tcp-front.ts';

export interface NatsNode {
  readonly name: string;
  readonly url: string;
  readonly server: ServerHandle;
}

/** Three real nats-servers as one cluster, whose connections among each other can be interrupted. */
export interface NatsCluster {
  readonly nodes: readonly NatsNode[];
  /** From now on nothing passes between this node and the others. Its clients still reach it, and it has been told nothing. */
  isolate(node: NatsNode): void;
  /** Everything passes again. */
  join(): void;
  end(): Promise<void>;
}

const SIZE = 3;

const ATTEMPTS = 5;

/** @param config Writes what each node has beside its place in the cluster. */
export const startNatsCluster = async (config: NatsConfig): Promise<NatsCluster> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnce(config);
    } catch (error) {
      // A port that was free when it was asked for may be somebody else's by now; each attempt has others.
      if (attempt === ATTEMPTS) throw error;
    }
  }
};

const startOnce = async (config: NatsConfig): Promise<NatsCluster> => {
  const programs = await findServers({ install: false });
  const folder = await privateFolder();
  const places = await Promise.all(
    Array.from({ length: SIZE }, async (_, index) => ({ index, port: await freePort(), routePort: await freePort() })),
  );
  // One for each direction of each pair, so that one node can be cut off from both of the others.
  const ways: { readonly from: number; readonly to: number; readonly front: TcpFront }[] = [];
  const nodes: NatsNode[] = [];
  const end = async (): Promise<void> => {
    await Promise.all(nodes.map(({ server }) => server.kill()));
    await Promise.all(ways.map(({ front }) => front.close()));
    await folder.remove();
  };
  try {
    for (const from of places)
      for (const to of places) if (from !== to) ways.push({ from: from.index, to: to.index, front: await openTcpFront(0, to.routePort) });
    const started = await Promise.all(
      places.map(async ({ index, port, routePort }) => {
        const path = join(folder.path, `n${index}`);
        await mkdir(path);
        const routes = ways.filter(({ from }) => from === index).map(({ front }) => `nats-route://127.0.0.1:${front.port}`);
        // Nobody listens where it says it is: what a node learns about another must not lead around the interrupted ways.
        const cluster = { name: 'test', listen: `127.0.0.1:${routePort}`, routes, advertise: '127.0.0.1:1', no_advertise: true };
        const server = await startNats(
          programs.nats,
          path,
          port,
          (listener) => `${config(listener)}\ncluster: ${JSON.stringify(cluster)}\n`,
        );
        return { name: `sharedos-${port}`, url: `nats://127.0.0.1:${port}`, server };
      }),
    );
    nodes.push(...started);
  } catch (error) {
    await end();
    throw error;
  }
  return {
    nodes,
    isolate: (node) => {
      const index = nodes.indexOf(node);
      for (const { from, to, front } of ways) if (from === index || to === index) front.blackHole();
    },
    join: () => ways.forEach(({ front }) => front.heal()),
    end,
  };
};
