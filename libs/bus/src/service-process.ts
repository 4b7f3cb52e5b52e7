import { randomBytes } from 'node:crypto';
import type { ServiceName } from '@sharedos/contracts';
import { type Telemetry, measurements, openOperatorPort, startTelemetry } from '@sharedos/telemetry';
import { z } from 'zod';
import type { Bus } from './bus.ts';
import { connectBus } from './connect.ts';
import { streamsOf } from './permissions.ts';
import { checkStreams, describeProvisionRefusal } from './provision.ts';
import type { Progress, ReplicaState } from './replicas.ts';
import { withFiles } from './settings-from-files.ts';
import { streamsUsed } from './streams-used.ts';

/** Settings that every service has. Each service extends them with its own; a security setting has no default. */
export const baseSettings = {
  SHAREDOS_NATS_URL: z.string().min(1).meta({ description: 'Address of the broker, or several separated by commas' }),
  SHAREDOS_NATS_USER: z.string().min(1).meta({ description: 'The user of this service on the broker' }),
  SHAREDOS_NATS_PASSWORD: z.string().min(1).meta({ description: 'Its password, or the seed of its nkey' }),
  SHAREDOS_NATS_CA_FILE: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'Certificates to believe the broker by, in PEM; with it there is no connection without TLS' }),
  SHAREDOS_INSTANCE: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .default(() => `i-${randomBytes(4).toString('hex')}`)
    .meta({ description: 'Name of this process among the replicas of its service; random when absent' }),
  SHAREDOS_HEALTH_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .max(65_535)
    .optional()
    .meta({ description: 'Port for /healthz, /readyz and /metrics; none when absent' }),
  SHAREDOS_HEALTH_HOST: z.string().min(1).default('127.0.0.1').meta({ description: 'Address of that port' }),
  SHAREDOS_CLOCK_OFFSET_MS: z.coerce
    .number()
    .int()
    .min(-3_600_000)
    .max(3_600_000)
    .default(0)
    .meta({ description: 'Added to the clock of this process, to try out skewed clocks' }),
  SHAREDOS_GRACE_MS: z.coerce
    .number()
    .int()
    .min(0)
    .max(600_000)
    .default(10_000)
    .meta({ description: 'How long a stop waits for work that was begun' }),
};

/** Beside them, the settings of every service that asks the authorizers. */
export const askingSettings = {
  SHAREDOS_DEADLINE_MS: z.coerce
    .number()
    .int()
    .min(50)
    .max(60_000)
    .default(5_000)
    .meta({ description: 'Longest wait for an answer of the authorizer' }),
};

/** Of everything here: it is released together. */
export const VERSION = '0.1.0';

export type BaseSettings = z.infer<z.ZodObject<typeof baseSettings>>;

/** A running service as its process sees it. */
export interface RunningService {
  /** Why the service may not be relied on now, or `undefined` when it may. */
  trouble(): string | undefined;
  /** How far it is, for an operator. */
  progress?(): Progress | Promise<Progress>;
  /** Stops taking work, finishes or gives back what was begun, and returns within the grace. */
  stop(graceMs: number): Promise<void>;
}

/** What a service is given to run on. `log` writes one JSON line; never a secret, a payload or an argument. */
export interface ServiceHost {
  readonly bus: Bus;
  readonly instance: string;
  readonly clock: () => number;
  readonly log: (event: string, fields?: Readonly<Record<string, unknown>>) => void;
  readonly onDefect: (error: unknown, where: string) => void;
  /** What this process answers when an operator asks what it is: for `serveRoutes`. */
  readonly state: () => Promise<ReplicaState>;
}

/**
 * Runs one service as a process: settings from the environment, telemetry, the broker, a health endpoint, signals and exit.
 * It is the one place where a service reads the environment, and only `main.ts` calls it.
 */
export const runService = async <Shape extends z.ZodRawShape>(
  service: ServiceName,
  shape: Shape,
  start: (settings: z.infer<z.ZodObject<Shape>> & BaseSettings, host: ServiceHost) => Promise<RunningService>,
): Promise<void> => {
  const settings = readSettings(service, shape);
  const instance = settings.SHAREDOS_INSTANCE;
  const log: ServiceHost['log'] = (event, fields) => {
    process.stdout.write(`${JSON.stringify({ event, service, instance, ...fields })}\n`);
  };
  const onDefect: ServiceHost['onDefect'] = (error, where) => {
    measurements.count('defects');
    log('defect', { where, error: error instanceof Error ? error.stack : String(error) });
  };
  process.on('unhandledRejection', (error) => onDefect(error, 'unhandled rejection'));

  const telemetry = await startTelemetry({ service, instance, version: VERSION });
  measurements.watch('spansDropped', () => telemetry.droppedSpans());
  measurements.watch('spansExported', () => telemetry.exportedSpans());
  // Asked from the start, so that a long one is not taken for a process that hangs.
  let trouble = (): string | undefined => 'starting';
  const port =
    settings.SHAREDOS_HEALTH_PORT === undefined
      ? undefined
      : await openOperatorPort({
          host: settings.SHAREDOS_HEALTH_HOST,
          port: settings.SHAREDOS_HEALTH_PORT,
          service,
          instance,
          version: VERSION,
          trouble: () => trouble(),
        }).catch((error: unknown) =>
          fail(`${service}: SHAREDOS_HEALTH_PORT cannot be had: ${error instanceof Error ? error.message : String(error)}`),
        );
  const bus = await connectBus({
    servers: settings.SHAREDOS_NATS_URL.split(','),
    user: settings.SHAREDOS_NATS_USER,
    pass: settings.SHAREDOS_NATS_PASSWORD,
    ...(settings.SHAREDOS_NATS_CA_FILE === undefined ? {} : { caFile: settings.SHAREDOS_NATS_CA_FILE }),
    name: `${service}/${instance}`,
    inboxPrefix: `_INBOX_SERVICE.${service}`,
    onStatus: (status) => log('broker', { status }),
  }).catch((error: unknown) => fail(`${service}: ${error instanceof Error ? error.message : String(error)}`));
  const streams = await checkStreams(bus.nats, streamsOf(service));
  if (!streams.ok) fail(`${service}: ${describeProvisionRefusal(streams.error)}; provision the broker first`);
  measurements.watch('streamUsed', () => streamsUsed(bus, streamsOf(service)));
  const clock = (): number => Date.now() + settings.SHAREDOS_CLOCK_OFFSET_MS;
  let progress = async (): Promise<Progress> => ({});
  const running = await start(settings, {
    bus,
    instance,
    clock,
    state: async () => {
      const why = trouble();
      return { instance, ...(why === undefined ? {} : { trouble: why }), ...(await progress()), clock: clock() };
    },
    log,
    onDefect,
  }).catch((error: unknown) => fail(`${service} cannot start: ${error instanceof Error ? error.message : String(error)}`));

  progress = async () => (await running.progress?.()) ?? {};
  trouble = () => (bus.connected ? running.trouble() : 'not connected to the broker');
  stopOnSignal(async () => {
    trouble = () => 'stopping';
    log('stopping');
    await running.stop(settings.SHAREDOS_GRACE_MS);
    port?.close();
    await bus.close();
    await endTelemetry(telemetry, log);
    log('stopped');
  });
  log('ready', { pid: process.pid, ...(port === undefined ? {} : { port: port.port }) });
};

const readSettings = <Shape extends z.ZodRawShape>(service: ServiceName, shape: Shape): z.infer<z.ZodObject<Shape>> & BaseSettings => {
  const known = z.object({ ...baseSettings, ...shape });
  // An empty variable is one that was not set: container tools write them that way.
  const set = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
  const given = withFiles(set, Object.keys(known.shape), (line) => fail(`${service}: ${line}`));
  const parsed = known.safeParse(given);
  if (parsed.success) return parsed.data as z.infer<z.ZodObject<Shape>> & BaseSettings;
  const [issue] = parsed.error.issues;
  return fail(`${service}: ${String(issue?.path[0])} is not set as it must be: ${issue?.message}`);
};

/** Bad configuration stops a start with one line that names what to change. */
const fail = (line: string): never => {
  process.stderr.write(`${line}\n`);
  process.exit(1);
};

const stopOnSignal = (stop: () => Promise<void>): void => {
  let stopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      // A second signal does not wait for the first one's grace.
      if (stopping) process.exit(1);
      stopping = true;
      void stop().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
};

const endTelemetry = async (telemetry: Telemetry, log: ServiceHost['log']): Promise<void> => {
  await telemetry.shutdown();
  if (telemetry.droppedSpans() > 0) log('spans dropped', { dropped: telemetry.droppedSpans() });
};
