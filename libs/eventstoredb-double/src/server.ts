import { Server, ServerCredentials } from '@grpc/grpc-js';
import { type TcpFront, openTcpFront } from '@sharedos/testing';
import { appendHandler, deleteHandler } from './append.ts';
import type { Appending } from './append-rules.ts';
import { batchAppendHandler } from './batch-append.ts';
import type { Users } from './call-rules.ts';
import { EventLog } from './event-log.ts';
import { Faults } from './faults.ts';
import { noJournal, openJournal } from './journal.ts';
import { membersHandler, supportedMethodsHandler } from './node-info.ts';
import { readHandler } from './read.ts';
import type { ProposedEvent, StoredEvent } from './stored-event.ts';
import { GOSSIP, SERVER_FEATURES, STREAMS } from './wire.ts';

export interface DoubleOptions {
  /** A free one when absent. */
  readonly port?: number;
  /** Keeps the log in this folder; in memory alone when absent. */
  readonly dataDir?: string;
  /** Serves with TLS. Both are PEM. */
  readonly tls?: { readonly key: Buffer; readonly certificate: Buffer };
  /** Who may call; everybody when absent. The real client sends credentials over TLS alone. */
  readonly users?: Users;
  /** Whether it says that it knows BatchAppend; servers before 21.10 do not. Default true. */
  readonly batchAppend?: boolean;
  /** Whether events of a stream come with their position in `$all`; those of servers before 22.6 do not. Default true. */
  readonly positionsInStreams?: boolean;
  /** Largest append, in bytes. Default 1 MiB, as on a real server. */
  readonly appendBytesMax?: number;
  /** After each so many appends, events of somebody else. None when absent. */
  readonly foreignEvery?: number;
}

/** A running double of EventStoreDB. */
export interface EventStoreDouble {
  readonly port: number;
  /** What the client connects with. */
  readonly connectionString: string;
  readonly faults: Faults;
  readonly network: Pick<TcpFront, 'blackHole' | 'holdAnswers' | 'heal' | 'cutConnections'>;
  /** All that was ever appended, in the order of `$all`. */
  events(): readonly StoredEvent[];
  /** Writes past every client, and past the faults. */
  append(stream: string, events: readonly Partial<ProposedEvent>[]): StoredEvent;
  /** Ends it at once, as a crash does: no goodbye to anybody. May be called again. */
  close(): Promise<void>;
}

const MIB = 1024 * 1024;
const HOST = '127.0.0.1';

/** Starts a double of EventStoreDB on the loopback interface. */
export const startEventStoreDouble = async (options: DoubleOptions = {}): Promise<EventStoreDouble> => {
  const { users, tls, batchAppend = true, positionsInStreams = true, appendBytesMax = MIB, foreignEvery } = options;
  const journal = options.dataDir === undefined ? undefined : openJournal(options.dataDir);
  const log = new EventLog(journal ?? noJournal, Date.now, journal?.history ?? []);
  const faults = new Faults();
  // A server writes of itself before anybody else does, so no client ever gets the first position.
  if (log.all.length === 0) log.store('$epoch-information', [proposed({ type: '$epoch-information', data: Buffer.from('{}') })]);

  let appends = 0;
  const afterAppend = (): void => {
    appends += 1;
    if (foreignEvery === undefined || appends % foreignEvery !== 0) return;
    log.store(`foreign-${appends % 7}`, [proposed({ type: 'foreign' }), proposed({ type: 'foreign' })]);
    log.store('$stats-127.0.0.1:2113', [proposed({ type: '$statsCollected', data: Buffer.from('{}') })]);
  };
  const appending: Appending = { log, faults, appendBytesMax, afterAppend };

  // A message may be as large as an append and what goes round it.
  const server = new Server({ 'grpc.max_receive_message_length': appendBytesMax + 16 * MIB });
  server.addService(STREAMS, {
    read: readHandler({ log, faults, positionsInStreams }, users),
    append: appendHandler(appending, users),
    batchAppend: batchAppendHandler(appending, users),
    delete: deleteHandler(appending, users, false),
    tombstone: deleteHandler(appending, users, true),
  });
  server.addService(SERVER_FEATURES, { getSupportedMethods: supportedMethodsHandler(faults, batchAppend) });
  const credentials =
    tls === undefined
      ? ServerCredentials.createInsecure()
      : ServerCredentials.createSsl(null, [{ private_key: tls.key, cert_chain: tls.certificate }]);
  let front: TcpFront | undefined;
  server.addService(GOSSIP, { read: membersHandler(faults, () => ({ host: HOST, port: front?.port ?? 0 })) });
  const inside = await bind(server, credentials);
  try {
    front = await openTcpFront(options.port ?? 0, inside);
  } catch (error) {
    server.forceShutdown();
    throw error;
  }

  const { port } = front;
  let closed: Promise<void> | undefined;
  return {
    port,
    connectionString: `esdb://${HOST}:${port}?tls=${tls !== undefined}`,
    faults,
    network: front,
    events: () => log.all,
    append: (stream, events) => {
      log.store(stream, events.map(proposed));
      return log.all.at(-1) as StoredEvent;
    },
    close: () =>
      (closed ??= (async () => {
        await front.close();
        server.forceShutdown();
        journal?.close();
      })()),
  };
};

const bind = (server: Server, credentials: ServerCredentials): Promise<number> =>
  new Promise((resolve, reject) => {
    server.bindAsync(`${HOST}:0`, credentials, (error, port) => (error === null ? resolve(port) : reject(error)));
  });

const proposed = (event: Partial<ProposedEvent>): ProposedEvent => ({
  id: crypto.randomUUID(),
  type: 'raw',
  contentType: 'application/octet-stream',
  data: Buffer.alloc(0),
  metadata: Buffer.alloc(0),
  ...event,
});
