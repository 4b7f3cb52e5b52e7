import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EventStoreDouble, startEventStoreDouble } from '@sharedos/eventstoredb-double';
import { eventStoreContract } from './contract.ts';
import type { EventStore } from './event-store.ts';
import { type EventStoreDbOptions, eventStoreDbEventStore } from './eventstoredb.ts';

const TIMEOUT_MS = 1_500;

const openOn = async (double: EventStoreDouble, more: Partial<EventStoreDbOptions> = {}): Promise<EventStore> => {
  const opened = await eventStoreDbEventStore({
    connectionString: double.connectionString,
    timeoutMs: TIMEOUT_MS,
    heartbeatMs: 200,
    ...more,
  });
  if (!opened.ok) throw new Error(opened.error.reason);
  return opened.value;
};

eventStoreContract('EventStoreDB', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'sharedos-double-'));
  let double = await startEventStoreDouble({ dataDir, foreignEvery: 3 });
  const { port } = double;
  return {
    open: () => openOn(double),
    appendRaw: async (natsSubject, body) => double.append(natsSubject, [{ data: Buffer.from(body) }]).position,
    stop: () => double.faults.serving.close(),
    resume: () => double.faults.serving.open(),
    mute: () => double.network.holdAnswers(),
    hear: () => double.network.heal(),
    blackHole: { begin: () => double.network.blackHole(), end: () => double.network.heal() },
    restart: async () => {
      await double.close();
      double = await startEventStoreDouble({ dataDir, port, foreignEvery: 3 });
    },
    reconnect: async () => double.network.cutConnections(),
    deadlineMs: TIMEOUT_MS,
    close: async () => {
      await double.close();
      await rm(dataDir, { recursive: true });
    },
  };
});
