import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { baseSettings, withFiles } from '@sharedos/bus';
import { runCommandLine } from '@sharedos/cli';
import { SERVICE_NAMES, type ServiceName } from '@sharedos/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { projectorSettings } from '../services/audit-projector/src/config.ts';
import { authorizerSettings } from '../services/authorizer/src/config.ts';
import { gatewaySettings } from '../services/gateway/src/config.ts';
import { routerSettings } from '../services/messaging-router/src/config.ts';
import { executorSettings } from '../services/tool-executor/src/config.ts';

const root = join(import.meta.dirname, '..');

interface Container {
  readonly image: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly secrets?: readonly string[];
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly mem_limit?: string;
  readonly cpus?: number;
  readonly pids_limit?: number;
  readonly container_name?: string;
}
interface Compose {
  readonly services: Readonly<Record<string, Container>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

const read = (name: string): Compose => parse(readFileSync(join(root, name), 'utf8'), { merge: true }) as Compose;
const compose = read('docker-compose.yml');
const cluster = read('docker-compose.cluster.yml');
const containers = Object.entries(compose.services);
const container = (name: string): Container => {
  const found = compose.services[name];
  if (found === undefined) throw new Error(`there is no ${name}`);
  return found;
};

const OURS = [...SERVICE_NAMES, 'gateway', 'prepare', 'provision'];
/** They do one thing and end. */
const STEPS = ['prepare', 'provision'];
const SETTINGS: Readonly<Record<ServiceName, z.ZodRawShape>> = {
  authorizer: authorizerSettings,
  'tool-executor': executorSettings,
  'messaging-router': routerSettings,
  'audit-projector': projectorSettings,
};

let folder: string;

/** As compose fills in `${NAME:-default}`, with the folder of keys where it is. */
const filled = (value: string): string =>
  value.replaceAll(/\$\{(\w+):-([^}]*)\}/g, (_, name: string, otherwise: string) => (name === 'SHAREDOS_AUTH' ? folder : otherwise));
/** Where a container sees a file that is mounted or given as a secret. */
const insideOf = (name: string): ReadonlyMap<string, string> =>
  new Map([
    ...(container(name).secrets ?? []).map((secret): [string, string] => [
      `/run/secrets/${secret}`,
      filled(compose.secrets[secret]?.file ?? ''),
    ]),
    ...(container(name).volumes ?? []).map((volume): [string, string] => {
      const [from = '', to = ''] = filled(volume).split(':');
      return [to, from];
    }),
  ]);
const environmentOf = (name: string): Readonly<Record<string, string>> => {
  const inside = insideOf(name);
  return Object.fromEntries(
    Object.entries(container(name).environment ?? {}).map(([variable, value]) => [variable, inside.get(filled(value)) ?? filled(value)]),
  );
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sharedos-compose-'));
  const terminal = { out: () => undefined, err: () => undefined, cwd: folder, env: {} };
  const init = ['auth', 'init', '--dir', folder, '--secrets', '/run/secrets', '--cluster', 'nats', 'nats-2', 'nats-3'];
  expect(await runCommandLine(init, terminal)).toBe(0);
  expect(await runCommandLine(['auth', 'tenant', 'add', 'demo', '--dir', folder, '--root', 'human:alice'], terminal)).toBe(0);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('docker-compose.yml', () => {
  it('has the servers, the four services, the gateway, and the steps before them', () =>
    expect(new Set(Object.keys(compose.services))).toEqual(new Set([...OURS, 'nats', 'redis', 'eventstore', 'jaeger', 'otel-collector'])));

  it.each(containers.filter(([name]) => !STEPS.includes(name)))('watches the health of %s', (_, { healthcheck }) =>
    expect(healthcheck?.test?.length).toBeGreaterThan(1),
  );
  it.each(containers)('pins a version of the image of %s', (name, { image }) =>
    expect(filled(image)).toMatch(OURS.includes(name) ? /^sharedos:local$/ : /:v?\d+\.\d+\.\d+[\w.-]*$/),
  );
  it.each(containers)(
    'runs %s as nobody in particular, on a file system it cannot write, with no capability and within limits',
    (_, one) => {
      expect(one.user).toMatch(/^'?[1-9]\d{3,}:[1-9]\d{3,}'?$/);
      expect([one.read_only, one.cap_drop]).toEqual([true, ['ALL']]);
      expect([one.mem_limit, one.cpus, one.pids_limit].every((limit) => limit !== undefined)).toBe(true);
    },
  );
  it.each(containers)('lets %s be there more than once: it has no name of its own', (_, one) => expect(one.container_name).toBeUndefined());

  it('opens ports to this machine only', () => {
    const ports = containers.flatMap(([name, { ports: opened = [] }]) => opened.map((port) => [name, filled(port)]));
    expect(ports).toEqual([
      ['nats', '127.0.0.1:4222:4222'],
      ['jaeger', '127.0.0.1:16686:16686'],
      ['otel-collector', '127.0.0.1:8889:8889'],
      ['gateway', '127.0.0.1:8080:8080'],
    ]);
  });

  it.each(containers)('lets %s wait only for what there is, healthy or done', (_, { depends_on = {} }) => {
    for (const [name, { condition }] of Object.entries(depends_on)) {
      expect(container(name)).toBeDefined();
      expect(condition).toBe(STEPS.includes(name) ? 'service_completed_successfully' : 'service_healthy');
    }
  });

  it.each(containers)('gives %s only secrets that "sharedos auth init" makes', (name) => {
    for (const [inside, outside] of insideOf(name))
      if (inside.startsWith('/run/secrets/')) expect([outside, existsSync(outside)]).toEqual([outside, true]);
  });
  it('gives a secret to those alone who use it, and to no environment', () => {
    const holders = (secret: string): readonly string[] =>
      containers.filter(([, { secrets = [] }]) => secrets.includes(secret)).map(([name]) => name);
    for (const secret of Object.keys(compose.secrets).filter((name) => name.endsWith('.seed')))
      expect(holders(secret)).toEqual([secret === 'provisioner.seed' ? 'provision' : secret.slice(0, -5)]);
    expect(holders('broker-key.pem')).toEqual(['nats']);
    expect(holders('token-secret')).toEqual(['authorizer']);
    expect(holders('seal-keys')).toEqual(['audit-projector']);
    for (const [, { environment = {} }] of containers)
      expect(
        Object.keys(environment).filter((name) => /(PASSWORD|SECRET|REDIS_URL|KEYS|AUTH)$/.test(name) && name !== 'SHAREDOS_TOKEN_KEYS'),
      ).toEqual([]);
  });

  it('keeps nothing of Redis', async () => {
    expect(container('redis').volumes).toBeUndefined();
    expect(container('redis').command).toEqual(['redis-server', '/run/secrets/redis.conf']);
    expect(await readFile(insideOf('redis').get('/run/secrets/redis.conf') ?? '', 'utf8')).toMatch(/^save ""\nappendonly no\n/);
  });

  it('makes the streams as the provisioner, who can neither read nor delete them', () => {
    expect(container('provision').command).toEqual(['deploy/nats/provision.ts']);
    expect(existsSync(join(root, 'deploy/nats/provision.ts'))).toBe(true);
    expect(environmentOf('provision')['SHAREDOS_NATS_PASSWORD_FILE']).toBe(join(folder, 'secrets/provisioner.seed'));
  });

  it('builds one image for all that is ours', () => {
    const built = containers.filter(([, { build }]) => build !== undefined);
    expect(new Set(built.map(([name]) => name))).toEqual(new Set(OURS));
    expect(new Set(built.map(([, { image, build }]) => JSON.stringify([image, build]))).size).toBe(1);
    expect(existsSync(join(root, 'deploy/Dockerfile'))).toBe(true);
  });

  it('has the collector ask every service for its metrics, where it shows them', () => {
    const config = readFileSync(join(root, 'deploy/otel-collector.yml'), 'utf8');
    const [, names = '', port] = /names: \[([^\]]+)\]\s+type: A\s+port: (\d+)/.exec(config) ?? [];
    expect(new Set(names.split(', '))).toEqual(new Set(SERVICE_NAMES));
    for (const name of SERVICE_NAMES)
      expect(environmentOf(name)).toMatchObject({ SHAREDOS_HEALTH_PORT: port, SHAREDOS_HEALTH_HOST: '0.0.0.0' });
  });
});

describe.each(SERVICE_NAMES)('%s in docker-compose.yml', (name) => {
  it('runs its own program', () => {
    expect(container(name).command).toEqual([`services/${name}/src/main.ts`]);
    expect(existsSync(join(root, `services/${name}/src/main.ts`))).toBe(true);
  });
  it('is given all that it refuses to start without, in a form that it accepts, and nothing that it does not know', () => {
    const shape = { ...baseSettings, ...SETTINGS[name] };
    const names = Object.keys(shape);
    const refuse = (line: string): never => {
      throw new Error(line);
    };
    const env = withFiles(environmentOf(name), names, refuse);
    expect(z.object(shape).safeParse(env).error?.issues).toBeUndefined();
    const unknown = Object.keys(env).filter(
      (one) => one.startsWith('SHAREDOS_') && !names.includes(one.replace(/_FILE$/, '')) && !names.includes(one),
    );
    expect(unknown).toEqual([]);
  });
  it('signs in to the broker as itself, by its own key, over TLS', () => {
    const { SHAREDOS_NATS_USER: user, SHAREDOS_NATS_PASSWORD_FILE: seed, SHAREDOS_NATS_URL: url } = environmentOf(name);
    expect([user, seed, url]).toEqual([name, join(folder, `secrets/${name}.seed`), 'tls://nats:4222']);
  });
  it('is asked for its health where it listens, and sends its spans to the collector', () => {
    const { SHAREDOS_HEALTH_PORT: port, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = environmentOf(name);
    expect(container(name).healthcheck?.test?.join(' ')).toContain(`http://127.0.0.1:${port}/readyz`);
    expect(endpoint).toBe('http://otel-collector:4318');
  });
});

describe('the gateway in docker-compose.yml', () => {
  it('is given all that it needs beside what its operator says, and nothing that it does not know', async () => {
    const text = await readFile(join(folder, 'gateway/gateway.env'), 'utf8');
    const said = Object.fromEntries(
      text
        .trim()
        .split('\n')
        .map((line) => [line.split('=')[0] as string, 'RS256']),
    );
    const env = { ...environmentOf('gateway'), ...said };
    expect(z.object(gatewaySettings).safeParse(env).error?.issues).toBeUndefined();
    const names = Object.keys(gatewaySettings);
    expect(Object.keys(env).filter((one) => one.startsWith('SHAREDOS_') && !names.includes(one))).toEqual([]);
  });
});

describe('docker-compose.cluster.yml', () => {
  it('has three brokers, each with its own configuration and streams, and all with the same image, user and limits', async () => {
    const { healthcheck, image, user, mem_limit, cpus, read_only, cap_drop, command } = container('nats');
    for (const name of ['nats-2', 'nats-3']) {
      expect(cluster.services[name]).toMatchObject({ healthcheck, image, user, mem_limit, cpus, read_only, cap_drop, command });
      expect(cluster.services[name]?.volumes?.map(filled)).toEqual([
        `${folder}/secrets/${name}.conf:/etc/nats/nats.conf:ro`,
        `${name}-data:/data/jetstream`,
      ]);
      const conf = await readFile(join(folder, `secrets/${name}.conf`), 'utf8');
      expect(conf).toContain(`server_name: "${name}"`);
      for (const other of ['nats', 'nats-2', 'nats-3'].filter((one) => one !== name))
        expect(conf).toMatch(new RegExp(`nats-route://route:[a-z0-9]+@${other}:6222`));
    }
    expect(cluster.services['nats']?.volumes?.map(filled)).toEqual([`${folder}/secrets/nats.conf:/etc/nats/nats.conf:ro`]);
  });
  it('keeps three copies of each stream, and tells every service of all brokers', () => {
    expect(filled(cluster.services['provision']?.environment?.['SHAREDOS_STREAM_REPLICAS'] ?? '')).toBe('3');
    for (const name of [...SERVICE_NAMES, 'provision'])
      expect(cluster.services[name]?.environment?.['SHAREDOS_NATS_URL']).toBe('tls://nats:4222,tls://nats-2:4222,tls://nats-3:4222');
  });
});
