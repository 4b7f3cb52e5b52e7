import { startTelemetry } from '@sharedos/telemetry';
import type { AddressInfo } from 'node:net';
import { bearerOf } from './bearer.ts';
import { composeGateway } from './compose.ts';
import { readKeys, readSettings } from './config.ts';
import { readIdentities } from './identities.ts';
import { openSpeakers } from './speakers.ts';

const start = async (): Promise<void> => {
  const settings = readSettings(process.env);
  const instance = settings.SHAREDOS_INSTANCE;
  const log = (event: string, fields: Readonly<Record<string, unknown>> = {}): void => {
    process.stdout.write(`${JSON.stringify({ event, service: 'gateway', instance, ...fields })}\n`);
  };
  const onDefect = (error: unknown): void => log('defect', { error: error instanceof Error ? error.stack : String(error) });
  process.on('unhandledRejection', onDefect);
  const identities = await readIdentities(settings.SHAREDOS_GATEWAY_IDENTITIES, process.env);
  const key = await readKeys(settings.SHAREDOS_TOKEN_KEYS);
  const telemetry = await startTelemetry({ service: 'gateway', instance, version: '0.1.0' });
  const speakers = openSpeakers({
    servers: settings.SHAREDOS_NATS_URL.split(','),
    caFile: settings.SHAREDOS_NATS_CA_FILE,
    instance,
    operationTimeoutMs: settings.SHAREDOS_OPERATION_TIMEOUT_MS,
    onDefect,
  });
  const app = await composeGateway({
    bearer: bearerOf(identities, {
      key,
      issuer: settings.SHAREDOS_TOKEN_ISSUER,
      audience: settings.SHAREDOS_TOKEN_AUDIENCE,
      algorithms: settings.SHAREDOS_TOKEN_ALGORITHMS,
    }),
    speakers,
    now: Date.now,
    turnWaitMs: settings.SHAREDOS_TURN_WAIT_MS,
    rates: { perAddress: settings.SHAREDOS_RATE_PER_ADDRESS, perPrincipal: settings.SHAREDOS_RATE_PER_PRINCIPAL },
    streamsMax: settings.SHAREDOS_STREAMS_MAX,
    log,
  });
  await app.listen({ host: settings.SHAREDOS_GATEWAY_HOST, port: settings.SHAREDOS_GATEWAY_PORT });

  let stopping = false;
  const stop = async (): Promise<void> => {
    log('stopping');
    // Streams have no end of their own.
    setTimeout(() => app.server.closeAllConnections(), settings.SHAREDOS_GRACE_MS).unref();
    await app.close();
    await speakers.close();
    await telemetry.shutdown();
    log('stopped');
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      void stop().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
  const { port } = app.server.address() as AddressInfo;
  log('ready', { pid: process.pid, url: `http://${settings.SHAREDOS_GATEWAY_HOST}:${port}` });
};

try {
  await start();
} catch (error) {
  process.stderr.write(`gateway cannot start: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
