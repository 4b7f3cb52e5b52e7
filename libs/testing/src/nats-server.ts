import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrokerListener } from '@sharedos/bus';
import { answersWith } from './line-probe.ts';
import { type ServerHandle, startServer } from './server-process.ts';

/** Writes the configuration of a server that has this name, listens there and keeps its streams there. */
export type NatsConfig = (listener: BrokerListener) => string;

/** Where a server started in `folder` keeps its streams. */
export const natsStoreDir = (folder: string): string => join(folder, 'jetstream');

/** Starts a nats-server. Its streams are in `folder`, and so is its configuration, for its owner alone. */
export const startNats = async (program: string, folder: string, port: number, config: NatsConfig): Promise<ServerHandle> => {
  const name = `sharedos-${port}`;
  const configFile = join(folder, 'nats.conf');
  await writeFile(configFile, config({ name, host: '127.0.0.1', port, storeDir: natsStoreDir(folder) }), { mode: 0o600 });
  return startServer({
    label: 'nats-server',
    command: program,
    args: ['-c', configFile],
    cwd: folder,
    // The name tells ours from another server that took the port between our looking and its starting.
    isServing: () => answersWith(port, '', new RegExp(`^INFO .*"server_name":"${name}".*\\r\\n`)),
  });
};
