import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Bus, connectBus, serviceInboxPrefix } from '@sharedos/bus';
import { type NatsCluster, type NatsNode, startNatsCluster, waitFor } from '@sharedos/testing';
import { type NatsConnection, connect } from 'nats';
import { appendSurely, barrierOf, eventsOf, listen, newStream, noteOf } from './contract-words.ts';
import type { EventStore } from './event-store.ts';
import { jetStreamEventStore } from './jetstream.ts';
import { logStream } from './log-broker.fixture.ts';

const READY_MS = 60_000;
/** What is looked at here are the answers, which the servers of every version give alike; that old ones lose records is their own matter. */
const ANY_VERSION = '0.0.0';
const ROUNDS = 20;

describe('the log on a cluster of three', () => {
  let cluster: NatsCluster;
  let admin: NatsConnection;
  const ends: (() => Promise<unknown>)[] = [];

  const openAt = async (node: NatsNode): Promise<EventStore> => {
    const bus: Bus = await connectBus({
      servers: node.url,
      user: 'test',
      pass: 'test',
      name: 'test',
      inboxPrefix: serviceInboxPrefix('authorizer'),
    });
    const opened = await jetStreamEventStore({ bus, timeoutMs: 2_000, heartbeatMs: 200, oldestWithCopies: ANY_VERSION });
    if (!opened.ok) throw new Error(opened.error.reason);
    ends.push(async () => {
      await opened.value.close();
      await bus.close();
    });
    return opened.value;
  };

  beforeAll(async () => {
    cluster = await startNatsCluster(({ name, host, port, storeDir }) => {
      const jetstream = { store_dir: storeDir, max_memory_store: 1 << 26, max_file_store: 1 << 29 };
      return `server_name: ${name}\nlisten: "${host}:${port}"\njetstream: ${JSON.stringify(jetstream)}`;
    });
    admin = await connect({ servers: cluster.nodes.map(({ url }) => url), maxReconnectAttempts: -1, ignoreClusterUpdates: true });
    await waitFor(
      'a cluster that takes a stream',
      async () => {
        const { streams } = await admin.jetstreamManager({ checkAPI: false });
        return streams.add(logStream({ num_replicas: 3 })).then(
          () => true,
          () => false,
        );
      },
      READY_MS,
    );
  });
  afterAll(async () => {
    for (const end of ends) await end();
    await admin?.close();
    await cluster?.end();
  });

  const leader = (): Promise<NatsNode> =>
    waitFor(
      'a leader of the stream',
      async () => {
        const { streams } = await admin.jetstreamManager({ checkAPI: false });
        const info = await streams.info('LOG').catch(() => undefined);
        return cluster.nodes.find(({ name }) => name === info?.cluster?.leader);
      },
      READY_MS,
    );

  it('is refused on servers that are known to lose records of it', async () => {
    const bus = await connectBus({
      servers: (cluster.nodes[0] as NatsNode).url,
      user: 'any',
      pass: 'any',
      name: 'old',
      inboxPrefix: '_INBOX',
    });
    const opened = await jetStreamEventStore({ bus, oldestWithCopies: '99.0.0' });
    expect(opened).toMatchObject({
      ok: false,
      error: { reason: expect.stringMatching(/may lose records of stream LOG.*use 99\.0\.0 or later/) },
    });
    await bus.close();
  });

  it('takes a barrier that a majority has stored, and hears it', async () => {
    const [one, two] = [await openAt(cluster.nodes[0] as NatsNode), await openAt(cluster.nodes[1] as NatsNode)];
    const heard = listen(two, 0);
    const stream = newStream();
    const { position } = await appendSurely(one, stream, 0, eventsOf('a'));
    const barrier = await barrierOf(two);
    expect(barrier).toBeGreaterThan(position);
    await heard.untilReached(barrier);
    await heard.close();
    expect(heard.told.events.map(noteOf)).toEqual(['a']);
    expect(heard.told.parked).toEqual([]);
  });

  it('never answers a barrier below what was acknowledged elsewhere, with the leader isolated', async () => {
    const isolated = await leader();
    const stale = await openAt(isolated);
    await barrierOf(stale);
    const others = await Promise.all(cluster.nodes.filter((node) => node !== isolated).map(openAt));
    cluster.isolate(isolated);
    let answered = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const writer = others[round % others.length] as EventStore;
      let { position } = { position: 0 };
      await waitFor(
        'an append on the side of the majority',
        async () => {
          const appended = await writer.append(newStream(), 0, eventsOf(`${round}`));
          if (appended.ok) ({ position } = appended.value);
          return appended.ok;
        },
        READY_MS,
      );
      const barrier = await stale.barrier(300);
      if (!barrier.ok) continue;
      answered += 1;
      expect(barrier.value).toBeGreaterThan(position);
    }
    // Cut off from the majority it cannot know, and says so.
    expect(answered).toBe(0);
    cluster.join();
    const end = await barrierOf(others[0] as EventStore);
    await waitFor(
      'the isolated one to be back',
      async () => {
        const barrier = await stale.barrier(1_000);
        return barrier.ok && barrier.value > end;
      },
      READY_MS,
    );
  });
});
