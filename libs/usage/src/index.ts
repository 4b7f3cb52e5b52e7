export { type CounterMemory, counterMemory, memoryUsageStore } from './memory.ts';
export type { RebuildOptions, RebuiltUsageStore } from './rebuilt-store.ts';
export { type RedisUsageOptions, redisUsageStore } from './redis.ts';
export * from './usage-store.ts';
