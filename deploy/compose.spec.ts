import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { baseSettings } from '@sharedos/bus';
import { SERVICE_NAMES, type ServiceName } from '@sharedos/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { projectorSettings } from '../services/audit-projector/src/config.ts';
import { authorizerSettings } from '../services/authorizer/src/config.ts';
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
  readonly healthcheck?: { readonly test?: readonly string[]; readonly disable?: boolean };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
}

const text = readFileSync(join(root, 'docker-compose.yml'), 'utf8');
const compose = parse(text, { merge: true }) as {
  readonly services: Readonly<Record<string, Container>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const containers = Object.entries(compose.services);
const container = (name: string): Container => {
  const found = compose.services[name];
  if (found === undefined) throw new Error(`there is no ${name}`);
  return found;
};

const SETTINGS: Readonly<Record<ServiceName, z.ZodRawShape>> = {
  authorizer: authorizerSettings,
  'tool-executor': executorSettings,
  'messaging-router': routerSettings,
  'audit-projector': projectorSettings,
};

let folder: string;
let env: Readonly<Record<string, string>>;

/** As compose fills in `${NAME}`, `${NAME:-default}` and `${NAME:?what to do}`. */
const filled = (value: string): string =>
  value.replaceAll(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, name: string, kind: string | undefined, rest: string | undefined) => {
    const given = env[name];
    if (given !== undefined) return given;
    if (kind === '-') return rest ?? '';
    throw new Error(`${name} is not set`);
  });
const environmentOf = (name: string): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(container(name).environment ?? {}).map(([variable, value]) => [variable, filled(value)]));

const run = promisify(execFile);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sharedos-env-'));
  await run(process.execPath, [join(root, 'deploy', 'make-env.ts'), join(folder, '.env')]);
  env = Object.fromEntries(
    (await readFile(join(folder, '.env'), 'utf8'))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.split('=') as [string, string]),
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the secrets of a deployment', () => {
  it('are different, long, and for their owner alone', async () => {
    expect((await stat(join(folder, '.env'))).mode & 0o777).toBe(0o600);
    expect(new Set(Object.values(env)).size).toBe(Object.keys(env).length);
    const { SHAREDOS_SEAL_KEYS, ...words } = env;
    for (const secret of Object.values(words)) expect(secret).toMatch(/^[a-z][0-9a-f]{64}$/);
    expect(SHAREDOS_SEAL_KEYS).toMatch(/^made-[0-9-]{10}:[A-Za-z0-9_-]{64}$/);
  });
  it('are never replaced', async () => {
    const before = await readFile(join(folder, '.env'), 'utf8');
    await expect(run(process.execPath, [join(root, 'deploy', 'make-env.ts'), join(folder, '.env')])).rejects.toThrow(/is there already/);
    expect(await readFile(join(folder, '.env'), 'utf8')).toBe(before);
  });
  it('are none of them written in docker-compose.yml', () => {
    for (const [, value] of containers
      .flatMap(([, { environment = {} }]) => Object.entries(environment))
      .filter(([name]) => /PASSWORD|SECRET|AUTH|KEYS/.test(name))) {
      expect(value).toMatch(/^\$\{\w+:\?[^}]+\}$/);
    }
  });
});

describe('docker-compose.yml', () => {
  it('has the servers, the four services and the step that makes the streams', () =>
    expect(Object.keys(compose.services).toSorted()).toEqual(
      [...SERVICE_NAMES, 'nats', 'redis', 'eventstore', 'jaeger', 'provision'].toSorted(),
    ));

  it.each(containers.filter(([name]) => name !== 'provision'))('watches the health of %s', (_, { healthcheck }) =>
    expect(healthcheck?.test?.length).toBeGreaterThan(1),
  );

  it.each(containers)('pins a version of the image of %s', (_, { image }) => expect(filled(image)).toMatch(/:(?!latest$)[\w.-]+$/));

  it('opens ports to this machine only: the broker and the page of Jaeger', () => {
    const ports = containers.flatMap(([name, { ports: opened = [] }]) => opened.map((port) => [name, filled(port)]));
    expect(ports).toEqual([
      ['nats', '127.0.0.1:4222:4222'],
      ['jaeger', '127.0.0.1:16686:16686'],
    ]);
  });

  it.each(containers)('lets %s wait only for what there is, healthy or done', (_, { depends_on = {} }) => {
    for (const [name, { condition }] of Object.entries(depends_on)) {
      expect(container(name)).toBeDefined();
      expect(condition).toBe(name === 'provision' ? 'service_completed_successfully' : 'service_healthy');
    }
  });

  it('gives the broker the password of each user that its configuration names, and no other', async () => {
    const conf = await readFile(join(root, 'deploy/nats/nats.conf'), 'utf8');
    const named = [...conf.matchAll(/password: \$(\w+)/g)].map(([, variable]) => variable as string);
    expect(Object.keys(environmentOf('nats')).toSorted()).toEqual(named.toSorted());
    const [, port] = /listen: ".*:(\d+)"/.exec(conf) ?? [];
    expect(container('nats').ports?.[0]).toMatch(new RegExp(`:${port}$`));
    expect(container('nats').volumes).toContain('nats-data:/data/jetstream');
  });

  it('keeps nothing of Redis', () => {
    expect(container('redis').volumes).toBeUndefined();
    expect(container('redis').command?.join(' ')).toMatch(/--save "" --appendonly no .*--requirepass/);
  });

  it('makes the streams as the provisioner, who can neither read nor delete them', () => {
    expect(environmentOf('provision')).toEqual({
      SHAREDOS_NATS_URL: 'nats://nats:4222',
      SHAREDOS_NATS_PASSWORD: env['SHAREDOS_PROVISIONER_PASSWORD'],
    });
    expect(existsSync(join(root, container('provision').command?.[0] ?? ''))).toBe(true);
  });

  it('builds one image for all that is ours', () => {
    const built = containers.filter(([, { build }]) => build !== undefined);
    expect(built.map(([name]) => name).toSorted()).toEqual([...SERVICE_NAMES, 'provision'].toSorted());
    expect(new Set(built.map(([, { image, build }]) => JSON.stringify([image, build]))).size).toBe(1);
    expect(existsSync(join(root, 'deploy/Dockerfile'))).toBe(true);
  });
});

describe.each(SERVICE_NAMES)('%s in docker-compose.yml', (name) => {
  it('runs its own program, as nobody in particular, on a file system it cannot write', () => {
    const { command, user, read_only, cap_drop } = container(name);
    expect(command).toEqual([`services/${name}/src/main.ts`]);
    expect(existsSync(join(root, `services/${name}/src/main.ts`))).toBe(true);
    expect([user, read_only, cap_drop]).toEqual(['node', true, ['ALL']]);
  });

  it('is given all that it refuses to start without, in a form that it accepts', () => {
    const settings = z.object({ ...baseSettings, ...SETTINGS[name] }).safeParse(environmentOf(name));
    expect(settings.error?.issues).toBeUndefined();
  });

  it('is given nothing that it does not know', () => {
    const known = new Set(Object.keys({ ...baseSettings, ...SETTINGS[name] }));
    expect(Object.keys(environmentOf(name)).filter((variable) => variable.startsWith('SHAREDOS_') && !known.has(variable))).toEqual([]);
  });

  it('signs in to the broker as itself, with the password that the broker knows', () => {
    const { SHAREDOS_NATS_USER: user, SHAREDOS_NATS_PASSWORD: password } = environmentOf(name);
    expect(user).toBe(name);
    expect(password).toBe(environmentOf('nats')[`SHAREDOS_${name.toUpperCase().replaceAll('-', '_')}_PASSWORD`]);
  });

  it('is asked for its health where it listens, and sends its spans to Jaeger', () => {
    const { SHAREDOS_HEALTH_PORT: port, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = environmentOf(name);
    expect(container(name).healthcheck?.test?.join(' ')).toContain(`http://127.0.0.1:${port}/readyz`);
    expect(endpoint).toBe('http://jaeger:4318');
  });
});
