import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A Redis of our own for a test: no persistence, a password, a free port that it keeps over restarts. */
export interface RedisProcess {
  readonly url: string;
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** Kills it, without a word to its clients, and starts an empty one in its place. */
  restart(): Promise<void>;
  kill(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 5_000;

export const startRedis = async (): Promise<RedisProcess> => {
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-redis-'));
  const port = await freePort();
  const password = 'test-only';
  let server: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    const args = [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--appendonly',
      'no',
      '--requirepass',
      password,
      '--dir',
      folder,
    ];
    server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const started = server;
    await new Promise<void>((resolve, reject) => {
      let output = '';
      const timer = setTimeout(() => reject(new Error(`redis-server did not start: ${output}`)), START_TIMEOUT_MS);
      const done = (outcome: () => void): void => {
        clearTimeout(timer);
        outcome();
      };
      started.once('error', (error) => done(() => reject(error)));
      started.once('exit', (code) => done(() => reject(new Error(`redis-server ended with ${code}: ${output}`))));
      started.stdout?.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        if (output.includes('Ready to accept connections')) done(resolve);
      });
    });
  };

  const kill = async (): Promise<void> => {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  };

  await start();
  return {
    url: `redis://:${password}@127.0.0.1:${port}`,
    signal: (signal) => void server?.kill(signal),
    restart: async () => {
      await kill();
      await start();
    },
    kill,
    start,
    stop: async () => {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
};

const freePort = async (): Promise<number> => {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
};
