import { spawn } from 'node:child_process';
import { copyFile, cp, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { shell, succeeds } from './shell.ts';

const MIRROR = 'http://deb.debian.org/debian';
const PACKAGES = ['ca-certificates', 'curl', 'git', 'nats-server', 'redis-server', 'wget'];
const BASE = 'sharedos-stand-in/base:bookworm';

const NAMES = {
  SHAREDOS_IMAGE: 'sharedos-stand-in/sharedos:local',
  SHAREDOS_NATS_IMAGE: 'sharedos-stand-in/nats:debian',
  SHAREDOS_REDIS_IMAGE: 'sharedos-stand-in/redis:debian',
  SHAREDOS_EVENTSTORE_IMAGE: 'sharedos-stand-in/eventstore:double',
} as const;

/** Images by the variables of docker-compose.yml that name them. */
export type Images = Readonly<Record<string, string>>;

/** Those of an earlier run. The double speaks gRPC alone, and is probed so. */
export const keptStandIns = (): Images => ({
  ...NAMES,
  // Debian's broker is older than one may be that keeps copies of streams.
  SHAREDOS_STREAM_REPLICAS: '1',
  SHAREDOS_EVENTSTORE_HEALTH: 'curl --http2-prior-knowledge --silent --output /dev/null http://127.0.0.1:2113/',
});

/**
 * Builds images that stand in for those that cannot be pulled: Debian's own NATS and Redis, the Node that runs this, the double of
 * EventStoreDB's protocol; and our own image on top, by its Dockerfile.
 */
export const buildStandIns = async (root: string, env: Readonly<Record<string, string>>, say: (line: string) => void): Promise<Images> => {
  if (!(await succeeds('docker', ['image', 'inspect', BASE], { env }))) await buildBase(env, say);
  const built = async (name: string, lines: readonly string[]): Promise<void> => {
    const folder = await mkdtemp(join(tmpdir(), 'stand-in-'));
    await writeFile(join(folder, 'Dockerfile'), `${lines.join('\n')}\n`);
    await shell('docker', ['build', '-q', '-t', name, folder], { env });
    await rm(folder, { recursive: true });
  };
  say('building the image of the services …');
  const ours = NAMES.SHAREDOS_IMAGE;
  const file = join(root, 'deploy', 'Dockerfile');
  await shell('docker', ['build', '--network', 'host', '--build-arg', `NODE_IMAGE=${BASE}`, '-q', '-t', ours, '-f', file, root], { env });
  await built(NAMES.SHAREDOS_NATS_IMAGE, [`FROM ${BASE}`, 'ENTRYPOINT ["nats-server"]']);
  await built(NAMES.SHAREDOS_REDIS_IMAGE, [`FROM ${BASE}`]);
  await built(NAMES.SHAREDOS_EVENTSTORE_IMAGE, [
    `FROM ${ours}`,
    'ENTRYPOINT ["node", "/app/libs/eventstoredb-double/src/program.ts"]',
    'CMD ["--port", "2113", "--data", "/data/eventstore"]',
  ]);
  return keptStandIns();
};

const buildBase = async (env: Readonly<Record<string, string>>, say: (line: string) => void): Promise<void> => {
  say('making a base image of Debian packages …');
  const folder = await mkdtemp(join(tmpdir(), 'stand-in-base-'));
  try {
    await shell('debootstrap', ['--variant=minbase', `--include=${PACKAGES.join(',')}`, 'bookworm', folder, MIRROR]);
    await copyFile(await realpath(process.execPath), join(folder, 'usr/local/bin/node'));
    // npm comes with the Node of the machine; the one of the packages is a program alone.
    const npm = dirname(await realpath((await shell('sh', ['-c', 'PATH=/usr/local/bin:/usr/bin:/bin command -v npm'])).trim()));
    await mkdir(join(folder, 'usr/local/lib/node_modules'), { recursive: true });
    await cp(dirname(npm), join(folder, 'usr/local/lib/node_modules/npm'), { recursive: true });
    await writeFile(join(folder, 'usr/local/bin/npm'), '#!/bin/sh\nexec node /usr/local/lib/node_modules/npm/bin/npm-cli.js "$@"\n', {
      mode: 0o755,
    });
    // Whom this machine believes, the build of the image believes.
    await copyFile('/etc/ssl/certs/ca-certificates.crt', join(folder, 'etc/ssl/certs/ca-certificates.crt'));
    await mkdir(join(folder, 'usr/local/etc'), { recursive: true });
    await writeFile(join(folder, 'usr/local/etc/npmrc'), 'cafile=/etc/ssl/certs/ca-certificates.crt\n');
    await imported(folder, env);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

const imported = async (folder: string, env: Readonly<Record<string, string>>): Promise<void> => {
  const tar = spawn('tar', ['-C', folder, '-c', '.'], { stdio: ['ignore', 'pipe', 'inherit'] });
  await shell('docker', ['import', '-c', 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', '-', BASE], {
    env,
    input: tar.stdout,
  });
};
