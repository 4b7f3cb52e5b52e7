import { randomUUID } from 'node:crypto';
import { EventStoreDBClient, binaryEvent } from '@eventstore/db-client';
import { openTcpFront, startEventStoreServer } from '@sharedos/testing';
import { eventStoreContract } from './contract.ts';
import type { CannotBeHad } from './contract-world.ts';
import type { EventStore } from './event-store.ts';
import { eventStoreDbEventStore } from './eventstoredb.ts';

const TIMEOUT_MS = 1_500;
const PLACE = /^(esdb:\/\/(?:[^@/]*@)?)([^:,/?@]+):(\d+)(?=[/?]|$)/;

// Which one it is stands in the title, and so in the output.
const found = await startEventStoreServer({ foreignEvery: 3 });

eventStoreContract(`EventStoreDB (${found.name})`, async () => {
  const [, before = '', host = '', port = ''] = PLACE.exec(found.connectionString) ?? [];
  if (port === '') throw new Error('these tests need a connection string with one host and its port: they put themselves in between');
  const network = await openTcpFront(0, Number(port), host);
  const connectionString = found.connectionString.replace(PLACE, `${before}${host === 'localhost' ? host : '127.0.0.1'}:${network.port}`);
  const direct = EventStoreDBClient.connectionString(found.connectionString);
  // A server that was there before us may hold what earlier runs wrote.
  const prefix = `contract-${randomUUID()}.`;
  const { server } = found;
  const restart = async (): Promise<void> => {
    await server?.kill();
    await server?.restart();
  };
  const cannotRestart: CannotBeHad = { cannot: `${found.name} is not ours to kill` };
  return {
    open: async (): Promise<EventStore> => {
      const opened = await eventStoreDbEventStore({ connectionString, prefix, timeoutMs: TIMEOUT_MS, heartbeatMs: 200 });
      if (!opened.ok) throw new Error(opened.error.reason);
      return opened.value;
    },
    appendRaw: async (natsSubject, body) => {
      const { position } = await direct.appendToStream(prefix + natsSubject, binaryEvent({ type: 'raw', data: body }));
      return Number(position?.commit);
    },
    stop: () => (server === undefined ? network.blackHole() : server.pause()),
    resume: () => (server === undefined ? network.heal() : server.resume()),
    mute: () => network.holdAnswers(),
    hear: () => network.heal(),
    blackHole: { begin: () => network.blackHole(), end: () => network.heal() },
    restart: server === undefined ? cannotRestart : restart,
    reconnect: async () => network.cutConnections(),
    deadlineMs: TIMEOUT_MS,
    close: async () => {
      await direct.dispose();
      await network.close();
      await found.end();
    },
  };
});
