import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { ServersMissing, findServers } from '@sharedos/testing';

/** The repo tools run it; it is no server, and the stack starts without it. */
const hasGit = (): boolean => spawnSync('git', ['--version'], { stdio: 'ignore' }).status === 0;
if (!hasGit() && process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) {
  process.stdout.write('installing git with apt-get …\n');
  const quiet = { stdio: 'ignore', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }, timeout: 300_000 } as const;
  spawnSync('apt-get', ['update', '-qq'], quiet);
  spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'git'], quiet);
}
if (!hasGit()) process.stderr.write('git is missing: the repo tools answer git_unavailable until it is installed\n');

/** Finds or installs the servers of the local stack before anything needs them, and says where they are. */
const found = await findServers({ onProgress: (line) => process.stdout.write(`${line}\n`) }).catch((error: unknown) => {
  if (error instanceof ServersMissing) return error;
  throw error;
});
if (found instanceof ServersMissing) {
  process.stderr.write(`${found.message}\n`);
  process.exitCode = 1;
} else {
  process.stdout.write(`nats-server: ${found.nats}\nredis-server: ${found.redis}\n`);
}
