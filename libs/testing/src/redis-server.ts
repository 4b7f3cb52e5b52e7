import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { answersWith } from './line-probe.ts';
import { type ServerHandle, startServer } from './server-process.ts';

/**
 * Starts a redis-server that keeps nothing: the truth about uses is in the ledger, and a server that came back with old counters
 * would be worse than one that came back empty. The password is in a file, because every user can read arguments.
 */
export const startRedis = async (program: string, folder: string, port: number, password: string): Promise<ServerHandle> => {
  const configFile = join(folder, 'redis.conf');
  const lines = [
    'bind 127.0.0.1',
    `port ${port}`,
    `requirepass ${password}`,
    'save ""',
    'appendonly no',
    'daemonize no',
    'enable-debug-command no',
  ];
  await writeFile(configFile, `${lines.join('\n')}\n`, { mode: 0o600 });
  return startServer({
    label: 'redis-server',
    command: program,
    args: [configFile],
    cwd: folder,
    isServing: () => answersWith(port, `AUTH ${password}\r\nPING\r\n`, /^\+OK\r\n\+PONG\r\n/),
  });
};
