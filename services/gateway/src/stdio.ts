import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { startTelemetry } from '@sharedos/telemetry';
import { z } from 'zod';
import { gatewaySettings } from './config.ts';
import { identitiesOf } from './identities.ts';
import { mcpServer } from './mcp-server.ts';
import { openSpeakers } from './speakers.ts';

const Settings = z.object({
  SHAREDOS_NATS_URL: gatewaySettings.SHAREDOS_NATS_URL,
  SHAREDOS_NATS_CA_FILE: gatewaySettings.SHAREDOS_NATS_CA_FILE,
  SHAREDOS_OPERATION_TIMEOUT_MS: gatewaySettings.SHAREDOS_OPERATION_TIMEOUT_MS,
});
const IDENTITY_FD = 3;
const IDENTITY_BYTES_MAX = 64 * 1024;

/** Whoever starts this says on file descriptor 3 whom it speaks for: one entry of an identities file. */
const readIdentity = async (): Promise<unknown> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of createReadStream('', { fd: IDENTITY_FD })) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).byteLength;
    if (bytes > IDENTITY_BYTES_MAX) throw new Error('an identity is not so long');
  }
  return JSON.parse(Buffer.concat(chunks).toString('utf8'));
};

/** One session of an MCP client over standard input and output, for one identity. Standard output holds the protocol alone. */
const serve = async (): Promise<void> => {
  // An empty variable is one that was not set.
  const settings = Settings.parse(Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== '')));
  const instance = `stdio-${randomBytes(4).toString('hex')}`;
  const [identity] = identitiesOf([await readIdentity()], 'the identity on file descriptor 3', process.env);
  if (identity === undefined) throw new Error('there is no identity on file descriptor 3');
  const telemetry = await startTelemetry({ service: 'gateway', instance, version: '0.1.0' });
  const log = (text: string): void => void process.stderr.write(`sharedos mcp: ${text}\n`);
  const speakers = openSpeakers({
    servers: settings.SHAREDOS_NATS_URL.split(','),
    caFile: settings.SHAREDOS_NATS_CA_FILE,
    instance,
    operationTimeoutMs: settings.SHAREDOS_OPERATION_TIMEOUT_MS,
    onDefect: (error) => log(error instanceof Error ? error.message : String(error)),
  });
  try {
    const seat = await speakers.seat(identity);
    if (!seat.ok) throw new Error(seat.error.kind === 'unavailable' ? seat.error.reason : seat.error.error.message);
    const server = mcpServer(seat.value);
    const ended = new Promise<void>((resolve) => {
      server.onclose = resolve;
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
      // The transport does not tell of the end of its input.
      process.stdin.once('end', () => resolve());
      process.stdout.once('error', () => resolve());
    });
    // Its types allow members to be undefined that ours do not.
    await server.connect(new StdioServerTransport() as Transport);
    await ended;
    await server.close();
  } finally {
    await speakers.close();
    await telemetry.shutdown();
  }
};

try {
  await serve();
  process.exit(0);
} catch (error) {
  process.stderr.write(`sharedos mcp: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
