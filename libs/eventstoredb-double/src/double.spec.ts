import {
  type AllStreamResolvedEvent,
  BACKWARDS,
  END,
  ErrorType,
  EventStoreDBClient,
  START,
  binaryEvent,
  jsonEvent,
  streamNameFilter,
} from '@eventstore/db-client';
import { selfSigned } from '@sharedos/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { type DoubleOptions, type EventStoreDouble, startEventStoreDouble } from './index.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
const start = async (options: DoubleOptions = {}): Promise<{ double: EventStoreDouble; client: EventStoreDBClient }> => {
  const double = await startEventStoreDouble(options);
  ends.push(() => double.close());
  const client = EventStoreDBClient.connectionString(double.connectionString);
  ends.push(() => client.dispose());
  return { double, client };
};
const collect = async <T>(events: AsyncIterable<T>): Promise<T[]> => {
  const all: T[] = [];
  for await (const event of events) all.push(event);
  return all;
};
const someEvent = (text = 'x') => binaryEvent({ type: 'Some', data: Buffer.from(text) });
const typeOf = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'done',
    (error: { type: unknown }) => error.type,
  );

// With credentials in the call the client sends `Append`; without, and where the server knows it, `BatchAppend`.
describe.each([
  ['BatchAppend', {}],
  ['Append', { credentials: { username: 'u', password: 'p' } }],
])('a client that appends with %s', (_name, how) => {
  it('is told revision and position, and reads its events back in both directions', async () => {
    const { client } = await start();
    const first = await client.appendToStream('s', [someEvent('a'), someEvent('b')], { expectedRevision: 'no_stream', ...how });
    const second = await client.appendToStream('s', someEvent('c'), { expectedRevision: 1n, ...how });
    expect([first.nextExpectedRevision, second.nextExpectedRevision]).toEqual([1n, 2n]);
    const forwards = await collect(client.readStream('s'));
    expect(forwards.map(({ event }) => Buffer.from(event?.data as Uint8Array).toString())).toEqual(['a', 'b', 'c']);
    expect(forwards[1]?.event?.position?.commit).toBe(first.position?.commit);
    expect(forwards[2]?.event?.position?.commit).toBe(second.position?.commit);
    const backwards = await collect(client.readStream('s', { direction: BACKWARDS, fromRevision: END, maxCount: 2 }));
    expect(backwards.map(({ event }) => event?.revision)).toEqual([2n, 1n]);
  });

  it('is told what a stream held when it expected something else', async () => {
    const { client } = await start();
    await client.appendToStream('s', someEvent(), how);
    for (const expectedRevision of ['no_stream', 7n] as const) {
      const refused = client.appendToStream('s', someEvent(), { expectedRevision, ...how });
      await expect(refused).rejects.toMatchObject({ type: ErrorType.WRONG_EXPECTED_VERSION, actualVersion: 0n });
    }
    expect(await typeOf(client.appendToStream('none', someEvent(), { expectedRevision: 'stream_exists', ...how }))).toBe(
      ErrorType.WRONG_EXPECTED_VERSION,
    );
  });

  it('gets the answer of then for the same events again, and a conflict for some of them', async () => {
    const { client, double } = await start();
    const events = [someEvent('a'), someEvent('b')];
    const first = await client.appendToStream('s', events, { expectedRevision: 'no_stream', ...how });
    await client.appendToStream('s', someEvent('c'), how);
    const stored = double.events().length;
    for (const expectedRevision of ['no_stream', 'any'] as const)
      expect(await client.appendToStream('s', events, { expectedRevision, ...how })).toEqual(first);
    const some = client.appendToStream('s', [events[0] as (typeof events)[number], someEvent()], { expectedRevision: 'no_stream', ...how });
    expect(await typeOf(some)).toBe(ErrorType.WRONG_EXPECTED_VERSION);
    expect(double.events()).toHaveLength(stored);
  });

  it('is refused an append that is too large, and stores nothing of it', async () => {
    const { client } = await start({ appendBytesMax: 1_000 });
    expect(await typeOf(client.appendToStream('s', [someEvent(), someEvent('y'.repeat(2_000))], how))).toBe(
      ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED,
    );
    expect(await typeOf(collect(client.readStream('s')))).toBe(ErrorType.STREAM_NOT_FOUND);
  });

  it('may begin a deleted stream anew, with numbers that go on, and a tombstoned one never', async () => {
    const { client } = await start();
    await client.appendToStream('s', [someEvent(), someEvent()], how);
    await client.deleteStream('s');
    expect(await typeOf(collect(client.readStream('s')))).toBe(ErrorType.STREAM_NOT_FOUND);
    expect((await client.appendToStream('s', someEvent(), { expectedRevision: 'no_stream', ...how })).nextExpectedRevision).toBe(2n);
    await client.tombstoneStream('s');
    expect(await typeOf(client.appendToStream('s', someEvent(), how))).toBe(ErrorType.STREAM_DELETED);
  });
});

describe('the log of the double', () => {
  it('has positions with gaps, and begins with an event of the server', async () => {
    const { client } = await start({ foreignEvery: 1 });
    for (const text of ['a', 'bb']) await client.appendToStream('s', someEvent(text));
    const all = await collect(client.readAll());
    expect(all[0]?.event?.type).toMatch(/^\$/);
    const positions = all.map(({ event }) => event?.position?.commit ?? 0n);
    expect(positions).toEqual(positions.toSorted((a, b) => Number(a - b)));
    expect(positions.every((position, index) => index === 0 || position - (positions[index - 1] ?? 0n) > 1n)).toBe(true);
    expect(new Set(all.map(({ event }) => event?.streamId)).size).toBeGreaterThan(2);
    const from = all[2]?.event?.position;
    expect(from).toBeDefined();
    if (from !== undefined) expect(await collect(client.readAll({ fromPosition: from }))).toHaveLength(all.length - 2);
  });

  it('cannot be read from where no event begins', async () => {
    const { client } = await start();
    const { position } = await client.appendToStream('s', someEvent());
    await client.appendToStream('s', someEvent());
    const between = (position?.commit ?? 0n) + 1n;
    expect(await typeOf(collect(client.readAll({ fromPosition: { commit: between, prepare: between } })))).not.toBe('done');
  });

  it('heeds a limit on the number of events of a stream', async () => {
    const { client } = await start();
    await client.setStreamMetadata('s', { maxCount: 1 });
    for (const text of ['a', 'b', 'c']) await client.appendToStream('s', someEvent(text));
    expect((await collect(client.readStream('s'))).map(({ event }) => event?.revision)).toEqual([2n]);
  });

  it('sends a filtered subscription what is there, that it has caught up, and then what comes, with checkpoints between', async () => {
    const { client, double } = await start();
    await client.appendToStream('ours-1', jsonEvent({ type: 'Some', data: { a: 1 } }));
    for (let count = 0; count < 10; count += 1) double.append('theirs', [{}]);
    const heard: string[] = [];
    const untilHeard = Promise.withResolvers<void>();
    const subscription = client.subscribeToAll({
      fromPosition: START,
      filter: streamNameFilter({ prefixes: ['ours-'], maxSearchWindow: 4, checkpointReached: () => void heard.push('checkpoint') }),
    });
    subscription.on('caughtUp', () => {
      heard.push('caught up');
      void client.appendToStream('ours-2', someEvent());
    });
    subscription.on('data', ({ event }: AllStreamResolvedEvent) => {
      heard.push(event?.streamId ?? '');
      if (event?.streamId === 'ours-2') untilHeard.resolve();
    });
    await untilHeard.promise;
    await subscription.unsubscribe();
    expect(heard.filter((each) => each !== 'checkpoint')).toEqual(['ours-1', 'caught up', 'ours-2']);
    expect(heard.filter((each) => each === 'checkpoint').length).toBeGreaterThan(1);
  });

  it('is found by discovery, and names the leader when it is not the one', async () => {
    const leader = await start();
    const follower = await start();
    follower.double.faults.leaderElsewhere = { host: '127.0.0.1', port: leader.double.port };
    const client = EventStoreDBClient.connectionString(`esdb+discover://127.0.0.1:${follower.double.port}?tls=false`);
    ends.push(() => client.dispose());
    await client.appendToStream('s', someEvent(), { requiresLeader: true });
    expect(leader.double.events().some(({ stream }) => stream === 's')).toBe(true);
  });

  it('with TLS, lets in whoever has the password and nobody else', async () => {
    const { key, certificate, certificateFile, remove } = await selfSigned();
    ends.push(remove);
    const { double } = await start({ tls: { key, certificate }, users: { admin: 'right' } });
    const as = (password: string): EventStoreDBClient => {
      const client = EventStoreDBClient.connectionString(`esdb://admin:${password}@127.0.0.1:${double.port}?tlsCAFile=${certificateFile}`);
      ends.push(() => client.dispose());
      return client;
    };
    expect(await typeOf(as('right').appendToStream('s', someEvent()))).toBe('done');
    expect(await typeOf(collect(as('wrong').readStream('s')))).toBe(ErrorType.ACCESS_DENIED);
  });
});
