import { timingSafeEqual } from 'node:crypto';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PAYLOAD_BYTES_MAX, randomId, sha256 } from '@sharedos/contracts';
import type { McpAnswer, McpBridge } from './bridge.ts';

export interface McpHttpOptions {
  /** Whether whoever presents this bearer token may speak to this bridge. A page in a browser can reach a loopback port, too. */
  readonly mayConnect: (token: string) => boolean;
  /** On loopback; a free one when absent. */
  readonly port?: number;
}

export interface McpHttpServer {
  readonly url: string;
  readonly sessionId: string;
  /** Stops listening and cuts every connection. Idempotent. */
  close(): Promise<void>;
}

const HOST = '127.0.0.1';
const PATH = '/mcp';
const CONNECTIONS_MAX = 64;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;

/** A check for {@link McpHttpOptions.mayConnect} that knows one token, compared in constant time. */
export const knowsToken = (token: string): ((presented: string) => boolean) => {
  const known = Buffer.from(sha256(token));
  return (presented) => timingSafeEqual(Buffer.from(sha256(presented)), known);
};

/**
 * Serves a bridge over HTTP on loopback: one message or batch a POST, and no stream of the server's own. Who closes the bridge
 * closes this after it.
 *
 * @throws what the port throws.
 * @see spec/tools.md §9
 */
export const serveMcpHttp = async (bridge: McpBridge, { mayConnect, port = 0 }: McpHttpOptions): Promise<McpHttpServer> => {
  const sessionId = randomId();
  const server = createServer((request, response) => {
    response.setHeader('mcp-session-id', sessionId);
    response.setHeader('cache-control', 'no-store');
    respond(bridge, { mayConnect, sessionId }, request, response).catch(() => refuse(response, 500, 'internal_error'));
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, HOST, resolve);
  });
  let closed: Promise<void> | undefined;
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}${PATH}`,
    sessionId,
    close: () => {
      closed ??= new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      return closed;
    },
  };
};

/** In this order: path, bearer, session, method, body. Whoever may not connect learns nothing of the session. */
const respond = async (
  bridge: McpBridge,
  { mayConnect, sessionId }: { readonly mayConnect: McpHttpOptions['mayConnect']; readonly sessionId: string },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  if (request.url?.split('?', 1)[0] !== PATH) {
    response.writeHead(404).end();
    return;
  }
  const [, token] = /^Bearer ([^\s]+)$/i.exec(request.headers.authorization ?? '') ?? [];
  if (token === undefined || !mayConnect(token)) return refuse(response, 401, 'unauthorized');
  const session = request.headers['mcp-session-id'];
  if (session !== undefined && session !== sessionId) return refuse(response, 404, 'unknown_session');
  if (request.method === 'DELETE') {
    response.writeHead(200).end();
    return;
  }
  if (request.method !== 'POST') {
    response.setHeader('allow', 'POST, DELETE');
    return refuse(response, 405, 'method_not_allowed');
  }
  const text = await bodyOf(request);
  if (text === undefined) return refuse(response, 413, 'body_too_large');
  send(response, await bridge.handle(text), prefersStream(request.headers.accept));
};

const bodyOf = async (request: IncomingMessage): Promise<string | undefined> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Not destroyed where it is left: the refusal still has to go out on it.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > PAYLOAD_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};

/** A stream only for who takes nothing else: an answer is one message and needs none. */
const prefersStream = (accept: string | undefined): boolean =>
  accept !== undefined && accept.includes('text/event-stream') && !/application\/json|\*\/\*|application\/\*/.test(accept);

const send = (response: ServerResponse, answer: McpAnswer, asStream: boolean): void => {
  switch (answer.kind) {
    case 'aborted':
      // The turn was stopped under it: a request without an end, which no harness takes for an answer.
      response.destroy();
      return;
    case 'accepted':
      response.writeHead(202).end();
      return;
    case 'answered': {
      const status = answer.wellFormed ? 200 : 400;
      if (!asStream) {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.answer));
        return;
      }
      const events = [answer.answer].flat().map((one) => `event: message\ndata: ${JSON.stringify(one)}\n\n`);
      response.writeHead(status, { 'content-type': 'text/event-stream' }).end(events.join(''));
    }
  }
};

const MESSAGES = {
  unauthorized: 'The bearer token is not that of this session.',
  unknown_session: 'This is not that session.',
  method_not_allowed: 'Only POST and DELETE are served here.',
  body_too_large: 'The message is too large.',
  internal_error: 'The message could not be handled.',
} as const;

const refuse = (response: ServerResponse, status: number, code: keyof typeof MESSAGES): void => {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  // What is left of a body nobody reads would keep the connection busy.
  response.setHeader('connection', 'close');
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { code, message: MESSAGES[code] } }));
};
