import { join } from 'node:path';
import { type Bus, consumerInfo, streamHead } from '@sharedos/bus';
import { type LocalStack, type ServiceProcess, type TcpFront, openTcpFront, waitFor } from '@sharedos/testing';
import { openTap } from './published-subjects.ts';
import { ReadModelFile } from './read-model.ts';

/** One projector: the process, its database, and a way to the broker that can be cut. */
export interface Projector {
  readonly name: string;
  readonly model: ReadModelFile;
  readonly front: TcpFront;
  stop(): Promise<unknown>;
  /** Ends it at once and starts it again with the same database. */
  killAndStart(): Promise<void>;
}

export interface Place {
  readonly stack: LocalStack;
  /** Where databases are. */
  readonly folder: string;
  readonly onLine: (line: string) => void;
}

export const CALM_MS = 120_000;
const ASK_MS = 2_000;
const SEAL_INTERVAL_MS = '100';

export const startProjector = async (place: Place, name: string): Promise<Projector> => {
  const front = await openTcpFront(0, portOf(place.stack));
  const start = (): Promise<ServiceProcess> => startOn(place, front.port, name);
  let process = await start();
  return {
    name,
    front,
    model: new ReadModelFile(fileOf(place, name)),
    stop: () => process.stop(),
    killAndStart: async () => {
      await process.kill();
      process = await start();
    },
  };
};

/**
 * Builds a read model from the beginning: a projector with an empty database, until it has caught up and was stopped, which signs what
 * is unsigned. @returns The model, and the subject of everything that was published for it.
 */
export const rebuild = async (
  place: Place,
  name: string,
  asProjector: Bus,
): Promise<{ readonly model: ReadModelFile; readonly published: readonly string[] }> => {
  const tap = await openTap(portOf(place.stack));
  try {
    const model = new ReadModelFile(fileOf(place, name));
    const process = await startOn(place, tap.port, name);
    await upToDate(asProjector, name, model);
    await process.stop();
    return { model, published: tap.subjects };
  } finally {
    await tap.close();
  }
};

const fileOf = ({ folder }: Place, name: string): string => join(folder, `${name}.db`);
const portOf = ({ natsUrl }: LocalStack): number => Number(new URL(natsUrl).port);

const startOn = (place: Place, port: number, name: string): Promise<ServiceProcess> =>
  place.stack.startService('audit-projector', {
    instance: name,
    env: {
      SHAREDOS_NATS_URL: `nats://127.0.0.1:${port}`,
      SHAREDOS_RECORDS_DB: fileOf(place, name),
      SHAREDOS_SEAL_INTERVAL_MS: SEAL_INTERVAL_MS,
    },
    onLine: place.onLine,
  });

export const headOf = (bus: Bus, stream: 'AUDIT' | 'SEALS'): Promise<number> =>
  waitFor(
    `the head of ${stream}`,
    async () => {
      const head = await streamHead(bus, stream, { timeoutMs: ASK_MS });
      return head.ok ? head.value : undefined;
    },
    CALM_MS,
  );

/** Waits until the ledger is published, and a projector has folded all there is and has its last records signed. */
export const upToDate = async (bus: Bus, name: string, model: ReadModelFile): Promise<void> => {
  await waitFor(
    'the ledger to be published',
    async () => {
      const consumer = await consumerInfo(bus, 'LEDGER', 'audit-projector', { timeoutMs: ASK_MS });
      return consumer.ok && consumer.value.num_pending === 0 && consumer.value.num_ack_pending === 0;
    },
    CALM_MS,
  );
  await waitFor(
    `${name} to be up to date`,
    async () => {
      const [records, heads] = [await headOf(bus, 'AUDIT'), await headOf(bus, 'SEALS')];
      const progress = model.progress();
      return progress?.position === records && progress.headsPosition === heads && progress.unsigned === 0;
    },
    CALM_MS,
  );
};
