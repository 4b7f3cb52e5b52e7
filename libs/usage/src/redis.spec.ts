import { setTimeout } from 'node:timers/promises';
import { ok } from '@sharedos/contracts';
import { Redis } from 'ioredis';
import { OWN_PASSWORD, type OwnServer, startOwnRedis } from '@sharedos/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { by, usageStoreContract } from './contract.ts';
import type { RebuiltUsageStore } from './rebuilt-store.ts';
import { type RedisUsageOptions, redisUsageStore } from './redis.ts';
import type { UsageState } from './usage-store.ts';

const OPEN_WITHIN_MS = 10_000;
const grant = { namespaceId: 'acme', grantId: 'grant-1', max: 5 };

const takenBy = async (store: RebuiltUsageStore, operation: string) => {
  const taken = await store.take([grant], by(operation));
  return taken.ok ? ok(taken.value.kind === 'taken' ? taken.value.uses[0] : undefined) : taken;
};
const countOf = async (store: RebuiltUsageStore) => {
  const counted = await store.count([grant]);
  return counted.ok ? ok(counted.value[0]) : counted;
};

let redis: OwnServer;
let admin: Redis;
beforeAll(async () => {
  redis = await startOwnRedis();
});
beforeEach(async () => {
  admin = new Redis(redis.url);
  admin.on('error', () => undefined);
  await admin.flushall();
});
afterEach(() => admin.disconnect());
afterAll(() => redis.end());

usageStoreContract('redis', async () => ({
  open: (options) => redisUsageStore({ url: redis.url, ...options }),
  wipe: async () => void (await admin.flushall()),
  restart: async () => {
    await redis.server.kill();
    await redis.server.restart();
  },
  stall: async () => {
    redis.server.pause();
    // It may answer a moment longer on another core.
    const silent = () => Promise.race([admin.ping().then(() => false), setTimeout(50, true)]);
    await vi.waitUntil(silent, { timeout: 5_000 });
  },
  resume: async () => redis.server.resume(),
  close: async () => undefined,
}));

describe('counters in Redis', () => {
  let stores: RebuiltUsageStore[] = [];
  let states: UsageState[] = [];
  afterEach(async () => {
    await Promise.all(stores.map((store) => store.close()));
    stores = [];
    states = [];
  });

  const replica = (options: Partial<RedisUsageOptions> = {}): RebuiltUsageStore => {
    const store = redisUsageStore({
      url: redis.url,
      spentUses: async () => ok([]),
      settleMs: 0,
      backoff: { firstMs: 5, maxMs: 50 },
      onState: (state) => states.push(state),
      ...options,
    });
    stores.push(store);
    return store;
  };
  const opened = async (options?: Partial<RedisUsageOptions>): Promise<RebuiltUsageStore> => {
    const store = replica(options);
    expect(await store.whenOpen(OPEN_WITHIN_MS)).toBe(true);
    return store;
  };
  const closedWith = (reason: string) =>
    expect.poll(() => states.some((state) => state.state === 'closed' && state.reason.includes(reason)), { timeout: 5_000 }).toBe(true);

  it('are rebuilt, not silently reloaded, when the scripts are gone', async () => {
    const store = await opened();
    const before = await takenBy(store, 'a');
    await admin.script('FLUSH');
    expect(await takenBy(store, 'b')).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    expect(await store.whenOpen(OPEN_WITHIN_MS)).toBe(true);
    const after = await takenBy(store, 'c');
    expect(after).toMatchObject({ ok: true, value: { ordinal: 1 } });
    expect(after.ok && after.value?.epoch).not.toBe(before.ok && before.value?.epoch);
  });

  it('are not believed when they came from another server, as after a failover or with a snapshot', async () => {
    const store = await opened();
    await takenBy(store, 'a');
    const epoch = (await admin.get('sharedos.v1.uses:epoch')) as string;
    const foreign = `${'0'.repeat(40)}${epoch.slice(40)}`;
    await admin.set('sharedos.v1.uses:epoch', foreign);
    expect(await takenBy(store, 'b')).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    expect(await store.whenOpen(OPEN_WITHIN_MS)).toBe(true);
    expect(await admin.get('sharedos.v1.uses:epoch')).not.toBe(foreign);
    expect(await countOf(store)).toEqual(ok(0));
  });

  it('stay closed on a server that may evict them', async () => {
    await admin.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const store = replica();
    await closedWith('noeviction');
    expect(await countOf(store)).toMatchObject({ ok: false });
    await admin.config('SET', 'maxmemory-policy', 'noeviction');
    expect(await store.whenOpen(OPEN_WITHIN_MS)).toBe(true);
  });

  it('stay closed behind a wrong password', async () => {
    const store = replica({ url: redis.url.replace(OWN_PASSWORD, 'wrong') });
    await closedWith('WRONGPASS');
    expect(await takenBy(store, 'a')).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
  });

  it('are found again, as they were, after the connection alone was lost', async () => {
    const store = await opened({ spentUses: async () => ok([]) });
    const before = await takenBy(store, 'a');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await closedWith('connection');
    expect(await store.whenOpen(OPEN_WITHIN_MS)).toBe(true);
    expect(await takenBy(store, 'a')).toEqual(before);
    expect(states.filter(({ state }) => state === 'rebuilding')).toHaveLength(1);
  });

  it('leave nothing of earlier epochs behind', async () => {
    const store = await opened({ spentUses: async () => ok([{ ...grant, ordinal: 2, operation: 'spent' }]) });
    const first = await takenBy(store, 'a');
    if (!first.ok || first.value === undefined) throw new Error('no use');
    await store.distrust(first.value.epoch);
    expect(await store.whenOpen(OPEN_WITHIN_MS)).toBe(true);
    const second = await takenBy(store, 'a');
    if (!second.ok || second.value === undefined) throw new Error('no use');
    const { epoch } = second.value;
    const keys = await admin.keys('*');
    expect(keys.length).toBeGreaterThan(2);
    const control = new Set(['sharedos.v1.uses:epoch', 'sharedos.v1.uses:number']);
    expect(keys.filter((key) => !control.has(key) && !key.startsWith(`sharedos.v1.uses:${epoch}:`))).toEqual([]);
  });

  it('answer at once while the server is down, and come back with it', async () => {
    const store = await opened();
    await redis.server.kill();
    await closedWith('Redis');
    const startedAt = performance.now();
    expect(await takenBy(store, 'a')).toMatchObject({ ok: false, error: { kind: 'unavailable' } });
    expect(performance.now() - startedAt).toBeLessThan(100);
    await redis.server.restart();
    expect(await store.whenOpen(OPEN_WITHIN_MS)).toBe(true);
  });
});
