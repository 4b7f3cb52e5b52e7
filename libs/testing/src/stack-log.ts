import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { type EventStoreServer, startEventStoreServer } from './event-store-server.ts';

/** What the log of a stack runs on. */
export type LogPlace = 'jetstream' | 'eventstoredb';

export interface StackLog {
  readonly server: EventStoreServer;
  /** What the authorizers are told. */
  readonly settings: Readonly<Record<string, string>>;
}

/**
 * Starts an EventStoreDB for a stack that is to run on one: `place` says so, or `SHAREDOS_EVENT_STORE` of this process.
 *
 * @param isKept Whether the stack will be started on the same data again: then it finds its log under the same names.
 */
export const startStackLog = async (
  place: LogPlace | undefined,
  dataDir: string,
  isKept: boolean,
  onProgress: (line: string) => void,
): Promise<StackLog | undefined> => {
  if ((place ?? process.env['SHAREDOS_EVENT_STORE'] ?? 'jetstream') !== 'eventstoredb') return undefined;
  const server = await startEventStoreServer({ dataDir: join(dataDir, 'eventstoredb'), onProgress });
  onProgress(`the log of authority is on ${server.name}`);
  return {
    server,
    settings: {
      SHAREDOS_EVENT_STORE: 'eventstoredb',
      SHAREDOS_EVENTSTORE_URL: server.connectionString,
      // A server that is somebody else's may hold other logs.
      SHAREDOS_EVENTSTORE_PREFIX: server.which === 'given' && !isKept ? `stack-${randomUUID()}.` : '',
    },
  };
};
