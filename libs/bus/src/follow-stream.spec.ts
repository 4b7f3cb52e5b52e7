import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Bus } from './bus.ts';
import { type Follow, type FollowOptions, followStream } from './follow-stream.ts';
import { jetStreamRights } from './js-rights.ts';
import { type TestServer, addStream, store, testServer, until } from './broker.fixture.ts';
import type { StoredMessage } from './stored-message.ts';

describe('following a stream', () => {
  let server: TestServer;
  let bus: Bus;
  let feeds: Follow[] = [];
  let seen: StoredMessage[] = [];
  let alive: boolean[] = [];
  let trouble: string[] = [];

  const follow = (more: Partial<FollowOptions> = {}): Follow => {
    const feed = followStream(bus, {
      stream: 'LOG',
      fromSequence: 1,
      heartbeatMs: 100,
      onMessage: (message) => void seen.push(message),
      onAlive: (now) => alive.push(now),
      onTrouble: (reason) => trouble.push(reason),
      onDefect: (error) => trouble.push(String(error)),
      ...more,
    });
    feeds.push(feed);
    return feed;
  };
  const put = async (count: number, natsSubject = 'log.a'): Promise<void> => {
    for (let each = 0; each < count; each += 1) await store(server, natsSubject, String(each));
  };
  const sequences = (): number[] => seen.map((message) => message.sequence);
  const upTo = (last: number, first = 1): number[] => Array.from({ length: last - first + 1 }, (_, index) => first + index);

  beforeAll(async () => {
    server = await testServer({
      publish: [...jetStreamRights.follow('LOG'), ...jetStreamRights.follow('LOG', 'log.*')],
      subscribe: ['_INBOX.narrow.>'],
    });
    bus = await server.connect({ user: 'narrow', inboxPrefix: '_INBOX.narrow' });
  });
  afterAll(() => server.end());
  beforeEach(async () => {
    [seen, alive, trouble] = [[], [], []];
    await addStream(server, 'LOG');
  });
  afterEach(async () => {
    await Promise.all(feeds.map((feed) => feed.stop()));
    feeds = [];
    await server.jsm.streams.delete('LOG').catch(() => {});
  });

  it('hands over history and then what comes live, in order', async () => {
    await put(20);
    const feed = follow({ batch: 8 });
    await until('history', () => seen.length === 20);
    await put(20);
    await until('live', () => seen.length === 40);
    expect(sequences()).toEqual(upTo(40));
    expect([feed.lastSequence, feed.alive, alive, trouble]).toEqual([40, true, [true], []]);
    expect(Math.abs((seen[0]?.storedAt ?? 0) - Date.now())).toBeLessThan(60_000);
  });

  it('begins where it is told, at a place not yet written too', async () => {
    await put(3);
    follow({ fromSequence: 3 });
    const ahead = follow({ fromSequence: 4 });
    await until('the last', () => sequences().includes(3));
    expect(ahead.lastSequence).toBe(3);
    await put(1);
    await until('both', () => seen.length === 3);
    expect(sequences()).toEqual([3, 4, 4]);
  });

  it('hands over what its filter covers and nothing else', async () => {
    await put(1, 'log.a.deep');
    await put(2, 'log.b');
    follow({ filterSubject: 'log.*' });
    await until('both', () => seen.length === 2);
    expect(sequences()).toEqual([2, 3]);
  });

  it('is alive on an empty stream, and stays so while nothing comes', async () => {
    const feed = follow();
    await until('alive', () => feed.alive);
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect([feed.alive, alive, trouble]).toEqual([true, [true], []]);
  });

  it('waits for a slow reader without losing order, and hands over one message at a time', async () => {
    await put(30);
    let atOnce = 0;
    let mostAtOnce = 0;
    follow({
      batch: 8,
      onMessage: async (message) => {
        mostAtOnce = Math.max(mostAtOnce, ++atOnce);
        await new Promise((resolve) => setTimeout(resolve, 2));
        seen.push(message);
        atOnce -= 1;
      },
    });
    await until('all', () => seen.length === 30);
    expect([sequences(), mostAtOnce]).toEqual([upTo(30), 1]);
  });

  it('is not alive while the broker is down, and resumes after the last message when it is back', async () => {
    await put(5);
    const feed = follow();
    await until('history', () => seen.length === 5);
    await server.stop();
    await until('not alive', () => !feed.alive);
    await server.start();
    await put(1);
    await until('resumed', () => feed.alive && seen.length >= 6);
    expect(sequences()).toEqual(upTo(seen.length));
    expect([alive[0], alive.includes(false), alive.at(-1)]).toEqual([true, true, true]);
  });

  it('is not alive after two missed beats of a broker that says nothing, though the connection stands', async () => {
    const feed = follow();
    await until('alive', () => feed.alive);
    const began = performance.now();
    server.pause();
    await until('not alive', () => !feed.alive);
    const took = performance.now() - began;
    server.resume();
    expect(bus.connected).toBe(true);
    expect(took).toBeLessThan(600);
    await until('alive again', () => feed.alive);
    await put(1);
    await until('resumed', () => seen.length === 1);
  });

  it('makes another consumer when its own is gone', async () => {
    const feed = follow();
    await put(2);
    await until('seen', () => seen.length === 2);
    for await (const consumer of server.jsm.consumers.list('LOG')) await server.jsm.consumers.delete('LOG', consumer.name);
    await put(2);
    await until('resumed', () => seen.length === 4 && feed.alive);
    expect(sequences()).toEqual(upTo(4));
  });

  it('is not alive when the stream ends before what was seen: something was lost', async () => {
    await put(3);
    const feed = follow();
    await until('seen', () => seen.length === 3);
    await server.jsm.streams.delete('LOG');
    await addStream(server, 'LOG');
    await put(1);
    await until('noticed', () => trouble.some((reason) => reason.includes('ends at 1, before 3')));
    expect([feed.alive, sequences()]).toEqual([false, [1, 2, 3]]);
  });

  it('ends at a reader that throws, and skips nothing', async () => {
    await put(3);
    const feed = follow({
      onMessage: (message) => {
        if (message.sequence === 2) throw new Error('cannot be read');
        seen.push(message);
      },
    });
    await until('reported', () => trouble.includes('Error: cannot be read'));
    await put(1);
    expect([feed.alive, feed.lastSequence, sequences()]).toEqual([false, 1, [1]]);
  });

  it('hands over nothing once it was stopped', async () => {
    const feed = follow();
    await until('alive', () => feed.alive);
    await feed.stop();
    await put(1);
    expect([seen, feed.alive]).toEqual([[], false]);
  });
});
