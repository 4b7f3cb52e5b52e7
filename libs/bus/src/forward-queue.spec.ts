import { AckPolicy } from 'nats';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type TestServer, addStream, store, testServer, until } from './broker.fixture.ts';
import type { Bus } from './bus.ts';
import { type ForwardDelivery, type ForwardQueueOptions, forwardQueue } from './forward-queue.ts';
import { jetStreamRights } from './js-rights.ts';
import type { WorkQueue } from './work-queue.ts';

const ACK_WAIT_MS = 1_000;

describe('a forwarding queue', () => {
  let server: TestServer;
  let bus: Bus;
  let queues: WorkQueue[] = [];
  let seen: string[] = [];
  let defects: unknown[] = [];

  const forward = (handle: ForwardQueueOptions['handle'] = async (delivery) => delivery.done(), concurrency = 4): WorkQueue => {
    const queue = forwardQueue(bus, {
      stream: 'OUT',
      consumer: 'forwarder',
      concurrency,
      handle: async (delivery) => {
        seen.push(textOf(delivery));
        await handle(delivery);
      },
      onDefect: (error) => defects.push(error),
    });
    queues.push(queue);
    return queue;
  };
  const textOf = ({ data }: ForwardDelivery): string => Buffer.from(data).toString();
  const put = async (...texts: readonly string[]): Promise<void> => {
    for (const text of texts) await store(server, 'out.a', text);
  };
  const unsettled = async (): Promise<number> => {
    const { num_pending, num_ack_pending } = await server.jsm.consumers.info('OUT', 'forwarder');
    return num_pending + num_ack_pending;
  };
  const numbered = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `message ${index}`);

  beforeAll(async () => {
    // Only what the rights say: the queue must need nothing else.
    server = await testServer({ publish: [...jetStreamRights.consume('OUT', 'forwarder')], subscribe: ['_INBOX.narrow.>'] });
    bus = await server.connect({ user: 'narrow', inboxPrefix: '_INBOX.narrow' });
  });
  afterAll(() => server.end());
  beforeEach(async () => {
    seen = [];
    defects = [];
    await addStream(server, 'OUT');
    await server.jsm.consumers.add('OUT', {
      durable_name: 'forwarder',
      ack_policy: AckPolicy.Explicit,
      ack_wait: ACK_WAIT_MS * 1_000_000,
      max_deliver: -1,
    });
  });
  afterEach(async () => {
    await Promise.all(queues.map((queue) => queue.stop({ graceMs: 1_000 })));
    queues = [];
    await server.jsm.streams.delete('OUT');
  });

  it('hands over every message once, more of them than it asks for at a time, and settles them', async () => {
    const texts = numbered(50);
    await put(...texts);
    const queue = forward();
    await until('all are settled', async () => (await unsettled()) === 0);
    expect(seen).toEqual(texts);
    await put('later');
    await until('the later one too', () => seen.length === 51);
    expect(queue.alive).toBe(true);
    expect(defects).toEqual([]);
  });

  it('has no more handlers at work than it may, and goes on as each ends', async () => {
    const free: (() => void)[] = [];
    let atWork = 0;
    let most = 0;
    forward(async (delivery) => {
      most = Math.max(most, ++atWork);
      await new Promise<void>((resolve) => free.push(resolve));
      atWork -= 1;
      delivery.done();
    });
    await put(...numbered(10));
    for (let done = 0; done < 10; done += 1) {
      await until(`handler ${done} is at work`, () => free.length > done);
      free[done]?.();
    }
    await until('all are settled', async () => (await unsettled()) === 0);
    expect(most).toBe(4);
    expect(seen).toHaveLength(10);
  });

  it('hands over again what was handed back, and what its handler left or broke on', async () => {
    const once = new Set<string>();
    forward(async (delivery) => {
      const text = textOf(delivery);
      if (once.has(text)) return delivery.done();
      once.add(text);
      if (text === 'refused') return delivery.nak(10);
      if (text === 'broken') throw new Error('broken');
    });
    await put('refused', 'broken', 'left');
    await until('all are settled', async () => (await unsettled()) === 0);
    expect(seen.toSorted()).toEqual(['broken', 'broken', 'left', 'left', 'refused', 'refused']);
    expect(defects).toHaveLength(2);
  });

  it('shares the consumer with other replicas', async () => {
    const by: string[] = [];
    forward(async (delivery) => (by.push('one'), delivery.done()), 1);
    forward(async (delivery) => (by.push('other'), delivery.done()), 1);
    await put(...numbered(40));
    await until('all are settled', async () => (await unsettled()) === 0);
    expect(new Set(seen).size).toBe(40);
    expect(new Set(by)).toEqual(new Set(['one', 'other']));
  });

  it('gives back what it fetched and had not begun when it stops, without waiting for the lease to end', async () => {
    const busy = Promise.withResolvers<void>();
    const queue = forward(async (delivery) => {
      await busy.promise;
      delivery.done();
    }, 2);
    await put(...numbered(3));
    await until('two handlers are at work', () => queue.running === 2);
    const stopped = queue.stop({ graceMs: 5_000 });
    busy.resolve();
    await stopped;
    expect(new Set(seen).size).toBe(2);
    forward();
    await until('the third is settled', async () => (await unsettled()) === 0);
    expect(seen.toSorted()).toEqual([...numbered(3)]);
  });

  it('comes back by itself after the broker was away', async () => {
    const queue = forward();
    await put('before');
    await until('the first is settled', async () => (await unsettled()) === 0);
    await server.stop();
    await until('it says so', () => !queue.alive);
    await server.start();
    await put('after');
    await until('the other is settled', async () => seen.includes('after') && (await unsettled()) === 0);
    await until('it is alive', () => queue.alive);
  });
});
