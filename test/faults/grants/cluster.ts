import { PROVISIONER, brokerAccounts, connectBus, provision, renderNatsConfig, streamInfo } from '@sharedos/bus';
import type { ServiceName } from '@sharedos/contracts';
import { type LocalStack, type NatsCluster, type NatsNode, startLocalStack, startNatsCluster, waitFor } from '@sharedos/testing';
import { ALICE, NAMESPACE, PRINCIPALS } from '../../support/test-system.ts';
import { AnswerCounts, startAuthorizer } from './authorizers.ts';
import { Blows, LONG } from './blows.ts';
import { openLogOf } from './log-facts.ts';
import { type Scene, type SceneOptions, closeAll, wayInto } from './scene.ts';

const DEADLINE_MS = 2_000;
const ANSWER_MS = 4_000;
const READY_MS = 90_000;
const STREAM_MS = 1_000;
const ISOLATED_LEAST_MS = 2_000;
const ISOLATED_MOST_MS = 8_000;
const ISOLATIONS = 2;

/**
 * Three brokers as one cluster that keeps each stream three times, an authorizer and players at each, and the leader of the log cut off
 * from the other two again and again: it has not been told, its authorizer and its players still reach it.
 */
export const cluster = async ({ store, seed, without, onProgress, onLine }: SceneOptions): Promise<Scene> => {
  if (store !== 'jetstream') throw new Error('the cluster is one of NATS, and the log in its JetStream');
  const closers: (() => Promise<unknown>)[] = [];
  try {
    // Of this stack only Redis and the passwords are used.
    const stack = await startLocalStack({ principals: PRINCIPALS, roots: { [NAMESPACE]: [ALICE] }, eventStore: store, onProgress });
    closers.push(() => stack.stop());
    onProgress('starting three brokers …');
    const brokers = await startBrokers(stack);
    closers.push(brokers.end);
    const [first] = brokers.nodes as readonly [NatsNode];
    const { user, password, inboxPrefix } = stack.credentials.service('authorizer');
    const servers = brokers.nodes.map(({ url }) => url);
    const bus = await connectBus({ servers, user, pass: password, name: 'faults', inboxPrefix });
    closers.push(() => bus.close());
    /** Whom the majority believes to lead; a broker that is cut off does not know better. */
    const leader = (): Promise<NatsNode> =>
      waitFor(
        'a leader of the log',
        async () => {
          const info = await streamInfo(bus, 'LOG', { timeoutMs: STREAM_MS });
          return info.ok ? brokers.nodes.find(({ name }) => name === info.value.cluster?.leader) : undefined;
        },
        READY_MS,
      );

    const counts = new AnswerCounts();
    onProgress('starting an authorizer at each …');
    await Promise.all(
      brokers.nodes.map(({ name, url }) =>
        startAuthorizer(
          stack,
          counts,
          seed,
          { clockOffsetMs: 0, lagMs: 0, deadlineMs: DEADLINE_MS, without },
          { name, ways: { fronts: [], env: { SHAREDOS_NATS_URL: url }, close: async () => undefined }, onLine },
        ),
      ),
    );
    const ways = await Promise.all(brokers.nodes.map(({ url }) => wayInto(stack, url)));
    closers.push(...ways.map(({ close }) => close));

    const blows = new Blows();
    blows.repeat(
      seed + 1,
      async (lots) => {
        const isolated = await leader();
        onProgress(`the leader of the log, ${isolated.name}, is cut off …`);
        brokers.isolate(isolated);
        await blows.lasting(ISOLATED_LEAST_MS + lots.below(ISOLATED_MOST_MS - ISOLATED_LEAST_MS));
        brokers.join();
        return 'leader isolated';
      },
      LONG,
    );

    const names = brokers.nodes.map(({ name }) => name);
    const isolations = (): number => blows.counted['leader isolated'] ?? 0;
    const idle = (): readonly string[] => names.filter((name) => counts.of(name).opened === 0);
    return {
      log: 'JetStream on three brokers',
      ways,
      answerMs: ANSWER_MS,
      isEnough: () => isolations() >= ISOLATIONS && idle().length === 0,
      calm: () => blows.end(),
      blows: () => blows.counted,
      answers: () => Object.fromEntries(names.map((name) => [name, counts.of(name)])),
      findings: () => [
        {
          rule: 'the leader was cut off, and each authorizer opened turns',
          contradictions: [...(isolations() === 0 ? ['it never was'] : []), ...idle().map((name) => `the one at ${name} opened none`)],
        },
      ],
      openLog: () => openLogOf(stack, first.url),
      close: async () => {
        await blows.end().catch(() => undefined);
        await closeAll(closers);
      },
    };
  } catch (error) {
    await closeAll(closers);
    throw error;
  }
};

/** A cluster with the accounts, rights and streams of the product, and the passwords of a stack. */
const startBrokers = async ({ credentials }: LocalStack): Promise<NatsCluster> => {
  const accounts = brokerAccounts(PRINCIPALS, (user) => {
    if (typeof user !== 'string') return credentials.principal(user.namespaceId, user.principal).password;
    return user === PROVISIONER ? credentials.provisioner.password : credentials.service(user as ServiceName).password;
  });
  const brokers = await startNatsCluster((listener) => renderNatsConfig(listener, accounts));
  try {
    await waitFor(
      'a cluster that takes the streams',
      async () => {
        const { url } = brokers.nodes[0] as NatsNode;
        const made = await provision({ servers: url, user: PROVISIONER, pass: credentials.provisioner.password }, { replicas: 3 });
        if (!made.ok && made.error.kind === 'refused') throw new Error(`the brokers refused ${made.error.of}: ${made.error.why}`);
        return made.ok;
      },
      READY_MS,
    );
    return brokers;
  } catch (error) {
    await brokers.end();
    throw error;
  }
};
