import { eventStoreContract } from './contract.ts';
import { memoryEventStore } from './memory.ts';

eventStoreContract('memory', async () => {
  const store = memoryEventStore({ timeoutMs: 50 });
  return {
    // All clients of one process are the one store; the last `close` of the suite is the world's.
    open: async () => ({ ...store, close: async () => undefined }),
    appendRaw: async (natsSubject, body) => store.appendRaw(natsSubject, body),
    stop: () => store.stop(),
    resume: () => store.resume(),
    mute: () => store.mute(),
    hear: () => store.hear(),
    reconnect: async () => undefined,
    blackHole: { cannot: 'there is no connection' },
    restart: { cannot: 'the history is in this process alone' },
    deadlineMs: 50,
    close: () => store.close(),
  };
});
