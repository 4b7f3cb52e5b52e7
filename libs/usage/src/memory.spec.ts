import { usageStoreContract } from './contract.ts';
import { counterMemory, memoryUsageStore } from './memory.ts';

usageStoreContract('memory', async () => {
  const memory = counterMemory();
  return {
    open: (options) => memoryUsageStore({ memory, ...options }),
    wipe: async () => memory.wipe(),
    restart: async () => memory.restart(),
    stall: async () => memory.stall(),
    resume: async () => memory.resume(),
    close: async () => undefined,
  };
});
