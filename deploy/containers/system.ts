import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Replica, principalUser } from '@sharedos/bus';
import { runCommandLine } from '@sharedos/cli';
import { type SharedOS, connectSharedOS } from '@sharedos/client';
import type { Address } from '@sharedos/contracts';
import { freePort, waitFor } from '@sharedos/testing';
import type { Engine } from './engine.ts';
import { shell } from './shell.ts';
import type { Images } from './stand-ins.ts';

export const NAMESPACE = 'demo';
export const ALICE = { kind: 'human', userId: 'alice' } as const satisfies Address;
export const SCOUT = { kind: 'agent', agentId: 'scout' } as const satisfies Address;

const UP_MS = 300_000;
const SERVICES = ['authorizer', 'tool-executor', 'messaging-router', 'audit-projector'] as const;

/** The whole system in containers. */
export interface ContainerSystem {
  client(principal: Address): Promise<SharedOS>;
  /** Every process of it, as `sharedos status` shows them. */
  replicas(): Promise<readonly Replica[]>;
  /** Waits until so many processes of each service may be relied on. */
  ready(counts: Readonly<Partial<Record<(typeof SERVICES)[number], number>>>): Promise<void>;
  compose(...words: readonly string[]): Promise<string>;
  end(): Promise<void>;
}

export interface ContainerSystemOptions {
  readonly root: string;
  readonly engine: Engine;
  readonly images: Images;
  /** Compose files, from the root. */
  readonly files: readonly string[];
  /** Names of the brokers of a cluster. */
  readonly cluster: readonly string[];
  readonly scale: Readonly<Record<string, number>>;
}

/** Makes its keys and starts it. Jaeger and the collector are left out: nothing here asks them. */
export const startContainers = async ({
  root,
  engine,
  images,
  files,
  cluster,
  scale,
}: ContainerSystemOptions): Promise<ContainerSystem> => {
  const folder = await mkdtemp(join(tmpdir(), 'sharedos-containers-'));
  const sharedos = async (...words: readonly string[]): Promise<string> => {
    let said = '';
    const terminal = { out: (text: string) => void (said += text), err: (text: string) => void (said += text), cwd: folder, env: {} };
    const code = await runCommandLine(words, terminal);
    if (code !== 0 && words[0] === 'auth') throw new Error(said);
    return said;
  };
  const auth = join(folder, 'auth');
  await sharedos('auth', 'init', '--dir', auth, '--secrets', '/run/secrets', ...(cluster.length === 0 ? [] : ['--cluster', ...cluster]));
  await sharedos('auth', 'tenant', 'add', NAMESPACE, '--dir', auth, '--root', 'human:alice');
  await sharedos('auth', 'principal', 'add', NAMESPACE, 'human:alice', '--dir', auth);
  await sharedos('auth', 'principal', 'add', NAMESPACE, 'agent:scout', '--dir', auth);
  const port = await freePort();
  const url = `tls://127.0.0.1:${port}`;
  const env = { ...engine.env, ...images, SHAREDOS_AUTH: auth, SHAREDOS_GATEWAY: join(auth, 'gateway'), SHAREDOS_NATS_PORT: String(port) };
  const [program, ...first] = engine.compose;
  const compose = (...words: readonly string[]): Promise<string> =>
    shell(program, [...first, '-p', `sharedos-test-${port}`, ...files.flatMap((file) => ['-f', join(root, file)]), ...words], {
      env,
      cwd: root,
    });
  const clients: SharedOS[] = [];
  const end = async (): Promise<void> => {
    for (const client of clients) await client.close();
    await compose('down', '--volumes', '--timeout', '5').catch(() => undefined);
    await rm(folder, { recursive: true, force: true });
  };
  const context = join(folder, 'context.json');
  const replicas = async (): Promise<readonly Replica[]> => {
    const said = await sharedos('status', '--json', '--timeout', '3000', '--context', context);
    const [line = '{}'] = said.split('\n');
    return (JSON.parse(line) as { readonly replicas?: readonly Replica[] }).replicas ?? [];
  };
  try {
    const scales = Object.entries(scale).flatMap(([name, count]) => ['--scale', `${name}=${count}`]);
    await compose('up', '-d', '--no-build', ...scales, ...SERVICES);
    await writeFile(context, await sharedos('auth', 'context', NAMESPACE, 'human:alice', '--dir', auth, '--url', url), { mode: 0o600 });
    return {
      replicas,
      ready: async (counts) => {
        await waitFor(
          `${JSON.stringify(counts)} that are ready`,
          async () => {
            const found = (await replicas().catch(() => [])).filter(({ trouble }) => trouble === undefined);
            return Object.entries(counts).every(([name, count]) => found.filter(({ service }) => service === name).length === count);
          },
          UP_MS,
        );
      },
      client: async (principal) => {
        const user = principalUser(NAMESPACE, principal);
        const password = (await readFile(join(auth, 'secrets', `${user}.seed`), 'utf8')).trim();
        const caFile = join(auth, 'secrets', 'ca.pem');
        const client = await connectSharedOS({ servers: url, user, password, caFile, namespaceId: NAMESPACE, principal });
        clients.push(client);
        return client;
      },
      compose,
      end,
    };
  } catch (error) {
    const logs = await compose('logs', '--tail', '5').catch(() => '');
    await end();
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${logs}`, { cause: error });
  }
};
