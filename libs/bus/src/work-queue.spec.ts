import { principalSubject } from '@sharedos/contracts';
import { RetentionPolicy } from 'nats';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bus } from './bus.ts';
import { jetStreamRights } from './js-rights.ts';
import { type TestServer, store, testServer, until } from './broker.fixture.ts';
import { OnePull } from './one-pull.ts';
import { laneConsumer } from './queue-lane.ts';
import { type QueuedDelivery, type WorkQueue, type WorkQueueOptions, workQueue } from './work-queue.ts';

const LEASE_MS = 1_000;
const PATTERN = 'sharedos.v1.*.turn.request.*.*';
const subject = principalSubject('turn.request', 'acme', { kind: 'agent', agentId: 'a.b' });

describe('a work queue', () => {
  let server: TestServer;
  let bus: Bus;
  let queues: WorkQueue[] = [];
  let taken: QueuedDelivery[] = [];
  let defects: unknown[] = [];

  const addStream = (): Promise<unknown> =>
    server.jsm.streams.add({ name: 'TURNS', subjects: [PATTERN], retention: RetentionPolicy.Workqueue });
  const work = (handle: WorkQueueOptions['handle'], more: Partial<WorkQueueOptions> = {}): WorkQueue => {
    const queue = workQueue(bus, {
      stream: 'TURNS',
      verbs: ['turn.request'],
      group: 'worker',
      concurrency: 2,
      leaseMs: LEASE_MS,
      handle: async (delivery) => {
        taken.push(delivery);
        await handle(delivery);
      },
      onDefect: (error) => defects.push(error),
      retryDelayMs: 100,
      ...more,
    });
    queues.push(queue);
    return queue;
  };
  const consumerOf = (namespaceId: string) => server.jsm.consumers.info('TURNS', laneConsumer({ namespaceId, verb: 'turn.request' }));
  const acknowledge = async (delivery: QueuedDelivery): Promise<void> => void (await delivery.ack());
  const put = async (text: string, natsSubject = subject): Promise<void> => store(server, natsSubject, text);
  const left = async (): Promise<number> => (await server.jsm.streams.info('TURNS')).state.messages;
  const texts = (): string[] => taken.map((delivery) => Buffer.from(delivery.data).toString());

  beforeAll(async () => {
    // Only what the rights say: the queue must need nothing else.
    server = await testServer({
      publish: [...jetStreamRights.workOff('TURNS', PATTERN)],
      subscribe: ['_INBOX.narrow.>', PATTERN],
    });
    bus = await server.connect({ user: 'narrow', inboxPrefix: '_INBOX.narrow' });
  });
  afterAll(() => server.end());
  beforeEach(async () => {
    taken = [];
    defects = [];
    await addStream();
  });
  afterEach(async () => {
    await Promise.all(queues.map((queue) => queue.stop({ graceMs: 0 })));
    queues = [];
    await server.jsm.streams.delete('TURNS').catch(() => {});
  });

  it('hands over each message once, with who sent it, and forgets it when it is acknowledged', async () => {
    work(acknowledge);
    await put('one');
    await until('taken', () => taken.length === 1);
    await until('gone', async () => (await left()) === 0);
    expect(taken[0]).toMatchObject({
      subject,
      sequence: 1,
      redelivered: false,
      deliveryCount: 1,
      parsed: { verb: 'turn.request', principal: { kind: 'agent', agentId: 'a.b' } },
    });
  });

  it('is alive while there is nothing to do, and not while its stream is missing', async () => {
    const queue = work(acknowledge);
    await until('alive', () => queue.alive);
    await server.jsm.streams.delete('TURNS');
    await until('noticed', () => !queue.alive);
    await addStream();
    await until('alive again', () => queue.alive);
  });

  it('runs no more handlers than it may and fetches nothing ahead of them', async () => {
    const release: (() => void)[] = [];
    const queue = work(async (delivery) => {
      await new Promise<void>((resolve) => release.push(resolve));
      await delivery.ack();
    });
    for (const text of ['1', '2', '3', '4']) await put(text);
    await until('two run', () => queue.running === 2);
    const info = await consumerOf('acme');
    expect([info.num_ack_pending, info.num_pending]).toEqual([2, 2]);
    release[0]?.();
    await until('the third is taken', () => taken.length === 3);
    await until('gone', async () => {
      for (const free of release) free();
      return (await left()) === 0;
    });
    expect(texts()).toEqual(['1', '2', '3', '4']);
  });

  it('extends the lease while a handler runs, so that a long one runs once', async () => {
    work(async (delivery) => {
      await new Promise((resolve) => setTimeout(resolve, 3 * LEASE_MS));
      await delivery.ack();
    });
    await put('long');
    await until('taken', () => taken.length === 1);
    work(acknowledge, { concurrency: 1 });
    await until('gone', async () => (await left()) === 0);
    expect(taken).toHaveLength(1);
  });

  it('delivers again what was handed back, no earlier than asked', async () => {
    const at: number[] = [];
    work(async (delivery) => {
      at.push(Date.now());
      if (delivery.redelivered) await delivery.ack();
      else delivery.nak(300);
    });
    await put('again');
    await until('gone', async () => (await left()) === 0);
    expect(taken.map((delivery) => [delivery.sequence, delivery.deliveryCount])).toEqual([
      [1, 1],
      [1, 2],
    ]);
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(250);
  });

  it('reports a handler that throws and hands its message back with a growing delay, never in a hot loop', async () => {
    const at: number[] = [];
    work(async (delivery) => {
      at.push(Date.now());
      if (delivery.deliveryCount < 4) throw new Error('broken');
      await delivery.ack();
    });
    await put('poison');
    await until('gone', async () => (await left()) === 0);
    expect(defects).toHaveLength(3);
    const [first = 0, second = 0, third = 0, fourth = 0] = at;
    expect([second - first >= 80, third - second >= 180, fourth - third >= 380]).toEqual([true, true, true]);
  });

  it('reports a handler that settles nothing, and hands its message back', async () => {
    work(async (delivery) => {
      if (delivery.redelivered) await delivery.ack();
    });
    await put('forgotten');
    await until('gone', async () => (await left()) === 0);
    expect(String(defects[0])).toMatch(/without settling/);
  });

  it('takes out for good what no handler can read', async () => {
    const terminated: string[] = [];
    work(async (delivery) => (delivery.parsed === undefined ? delivery.term('not a subject of ours') : acknowledge(delivery)), {
      onTerminated: (sequence, reason) => terminated.push(`${sequence} ${reason}`),
    });
    await put('bad', 'sharedos.v1.acme.turn.request.robot.x');
    await until('gone', async () => (await left()) === 0);
    expect(taken).toHaveLength(1);
    expect(terminated).toEqual(['1 not a subject of ours']);
  });

  it('gives the work of a process that died to another when the lease has ended', async () => {
    const dying = await server.connect({ user: 'narrow', inboxPrefix: '_INBOX.narrow' });
    workQueue(dying, {
      stream: 'TURNS',
      verbs: ['turn.request'],
      group: 'worker',
      concurrency: 1,
      leaseMs: LEASE_MS,
      handle: () => dying.close(),
      onDefect: () => {},
    });
    await put('orphan');
    await until('taken', async () => (await consumerOf('acme').catch(() => undefined))?.num_ack_pending === 1);
    work(acknowledge);
    await until('gone', async () => (await left()) === 0);
    expect(taken[0]).toMatchObject({ redelivered: true, deliveryCount: 2 });
  });

  it('says that it does not know when an acknowledgement finds no broker, and the message comes again', async () => {
    const outcomes: unknown[] = [];
    work(async (delivery) => {
      if (!delivery.redelivered) {
        await server.stop();
        await until('noticed', () => !bus.connected);
      }
      outcomes.push(await delivery.ack());
    });
    await put('twice');
    await until('asked', () => outcomes.length === 1);
    await server.start();
    await until('gone', async () => (await left().catch(() => 1)) === 0);
    expect(outcomes).toMatchObject([{ ok: false, error: { kind: 'unavailable' } }, { ok: true }]);
  });

  it('hands back at once what arrives when nobody waits for it any more', async () => {
    const queue = work(acknowledge);
    await put('first');
    await until('the consumer is there', async () => (await left()) === 0);
    await queue.stop({ graceMs: 0 });
    const pull = new OnePull(bus, 'TURNS');
    const given = pull.next(laneConsumer({ namespaceId: 'acme', verb: 'turn.request' }));
    bus.statusChanged({ kind: 'disconnected' });
    bus.statusChanged({ kind: 'connected' });
    expect(await given).toMatchObject({ kind: 'failed' });
    await put('stray');
    work(acknowledge);
    await until('gone', async () => (await left()) === 0);
    expect(texts()).toEqual(['first', 'stray']);
    await pull.stop();
  });

  it('goes on by itself after the broker was restarted', async () => {
    const queue = work(acknowledge);
    await put('before');
    await until('taken', () => taken.length === 1);
    await server.stop();
    await until('noticed', () => !queue.alive, 1_000);
    await server.start();
    await put('after');
    await until('taken', () => texts().includes('after'));
  });

  it('goes on by itself when a consumer is deleted', async () => {
    const trouble: string[] = [];
    work(acknowledge, { onTrouble: (reason) => trouble.push(reason) });
    await put('before');
    await until('taken', () => taken.length === 1);
    await server.jsm.consumers.delete('TURNS', laneConsumer({ namespaceId: 'acme', verb: 'turn.request' }));
    await put('after');
    await until('taken', () => texts().includes('after'));
    expect(trouble).toHaveLength(1);
  });

  it('takes nothing more when it stops, waits for its handlers, and aborts them after the grace', async () => {
    let aborted = false;
    const queue = work(
      (delivery) =>
        new Promise((resolve) =>
          delivery.signal.addEventListener('abort', () => {
            aborted = true;
            delivery.nak(0);
            resolve();
          }),
        ),
      { concurrency: 1 },
    );
    await put('running');
    await until('running', () => queue.running === 1);
    const stopped = queue.stop({ graceMs: 200 });
    await put('later');
    await stopped;
    expect([aborted, texts(), await left()]).toEqual([true, ['running'], 2]);
    work(acknowledge);
    await until('gone', async () => (await left()) === 0);
  });

  describe('between tenants', () => {
    const of = (namespaceId: string): string => principalSubject('turn.request', namespaceId, { kind: 'human', userId: 'u' });
    const tenants = (): (string | undefined)[] => taken.map(({ parsed }) => parsed?.namespaceId);
    const backlog = async (namespaceId: string, count: number): Promise<void> => {
      for (let sent = 0; sent < count; sent += 1) server.admin.publish(of(namespaceId), 'backlog');
      await server.admin.flush();
    };
    /** Handlers that end when they are told to, one by one. */
    const oneByOne = (concurrency: number, more: Partial<WorkQueueOptions> = {}) => {
      const release: (() => void)[] = [];
      const queue = work(
        async (delivery) => {
          await new Promise<void>((resolve) => release.push(resolve));
          await delivery.ack();
        },
        { concurrency, ...more },
      );
      const endOne = async (): Promise<void> => {
        const before = taken.length;
        await until('one runs', () => release.length > 0);
        release.shift()?.();
        await until('the next is taken', () => taken.length > before);
      };
      return { queue, endOne };
    };

    it('takes the first of another before the next of one that has ten thousand waiting', async () => {
      await backlog('large', 10_000);
      const { endOne } = oneByOne(1);
      await until('the backlog is begun', () => taken.length === 1);
      await put('the only one', of('small'));
      await until('it is known', async () => (await left()) === 10_001);
      // What runs ends; what is taken next is not of the backlog.
      await endOne();
      await endOne();
      expect(tenants().slice(0, 3)).toEqual(['large', 'small', 'large']);
    });

    it('takes from each in turn, and from no third less for what two have waiting', async () => {
      await Promise.all(['a', 'b', 'c'].map((namespaceId) => backlog(namespaceId, 20)));
      const { endOne } = oneByOne(1);
      await until('begun', () => taken.length === 1);
      for (let count = 0; count < 8; count += 1) await endOne();
      const order = tenants();
      for (let first = 0; first < 9; first += 3) expect(new Set(order.slice(first, first + 3))).toEqual(new Set(['a', 'b', 'c']));
    });

    it('lets one that is alone have every handler', async () => {
      await backlog('alone', 8);
      const { queue } = oneByOne(4);
      await until('all handlers work', () => queue.running === 4);
      expect(tenants()).toEqual(['alone', 'alone', 'alone', 'alone']);
    });

    it('has no more of one in hand than its limit, whoever works, and goes on with the others', async () => {
      await backlog('limited', 10);
      const limits = { runningMax: async (namespaceId: string) => (namespaceId === 'limited' ? 2 : undefined) };
      const first = oneByOne(4, limits);
      const second = oneByOne(4, limits);
      await until('two run', () => taken.length === 2);
      await backlog('free', 6);
      await until('the other six run', () => taken.length === 8);
      expect(tenants().filter((tenant) => tenant === 'limited')).toHaveLength(2);
      expect(first.queue.running + second.queue.running).toBe(8);
    });
  });
});
