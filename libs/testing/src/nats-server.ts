import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type BrokerAccounts, renderNatsConfig } from '@sharedos/bus';
import { answersWith } from './line-probe.ts';
import { type ServerHandle, startServer } from './server-process.ts';

/** Starts a nats-server with the generated accounts. Its streams are in `folder`, and so is its configuration, for its owner alone. */
export const startNats = async (program: string, folder: string, port: number, accounts: BrokerAccounts): Promise<ServerHandle> => {
  const name = `sharedos-${port}`;
  const configFile = join(folder, 'nats.conf');
  await writeFile(configFile, renderNatsConfig({ name, host: '127.0.0.1', port, storeDir: join(folder, 'jetstream') }, accounts), {
    mode: 0o600,
  });
  return startServer({
    label: 'nats-server',
    command: program,
    args: ['-c', configFile],
    cwd: folder,
    // The name tells ours from another server that took the port between our looking and its starting.
    isServing: () => answersWith(port, '', new RegExp(`^INFO .*"server_name":"${name}".*\\r\\n`)),
  });
};
