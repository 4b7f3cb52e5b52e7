import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Bus,
  PROVISIONER,
  brokerAccounts,
  connectBus,
  describeProvisionRefusal,
  provision,
  renderNatsConfig,
  serviceInboxPrefix,
} from '@sharedos/bus';
import type { ServiceName } from '@sharedos/contracts';

/** A NATS of our own for a test, with the accounts, rights and streams of the product, on a free port it keeps over restarts. */
export interface NatsProcess {
  connect(user: ServiceName | typeof PROVISIONER): Promise<Bus>;
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** Kills it and starts it again over the same folder. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 10_000;
const PASSWORD = 'test-only';

export const startNats = async (): Promise<NatsProcess> => {
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-nats-'));
  const port = await freePort();
  const configuration = join(folder, 'nats.conf');
  const listener = { name: 'test', host: '127.0.0.1', port, storeDir: join(folder, 'data') };
  await writeFile(
    configuration,
    renderNatsConfig(
      listener,
      brokerAccounts([], () => PASSWORD),
    ),
    { mode: 0o600 },
  );
  let server: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    const started = spawn('nats-server', ['-c', configuration], { stdio: ['ignore', 'pipe', 'pipe'] });
    server = started;
    await new Promise<void>((resolve, reject) => {
      let output = '';
      const timer = setTimeout(() => reject(new Error(`nats-server did not start: ${output}`)), START_TIMEOUT_MS);
      const done = (outcome: () => void): void => {
        clearTimeout(timer);
        outcome();
      };
      started.once('error', (error) => done(() => reject(error)));
      started.once('exit', (code) => done(() => reject(new Error(`nats-server ended with ${code}: ${output}`))));
      started.stderr?.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        if (output.includes('Server is ready')) done(resolve);
      });
    });
  };

  const kill = async (): Promise<void> => {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    server.kill('SIGKILL');
    await ended;
  };

  const stop = async (): Promise<void> => {
    await kill();
    await rm(folder, { recursive: true, force: true });
  };

  const servers = `nats://127.0.0.1:${port}`;
  await start();
  const provisioned = await provision({ servers, user: PROVISIONER, pass: PASSWORD });
  if (!provisioned.ok) {
    await stop();
    throw new Error(describeProvisionRefusal(provisioned.error));
  }

  return {
    connect: (user) => connectBus({ servers, user, pass: PASSWORD, name: `test ${user}`, inboxPrefix: serviceInboxPrefix(user) }),
    signal: (signal) => void server?.kill(signal),
    restart: async () => {
      await kill();
      await start();
    },
    stop,
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
