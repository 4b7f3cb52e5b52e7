// The compose files, started: `npm run test:containers`. Last line: N passed, N failed. SHAREDOS_IMAGES=pulled takes the images that the
// files name; without it, stand-ins are built from the packages of the system, and "kept" takes those of an earlier run.
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { type SharedOS, newTurn } from '@sharedos/client';
import { type Engine, findEngine } from './engine.ts';
import { type Images, buildStandIns, keptStandIns } from './stand-ins.ts';
import { shell } from './shell.ts';
import { ALICE, type ContainerSystem, SCOUT, startContainers } from './system.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const say = (line: string): void => void process.stdout.write(`${line}\n`);
let [passed, failed] = [0, 0];

const check = async (what: string, run: () => Promise<void>): Promise<void> => {
  try {
    await run();
    passed += 1;
    say(`✓ ${what}`);
  } catch (error) {
    failed += 1;
    say(`✗ ${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
};

type NewCall = NonNullable<Parameters<typeof newTurn>[0]['calls']>[number];

const turn = async (alice: SharedOS, ...calls: readonly NewCall[]): Promise<readonly string[]> => {
  const submitted = await alice.turns.submit(newTurn({ from: ALICE, agent: SCOUT, purpose: 'testing', calls }));
  assert(submitted.ok, `not queued: ${JSON.stringify(submitted)}`);
  const answer = await submitted.value.result;
  assert(answer.ok, `not answered: ${JSON.stringify(answer)}`);
  const { result } = answer.value;
  assert(result.status === 'succeeded', JSON.stringify(result));
  return (result.output as { readonly calls: readonly { readonly status: string }[] }).calls.map(({ status }) => status);
};

const grants = async (alice: SharedOS): Promise<void> => {
  const issue = async (id: string, namespace: string, path: string[], actions: string[]): Promise<void> => {
    const capabilities = [{ resource: { namespace, path }, actions, scope: 'descendants' as const }];
    const issued = await alice.grants.issue({ id, subject: SCOUT, capabilities });
    assert(issued.ok, JSON.stringify(issued));
  };
  await issue('run-scout', 'sharedos.execution', ['agent', 'scout'], ['invoke']);
  await issue('notes', 'files', ['notes'], ['read', 'create']);
};

const write = { tool: 'files.create', arguments: { path: ['notes', 'a.md'], content: 'a' } };
const readNote = { tool: 'files.read', arguments: { path: ['notes', 'a.md'] } };
const readDiary = { tool: 'files.read', arguments: { path: ['private', 'diary.md'] } };

const oneMachine = async (engine: Engine, images: Images): Promise<void> => {
  const scale = { 'tool-executor': 4, authorizer: 4 };
  say('starting the system, with four executors and four authorizers …');
  const system = await startContainers({ root, engine, images, files: ['docker-compose.yml'], cluster: [], scale });
  try {
    await check('every process is there and may be relied on', () =>
      system.ready({ ...scale, 'messaging-router': 1, 'audit-projector': 1 }),
    );
    const alice = await system.client(ALICE);
    await check('a turn does what was granted, and nothing else', async () => {
      await grants(alice);
      assert.deepEqual(await turn(alice, write, readNote, readDiary), ['succeeded', 'succeeded', 'denied']);
    });
    await check('a revocation counts', async () => {
      const revoked = await alice.grants.revoke('notes');
      assert(revoked.ok, JSON.stringify(revoked));
      assert.deepEqual(await turn(alice, readNote), ['denied']);
    });
    await check('nobody in a container is root, and none can write what it runs', () => contained(system, engine));
    await check('the containers hold no secret in their environment', async () => {
      for (const id of await idsOf(system)) {
        const env = await shell('docker', ['inspect', '-f', '{{json .Config.Env}}', id], { env: engine.env });
        assert.doesNotMatch(env, /\bS[A-Z][A-Z2-7]{56}\b|redis:\/\/:/);
      }
    });
  } finally {
    await system.end();
  }
};

const idsOf = async (system: ContainerSystem): Promise<readonly string[]> =>
  (await system.compose('ps', '-q')).split('\n').filter((line) => /^[0-9a-f]{64}$/.test(line));

const contained = async (system: ContainerSystem, engine: Engine): Promise<void> => {
  const ids = await idsOf(system);
  assert(ids.length > 8, `${ids.length} containers`);
  for (const id of ids) {
    const facts = await shell('docker', ['inspect', '-f', '{{.Config.User}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.Memory}}', id], {
      env: engine.env,
    });
    assert.match(facts, /^\d{4,5}:\d{4,5} true [1-9]\d+\s*$/);
  }
};

const cluster = async (engine: Engine, images: Images): Promise<void> => {
  const names = ['nats', 'nats-2', 'nats-3'];
  say('starting the system over three brokers …');
  const files = ['docker-compose.yml', 'docker-compose.cluster.yml'];
  const system = await startContainers({ root, engine, images, files, cluster: names, scale: {} });
  try {
    await system.ready({ authorizer: 1, 'tool-executor': 1, 'messaging-router': 1, 'audit-projector': 1 });
    const alice = await system.client(ALICE);
    await check('over three brokers a turn does what was granted', async () => {
      await grants(alice);
      assert.deepEqual(await turn(alice, write, readDiary), ['succeeded', 'denied']);
    });
    if (images['SHAREDOS_STREAM_REPLICAS'] === '1') {
      say('not run: one of three brokers killed; the broker of these images is too old to keep copies of streams');
      return;
    }
    await check('and goes on with one of them killed', async () => {
      await system.compose('kill', 'nats-2');
      await system.ready({ authorizer: 1, 'tool-executor': 1 });
      assert.deepEqual(await turn(alice, readNote, readDiary), ['succeeded', 'denied']);
    });
  } finally {
    await system.end();
  }
};

const imagesOf = async ({ env }: Engine): Promise<Images> => {
  switch (process.env['SHAREDOS_IMAGES']) {
    case 'pulled':
      say('images: those that the files name');
      await shell('docker', ['build', '-t', 'sharedos:local', '-f', `${root}deploy/Dockerfile`, root], { env });
      return {};
    case 'kept':
      say('images: stand-ins that an earlier run built');
      return keptStandIns();
    default:
      say('images: stand-ins of Debian packages, and the double of EventStoreDB');
      return buildStandIns(root, env, say);
  }
};

const engine = await findEngine(say);
if (typeof engine === 'string') {
  say(`containers: ${engine}`);
  failed += 1;
} else {
  try {
    say(`containers: the engine ${engine.which}`);
    const images = await imagesOf(engine);
    await check('on one machine', () => oneMachine(engine, images));
    await check('over three brokers', () => cluster(engine, images));
  } finally {
    await engine.stop();
  }
}
say(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
