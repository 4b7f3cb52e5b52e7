import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { onFreePort } from './free-port.ts';
import { answersWith } from './line-probe.ts';
import { privateFolder } from './private-folder.ts';
import { type ServerHandle, startServer } from './server-process.ts';

/** An EventStoreDB to run on, and which one it is. */
export interface EventStoreServer {
  readonly which: 'given' | 'container' | 'double';
  /** For whoever reads the output of a run. */
  readonly name: string;
  readonly connectionString: string;
  /** To kill, freeze and restart it; it keeps its port and what it had written. Only the double is ours to treat so. */
  readonly server?: ServerHandle;
  /** Ends it, if it was started here, and removes its folder, if that was made here. */
  end(): Promise<void>;
}

export interface EventStoreServerOptions {
  /** Where a double keeps its log; a folder of its own, removed at the end, when absent. */
  readonly dataDir?: string;
  /** A double writes events of somebody else after each so many appends. None when absent. */
  readonly foreignEvery?: number;
  /** Called with one line for each thing that takes a while. */
  readonly onProgress?: (line: string) => void;
}

const DOUBLE = fileURLToPath(new URL('../../eventstoredb-double/src/program.ts', import.meta.url));
const IMAGE = process.env['SHAREDOS_EVENTSTORE_IMAGE'] ?? 'eventstore/eventstore:23.10.0-bookworm-slim';
const PORT = 2113;
const LOOK_TIMEOUT_MS = 5_000;
const PULL_TIMEOUT_MS = 180_000;
/** How a client of HTTP/2 begins, with empty settings; a server answers with its own. */
const HELLO = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0';

/**
 * Finds an EventStoreDB: the one that `SHAREDOS_EVENTSTORE_URL` names; else a container, where Docker runs and has or can pull the
 * image; else the double of its protocol, as a process. A container and a double do not outlive this process.
 */
export const startEventStoreServer = async (options: EventStoreServerOptions = {}): Promise<EventStoreServer> => {
  const given = process.env['SHAREDOS_EVENTSTORE_URL'];
  if (given !== undefined && given !== '') {
    return { which: 'given', name: 'the EventStoreDB of SHAREDOS_EVENTSTORE_URL', connectionString: given, end: async () => undefined };
  }
  return (await (runsImage ??= canRunImage(options))) ? startContainer(options) : startDouble(options);
};

/** Found out once: asking takes a while where images cannot be pulled. */
let runsImage: Promise<boolean> | undefined;

const canRunImage = async ({ onProgress }: EventStoreServerOptions): Promise<boolean> => {
  if (!(await docker(LOOK_TIMEOUT_MS, 'info'))) return false;
  if (await docker(LOOK_TIMEOUT_MS, 'image', 'inspect', IMAGE)) return true;
  onProgress?.(`pulling ${IMAGE} …`);
  return docker(PULL_TIMEOUT_MS, 'pull', '--quiet', IMAGE);
};

const docker = (timeout: number, ...args: readonly string[]): Promise<boolean> =>
  new Promise((resolve) => {
    execFile('docker', [...args], { timeout }, (error) => resolve(error === null));
  });

const startContainer = async ({ onProgress }: EventStoreServerOptions): Promise<EventStoreServer> => {
  onProgress?.(`starting ${IMAGE} …`);
  // Loaded where it is needed: a run on the double has no use for it.
  const { GenericContainer, Wait } = await import('testcontainers');
  const container = await new GenericContainer(IMAGE)
    .withEnvironment({ EVENTSTORE_CLUSTER_SIZE: '1', EVENTSTORE_RUN_PROJECTIONS: 'None', EVENTSTORE_INSECURE: 'true' })
    .withExposedPorts(PORT)
    .withWaitStrategy(Wait.forHttp('/health/live', PORT).forStatusCode(204))
    .start();
  return {
    which: 'container',
    name: `a container of ${IMAGE}`,
    connectionString: `esdb://${container.getHost()}:${container.getMappedPort(PORT)}?tls=false`,
    end: async () => void (await container.stop()),
  };
};

const startDouble = async ({ dataDir, foreignEvery, onProgress }: EventStoreServerOptions): Promise<EventStoreServer> => {
  onProgress?.('starting a double of EventStoreDB …');
  const folder = dataDir === undefined ? await privateFolder() : await madeFolder(dataDir);
  try {
    const [server, port] = await onFreePort((free) =>
      startServer({
        label: 'the double of EventStoreDB',
        command: process.execPath,
        args: [
          DOUBLE,
          ...['--port', String(free), '--data', folder.path],
          ...(foreignEvery === undefined ? [] : ['--foreign-every', String(foreignEvery)]),
        ],
        cwd: folder.path,
        isServing: () => answersWith(free, HELLO, /^[^]/),
      }),
    );
    return {
      which: 'double',
      name: 'a double of EventStoreDB',
      connectionString: `esdb://127.0.0.1:${port}?tls=false`,
      server,
      end: async () => {
        await server.kill();
        await folder.remove();
      },
    };
  } catch (error) {
    await folder.remove();
    throw error;
  }
};

const madeFolder = async (path: string): Promise<{ readonly path: string; remove(): Promise<void> }> => {
  await mkdir(path, { recursive: true, mode: 0o700 });
  return { path, remove: async () => undefined };
};
