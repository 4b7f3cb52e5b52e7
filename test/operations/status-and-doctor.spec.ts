import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Replica, type ReplicaState, connectBus } from '@sharedos/bus';
import { SERVICE_NAMES, type ServiceName } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { type NatsConnection, type Service, connect } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OperatorCli, operatorCli } from '../support/operator-cli.ts';
import { ALICE, NAMESPACE, type TestSystem, startTestSystem } from '../support/test-system.ts';

interface Finding {
  readonly code: string;
  readonly severity: string;
  readonly what: string;
  readonly remedy: string;
}
interface Examined {
  readonly healthy: boolean;
  readonly findings: readonly Finding[];
}
interface Status {
  readonly replicas: readonly Replica[];
  readonly without: readonly ServiceName[];
}

const ADMIN = { user: 'admin', pass: 'test-only' };
/** For what is asked once and must have been heard by everybody. */
const PATIENTLY = ['--timeout', '5000'] as const;
/** Enough on a machine that does much else, and asked again where it is not. */
const ANSWER = ['--timeout', '1500'] as const;

let system: TestSystem;
let cli: OperatorCli;

beforeAll(async () => {
  system = await startTestSystem({ replicas: { authorizer: 2, 'tool-executor': 2 } });
  cli = await operatorCli(system.stack);
});
afterAll(async () => {
  await cli?.end();
  await system?.stop();
});

const found = async (): Promise<readonly Finding[]> => (await cli.json<Examined>('doctor', ...ANSWER)).json.findings;
const toDo = async (): Promise<readonly string[]> => (await found()).filter(({ severity }) => severity !== 'note').map(({ code }) => code);
/** The finding, once it is there. Each says what to do. */
const finding = async (code: string): Promise<Finding> => {
  const one = await waitFor(code, async () => (await found()).find((each) => each.code === code), 90_000);
  expect(one.remedy.length).toBeGreaterThan(10);
  return one;
};
const healthy = (): Promise<unknown> => waitFor('nothing to do', async () => (await toDo()).length === 0, 90_000);

/** A process of a service that says of itself what the test wants: through the broker, as a real one does. */
const pretending = async (
  service: ServiceName,
  version: string,
  state: Partial<ReplicaState>,
  check: () => Promise<void>,
): Promise<void> => {
  const { user, password, inboxPrefix } = system.stack.credentials.service(service);
  const bus = await connectBus({ servers: system.stack.natsUrl, user, pass: password, inboxPrefix, name: 'pretending' });
  const added: Service = await bus.nats.services.add({
    name: service,
    version,
    queue: 'pretending',
    statsHandler: async () => ({ instance: 'pretender', clock: Date.now(), ...state }),
  });
  added.addEndpoint('pretending', { subject: `${inboxPrefix}.pretending`, handler: () => undefined });
  await bus.flush(5_000);
  try {
    await check();
  } finally {
    await added.stop();
    await bus.close();
  }
};

describe('sharedos status', { timeout: 200_000 }, () => {
  it('shows every process of every service, with its version, health, revision and lag', async () => {
    await system.letAliceRunScout();
    const { code, json } = await cli.json<Status>('status', ...PATIENTLY);
    expect(code).toBe(0);
    expect(json.replicas.map(({ service }) => service).toSorted((a, b) => SERVICE_NAMES.indexOf(a) - SERVICE_NAMES.indexOf(b))).toEqual([
      'authorizer',
      'authorizer',
      'tool-executor',
      'tool-executor',
      'messaging-router',
      'audit-projector',
    ]);
    for (const one of json.replicas) expect([one.version, one.trouble, typeof one.clock]).toEqual(['0.1.0', undefined, 'number']);
    const authorizers = json.replicas.filter(({ service }) => service === 'authorizer');
    expect(new Set(authorizers.map(({ log }) => log)).size).toBe(1);
    for (const { position, lag } of authorizers) expect([(position ?? 0) > 0, lag]).toEqual([true, 0]);
  });

  it('is one table for people', async () => {
    const { out } = await cli.run('status', ...PATIENTLY);
    expect(out.split('\n')[0]).toMatch(/^SERVICE +INSTANCE +VERSION +HEALTH +REVISION +LAG +RUNNING +UP$/);
    expect(out.match(/ ready /g)).toHaveLength(6);
  });

  it('fails when nobody of a service may be relied on, and says which', async () => {
    const [router] = system.services['messaging-router'];
    await router?.stop();
    const { code, json, err } = await cli.json<Status>('status', ...PATIENTLY);
    expect([code, json.without]).toEqual([1, ['messaging-router']]);
    expect(err).toContain('sharedos doctor');
    await system.stack.startService('messaging-router');
  });

  it('needs the operator, and no principal can do it', async () => {
    const principal = await connect({
      servers: system.stack.natsUrl,
      user: system.stack.credentials.principal(NAMESPACE, ALICE).user,
      pass: system.stack.credentials.principal(NAMESPACE, ALICE).password,
      inboxPrefix: system.stack.credentials.principal(NAMESPACE, ALICE).inboxPrefix,
    });
    await expect(principal.request('$SRV.STATS', '', { timeout: 2_000 })).rejects.toThrow(/Permissions Violation/);
    await principal.close();
    await cli.context({ operator: undefined });
    const { code, err } = await cli.run('status');
    await cli.context();
    expect([code, err]).toEqual([2, expect.stringContaining('no credentials of the operator')]);
  });
});

describe('sharedos doctor', { timeout: 200_000 }, () => {
  it('finds nothing to do in a healthy system, and tells what is good to know', async () => {
    const { code, json } = await waitFor(
      'nothing to do',
      async () => {
        const ran = await cli.json<Examined>('doctor', ...ANSWER);
        return ran.json.healthy ? ran : undefined;
      },
      90_000,
    );
    expect(code).toBe(0);
    expect(json.findings.every(({ severity }) => severity === 'note')).toBe(true);
  });

  it('finds a context that others may read', async () => {
    await chmod(cli.contextFile, 0o644);
    expect((await finding('context_open')).remedy).toContain(`chmod 600 ${cli.contextFile}`);
    await cli.context();
  });
  it('finds a broker that does not answer, or does not take the operator', async () => {
    await cli.context({ operator: { ...system.stack.credentials.operator, password: 'wrong' } });
    await finding('broker_unreachable');
    await cli.context({ natsUrl: 'nats://127.0.0.1:1' });
    await finding('broker_unreachable');
    await cli.context();
  });
  it('finds a principal that the broker does not take, and one that the context does not have', async () => {
    const alice = system.stack.credentials.principal(NAMESPACE, ALICE);
    await cli.context({ principals: { 'human:alice': { ...alice, password: 'wrong' } } });
    await finding('principal_refused');
    await cli.context({ defaultPrincipal: 'human:carol' });
    await finding('principal_unknown');
    await cli.context();
  });
  it('finds a service of which no process answers', async () => {
    const router = system.stack.services().find(({ name }) => name === 'messaging-router');
    await router?.stop();
    expect((await finding('service_missing')).what).toBe('no messaging-router answers');
    await system.stack.startService('messaging-router');
  });
  it('finds a clock that is wrong', async () => {
    const skewed = await system.stack.startService('authorizer', { instance: 'skewed', env: { SHAREDOS_CLOCK_OFFSET_MS: '60000' } });
    expect((await finding('clock_apart')).what).toMatch(/the clock of authorizer skewed is at least \d+ ms ahead/);
    await skewed.stop();
  });
  it('finds a process that may not be relied on, and gives its reason', () =>
    pretending('tool-executor', '0.1.0', { trouble: 'the queue of turns does not answer' }, async () => {
      expect((await finding('not_ready')).what).toContain('the queue of turns does not answer');
    }));
  it('finds processes of different releases', () =>
    pretending('authorizer', '0.0.9', {}, async () => {
      expect((await finding('versions_differ')).what).toContain('authorizer pretender is 0.0.9');
    }));
  it('finds a process that does not keep up', () =>
    pretending('audit-projector', '0.1.0', { position: 1, lag: 5_000 }, async () => {
      expect((await finding('behind')).what).toContain('5000 positions behind');
    }));
  it('finds authorizers that follow different logs', () =>
    pretending('authorizer', '0.1.0', { log: 'another', position: 1, lag: 0 }, async () => {
      expect((await finding('logs_apart')).what).toContain('authorizer pretender follows another');
    }));
});

describe('sharedos doctor, over a broker that somebody has changed', { timeout: 200_000 }, () => {
  let admin: NatsConnection;
  let conf: string;
  const place = (): string => join(system.stack.dataDir, 'nats.conf');
  const restarted = async (text: string): Promise<void> => {
    await writeFile(place(), text, { mode: 0o600 });
    await system.stack.nats.restart();
  };
  /** In CORE, and without a permission: it may do everything. */
  const withAdmin = (text: string): string =>
    text.replace(/users: \[/, `users: [\n      { user: "${ADMIN.user}", password: "${ADMIN.pass}" }`);

  beforeAll(async () => {
    conf = await readFile(place(), 'utf8');
    await restarted(withAdmin(conf));
    admin = await connect({ servers: system.stack.natsUrl, ...ADMIN });
    await healthy();
  });
  afterAll(() => admin?.close());

  it('finds a stream whose settings are not ours', async () => {
    const manager = await admin.jetstreamManager();
    const { config } = await manager.streams.info('TURNS');
    await manager.streams.update('TURNS', { ...config, max_msgs_per_subject: 7 });
    expect((await finding('stream_differs')).what).toBe('stream TURNS: max_msgs_per_subject is 7 and must be 50');
    await manager.streams.update('TURNS', config);
    await healthy();
  });
  it('finds a stream that is nearly full', async () => {
    const manager = await admin.jetstreamManager();
    const { config, state } = await manager.streams.info('AUDIT');
    expect(state.bytes).toBeGreaterThan(0);
    await manager.streams.update('AUDIT', { ...config, max_bytes: Math.ceil(state.bytes * 1.1) });
    expect((await finding('stream_filling')).what).toContain('stream AUDIT');
    await manager.streams.update('AUDIT', config);
    await healthy();
  });
  it('finds a consumer that is gone', async () => {
    const manager = await admin.jetstreamManager();
    await manager.consumers.delete('LEDGER', 'audit-projector');
    await finding('consumer_missing');
  });
  it('finds a stream that is gone', async () => {
    const manager = await admin.jetstreamManager();
    await manager.streams.delete('MESSAGES');
    expect((await finding('stream_missing')).what).toBe('there is no stream MESSAGES');
  });
  it('finds a principal that may do more than it should', async () => {
    const { user } = system.stack.credentials.principal(NAMESPACE, ALICE);
    const unbounded = withAdmin(conf).replace(
      new RegExp(`(user: "${user.replaceAll('.', '\\.')}"\\s+password: "[^"]+")\\s+permissions \\{[\\s\\S]*?\\n {8}\\}`),
      '$1',
    );
    expect(unbounded).not.toBe(withAdmin(conf));
    await restarted(unbounded);
    expect((await finding('rights_too_wide')).what).toMatch(/may hear sharedos\.v1\.> and speak as another principal/);
  });
});
