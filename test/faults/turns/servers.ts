import type { LocalStack } from '@sharedos/testing';
import { Redis } from 'ioredis';

/** The servers under the storm. What is done to them is done one after the other, and each comes back by itself. */
export interface Servers {
  killNats(): Promise<void>;
  /** It comes back empty. */
  killRedis(): Promise<void>;
  wipeRedis(): Promise<void>;
  /** Remembers every key as it is now: what the next roll back goes to. */
  keepRedis(): Promise<void>;
  /** Puts back every key as it was kept, or else about a second ago, the epoch among them. */
  rollRedisBack(): Promise<void>;
  /** Waits until both serve. */
  up(): Promise<void>;
  close(): Promise<void>;
}

const REMEMBER_MS = 400;
/** The keys as they were this many times {@link REMEMBER_MS} ago. */
const MEMORIES = 3;

type Memory = ReadonlyMap<string, Buffer>;

export const serversOf = (stack: LocalStack): Servers => {
  const redis = new Redis(stack.redisUrl, { maxRetriesPerRequest: 0, retryStrategy: (times) => Math.min(200, times * 20) });
  redis.on('error', () => undefined);
  const memories: Memory[] = [];
  let kept: Memory | undefined;
  let last: Promise<void> = Promise.resolve();
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    last = last.then(work, work);
    return last;
  };

  const remember = async (): Promise<Memory> => {
    const keys = await redis.keys('*');
    const dumps = await Promise.all(keys.map(async (key) => [key, await redis.dumpBuffer(key)] as const));
    return new Map(dumps.flatMap(([key, dump]) => (dump === null ? [] : [[key, dump] as const])));
  };
  const remembering = setInterval(
    () =>
      void inTurn(async () => {
        memories.push(await remember());
        if (memories.length > MEMORIES) memories.shift();
      }).catch(() => undefined),
    REMEMBER_MS,
  );

  return {
    killNats: () =>
      inTurn(async () => {
        await stack.nats.kill();
        await stack.nats.restart();
      }),
    killRedis: () =>
      inTurn(async () => {
        memories.length = 0;
        await stack.redis.kill();
        await stack.redis.restart();
      }),
    wipeRedis: () =>
      inTurn(async () => {
        memories.length = 0;
        await redis.flushall();
      }),
    keepRedis: () =>
      inTurn(async () => {
        kept = await remember();
      }),
    rollRedisBack: () =>
      inTurn(async () => {
        const memory = kept ?? memories[0];
        if (memory === undefined) return;
        const now = await redis.keys('*');
        const back = redis.multi();
        for (const key of now) if (!memory.has(key)) back.del(key);
        for (const [key, dump] of memory) back.restore(key, 0, dump, 'REPLACE');
        await back.exec();
        memories.length = 0;
      }),
    up: () => inTurn(async () => undefined),
    close: async () => {
      clearInterval(remembering);
      await last.catch(() => undefined);
      redis.disconnect();
    },
  };
};
