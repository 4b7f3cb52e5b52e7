import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { measurements } from './measurements.ts';
import { watchProcess } from './process-metrics.ts';

export interface OperatorPortOptions {
  readonly host: string;
  /** 0 for a free one. */
  readonly port: number;
  readonly service: string;
  readonly instance: string;
  readonly version: string;
  /** Why the service may not be relied on now, or `undefined` when it may. */
  readonly trouble: () => string | undefined;
}

export interface OperatorPort {
  readonly port: number;
  close(): void;
}

const PLAIN = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const;
const REQUEST_MS = 10_000;
const CONNECTIONS_MAX = 64;

/**
 * What an operator asks a process over HTTP: `/healthz` (it lives), `/readyz` (it may be relied on; 503 and the reason while not) and
 * `/metrics`. Nothing here takes a body or changes anything.
 *
 * @throws Error when the port cannot be had.
 */
export const openOperatorPort = async (options: OperatorPortOptions): Promise<OperatorPort> => {
  const { service, trouble } = options;
  // The SDK is loaded for those who have somewhere to show it.
  const { metricPage } = await import('./metric-page.ts');
  const metrics = metricPage(measurements, service);
  measurements.watch('ready', () => (trouble() === undefined ? 1 : 0));
  const unwatch = watchProcess(measurements, options);
  const server = createServer((request, response) => {
    const isReading = request.method === 'GET' || request.method === 'HEAD';
    const say = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json', ...PLAIN });
      response.end(JSON.stringify(body));
    };
    if (!isReading) return say(405, { status: 'method not allowed' });
    switch (request.url) {
      case '/healthz':
        return say(200, { status: 'ok' });
      case '/readyz': {
        const why = trouble();
        return why === undefined ? say(200, { status: 'ok', protocolVersion: '1' }) : say(503, { status: 'unavailable', reason: why });
      }
      case '/metrics':
        return metrics(request, response);
      default:
        return say(404, { status: 'unknown path' });
    }
  });
  server.requestTimeout = REQUEST_MS;
  server.maxConnections = CONNECTIONS_MAX;
  await listening(server, options);
  server.unref();
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      unwatch();
      server.close();
      server.closeAllConnections();
    },
  };
};

const listening = (server: Server, { host, port }: OperatorPortOptions): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve();
    });
  });
