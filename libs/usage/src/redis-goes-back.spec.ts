import { type Server, type Socket, connect, createServer } from 'node:net';
import { type Result, type Unavailable, ok } from '@sharedos/contracts';
import { OWN_PASSWORD, type OwnServer, startOwnRedis } from '@sharedos/testing';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RebuiltUsageStore } from './rebuilt-store.ts';
import { redisUsageStore } from './redis.ts';
import type { SpentUse, UsageState } from './usage-store.ts';

const OPEN_WITHIN_MS = 20_000;
const TEST_MS = 60_000;
const LIMIT = 10;
const grant = { namespaceId: 'acme', grantId: 'ten', max: LIMIT };

/** The claims of a ledger: the first of an ordinal is the only one. */
const ledgerOf = () => {
  const claims = new Map<number, SpentUse>();
  return {
    claim: (ordinal: number, operation: string): boolean => {
      const held = claims.get(ordinal) ?? { namespaceId: grant.namespaceId, grantId: grant.grantId, ordinal, operation, turn: operation };
      claims.set(ordinal, held);
      return held.operation === operation;
    },
    spentUses: async (): Promise<Result<readonly SpentUse[], Unavailable>> => ok([...claims.values()]),
    operations: (): readonly string[] => [...claims.values()].map(({ operation }) => operation),
  };
};

let redis: OwnServer;
let admin: Redis;
let stores: RebuiltUsageStore[];
let states: UsageState[];
beforeEach(async () => {
  redis = await startOwnRedis();
  admin = new Redis(redis.url);
  admin.on('error', () => undefined);
  [stores, states] = [[], []];
});
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()));
  admin.disconnect();
  await redis.end();
});

const opened = async (url: string, ledger: ReturnType<typeof ledgerOf>): Promise<RebuiltUsageStore> => {
  const store = redisUsageStore({
    url,
    spentUses: ledger.spentUses,
    settleMs: 0,
    backoff: { firstMs: 5, maxMs: 50 },
    onState: (state) => states.push(state),
  });
  stores.push(store);
  expect(await store.whenOpen(OPEN_WITHIN_MS)).toBe(true);
  return store;
};

/** Spends as a turn does: take, claim, and say so when the claim was another's. @returns Whether it was spent. */
const spend = async (
  store: RebuiltUsageStore,
  ledger: ReturnType<typeof ledgerOf>,
  operation: string,
): Promise<boolean | 'unavailable'> => {
  const taken = await store.take([grant], { operation, turn: operation });
  if (!taken.ok) return 'unavailable';
  if (taken.value.kind === 'exhausted') return false;
  const [use] = taken.value.uses;
  if (use === undefined || ledger.claim(use.ordinal, operation)) return use !== undefined;
  await store.distrust(use.epoch);
  return 'unavailable';
};

/** Asks for each operation until it is spent or refused, as callers do that were told to come back. */
const spendAll = async (store: RebuiltUsageStore, ledger: ReturnType<typeof ledgerOf>, operations: readonly string[]) => {
  for (const operation of operations) {
    let spent = await spend(store, ledger, operation);
    for (let attempt = 0; spent === 'unavailable' && attempt < 50; attempt += 1) {
      await store.whenOpen(OPEN_WITHIN_MS);
      spent = await spend(store, ledger, operation);
    }
    expect(spent).not.toBe('unavailable');
  }
};

const names = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, index) => `operation-${from + index}`);

describe('counters in a Redis that was put back to what it was six of ten uses ago, its epoch untouched', () => {
  it('are found out by the ledger, closed, rebuilt, and never give more than ten', { timeout: TEST_MS }, async () => {
    const ledger = ledgerOf();
    const store = await opened(redis.url, ledger);
    await spendAll(store, ledger, names(0, 2));
    const keys = await admin.keys('*');
    const then = await Promise.all(keys.map(async (key) => [key, await admin.dumpBuffer(key)] as const));
    await spendAll(store, ledger, names(2, 8));
    for (const key of await admin.keys('*')) await admin.del(key);
    for (const [key, dump] of then) await admin.restore(key, 0, dump as Buffer, 'REPLACE');
    expect(await store.count([grant])).toEqual(ok([2]));

    await spendAll(store, ledger, names(8, 30));
    expect(ledger.operations()).toEqual(names(0, 10));
    expect(await store.count([grant])).toEqual(ok([LIMIT]));
    const after = states.slice(states.findIndex(({ state }) => state === 'open') + 1).map(({ state }) => state);
    expect(after).toEqual(['closed', 'rebuilding', 'open']);
    // An operation of before is not a reservation that nobody can give back: it is known as spent again.
    const held = await store.held(grant.namespaceId, 'operation-7');
    expect(held.ok && held.value.uses).toEqual([{ grantId: 'ten', ordinal: 8, operation: 'operation-7' }]);
  });
});

/** One address over whichever server is the present one, as a failover gives its clients. */
const movingAddress = async (first: number) => {
  let target = first;
  const open = new Set<Socket>();
  const server: Server = createServer((client) => {
    const to = connect(target, '127.0.0.1');
    for (const [one, other] of [
      [client, to],
      [to, client],
    ] as const) {
      open.add(one);
      one.pipe(other);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        open.delete(one);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `redis://:${OWN_PASSWORD}@127.0.0.1:${port}`,
    move: (to: number) => {
      target = to;
      for (const socket of open) socket.destroy();
    },
    close: () =>
      new Promise<void>((resolve) => {
        for (const socket of open) socket.destroy();
        server.close(() => resolve());
      }),
  };
};

const portOf = (url: string): number => Number(new URL(url).port);

describe('counters in a Redis that failed over to a replica which lags behind', () => {
  it('are closed, rebuilt from the ledger, and never give more than ten', { timeout: TEST_MS }, async () => {
    const replica = await startOwnRedis();
    const second = new Redis(replica.url);
    const address = await movingAddress(portOf(redis.url));
    try {
      await second.config('SET', 'masterauth', OWN_PASSWORD);
      await second.replicaof('127.0.0.1', portOf(redis.url));
      const ledger = ledgerOf();
      const store = await opened(address.url, ledger);
      await spendAll(store, ledger, names(0, 4));
      await expect.poll(async () => (await second.keys('*')).length, { timeout: OPEN_WITHIN_MS }).toBe((await admin.keys('*')).length);
      // From here on the replica hears nothing: it will be promoted without the last uses.
      await second.replicaof('NO', 'ONE');
      await spendAll(store, ledger, names(4, 8));
      const before = states.length;
      await redis.server.kill();
      address.move(portOf(replica.url));

      await spendAll(store, ledger, names(8, 30));
      expect(ledger.operations()).toEqual(names(0, 10));
      expect(await store.count([grant])).toEqual(ok([LIMIT]));
      expect(states.slice(before).map(({ state }) => state)).toContain('rebuilding');
      expect(states.at(-1)?.state).toBe('open');
    } finally {
      await address.close();
      second.disconnect();
      await replica.end();
    }
  });
});
