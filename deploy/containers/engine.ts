import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { shell, succeeds } from './shell.ts';

/** A Docker engine, and the program that reads compose files. */
export interface Engine {
  /** For every program that talks to it. */
  readonly env: Readonly<Record<string, string>>;
  readonly which: 'running' | 'started here';
  /** `docker compose`, or the program of its own that older systems have. */
  readonly compose: readonly [string, ...string[]];
  /** Ends it, if it was started here. */
  stop(): Promise<void>;
}

const READY_MS = 60_000;
/** Of a stand-in engine: kept from run to run, because images take minutes. */
const DATA = process.env['SHAREDOS_ENGINE_DATA'] ?? join(tmpdir(), 'sharedos-docker');

/**
 * The engine that runs already, or one that is started here: root on Debian or Ubuntu installs it from the system's packages.
 *
 * @returns Why there is none.
 */
export const findEngine = async (say: (line: string) => void): Promise<Engine | string> => {
  if (await succeeds('docker', ['info'])) {
    const compose = await composeOf({});
    return compose === undefined
      ? 'neither "docker compose" nor "docker-compose" is installed'
      : { env: {}, which: 'running', compose, stop: async () => undefined };
  }
  const mayInstall = process.getuid?.() === 0 && existsSync('/etc/debian_version');
  if (!mayInstall) return 'no Docker engine answers, and only root on Debian or Ubuntu installs one here';
  if (!existsSync('/usr/sbin/dockerd') || (await composeOf({})) === undefined) {
    say('installing docker.io and docker-compose …');
    await shell('apt-get', ['update', '-qq']);
    await shell('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'docker.io', 'iptables', 'docker-compose', 'debootstrap'], {
      env: { DEBIAN_FRONTEND: 'noninteractive' },
    });
  }
  return startEngine(say);
};

const startEngine = async (say: (line: string) => void): Promise<Engine | string> => {
  say('starting dockerd …');
  await mkdir(DATA, { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(join(tmpdir(), 'dockerd-'));
  const socket = `unix://${join(folder, 'docker.sock')}`;
  const log = await open(join(folder, 'log'), 'w');
  const args = ['--data-root', DATA, '--exec-root', join(folder, 'exec'), '--pidfile', join(folder, 'pid'), '-H', socket];
  const daemon = spawn('dockerd', args, { stdio: ['ignore', log.fd, log.fd] });
  const ended = new Promise<void>((resolve) => daemon.once('close', () => resolve()));
  const env = { DOCKER_HOST: socket, DOCKER_BUILDKIT: '0', COMPOSE_DOCKER_CLI_BUILD: '0' };
  const stop = async (): Promise<void> => {
    daemon.kill('SIGTERM');
    await ended;
    await log.close();
    await rm(folder, { recursive: true, force: true });
  };
  const deadline = performance.now() + READY_MS;
  while (!(await succeeds('docker', ['info'], { env }))) {
    if (daemon.exitCode !== null || performance.now() > deadline) {
      await stop();
      return 'dockerd does not run on this machine';
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const compose = await composeOf(env);
  if (compose !== undefined) return { env, which: 'started here', compose, stop };
  await stop();
  return 'there is no program for compose files';
};

const composeOf = async (env: Readonly<Record<string, string>>): Promise<readonly [string, ...string[]] | undefined> => {
  if (await succeeds('docker', ['compose', 'version'], { env })) return ['docker', 'compose'];
  return (await succeeds('docker-compose', ['version'], { env })) ? ['docker-compose'] : undefined;
};
