import { randomUUID } from 'node:crypto';
import rateLimit from '@fastify/rate-limit';
import { Id, PROTOCOL_VERSION, describeIssues, parseJsonText } from '@sharedos/contracts';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { type Answer, type ApiErrorCode, answer, apiError, clientError } from './answers.ts';
import type { Bearer } from './bearer.ts';
import { openEventStream } from './event-stream.ts';
import type { Identity } from './identities.ts';
import { McpSessions } from './mcp-sessions.ts';
import { type Asked, operations } from './operations.ts';
import { type OperationId, ROUTES, type Route } from './routes.ts';
import type { Speakers } from './speakers.ts';
import { streams } from './streams.ts';

export interface GatewayOptions {
  readonly bearer: Bearer;
  readonly speakers: Speakers;
  readonly now: () => number;
  /** How long a request waits for the result of a turn. */
  readonly turnWaitMs: number;
  /** Requests a minute. */
  readonly rates: { readonly perAddress: number; readonly perPrincipal: number };
  /** Requests at once that stay open, for each principal. */
  readonly streamsMax: number;
  readonly log: (event: string, fields: Readonly<Record<string, unknown>>) => void;
}

const MINUTE_MS = 60_000;
const MCP = '/mcp';
const MCP_METHODS = ['GET', 'POST', 'DELETE'] as const;
const BODY_BYTES_MAX = 1024 * 1024;
const REQUEST_TIMEOUT_MS = 60_000;
const CONNECTIONS_MAX = 2_048;

/** All that the gateway answers. It decides nothing: each request is put to the system in the name of the bearer of its token. */
export const composeGateway = async (options: GatewayOptions): Promise<FastifyInstance> => {
  const { bearer, speakers, turnWaitMs, rates, log } = options;
  const identities = new WeakMap<FastifyRequest, Identity>();
  const sessions = new McpSessions(options.now);
  const performs = operations(speakers, turnWaitMs);
  const fills = streams(speakers, turnWaitMs);
  const openStreams = new Map<string, number>();

  const app = Fastify({
    logger: false,
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    genReqId: ({ headers }) => {
      const given = Id.safeParse(headers['x-request-id']);
      return given.success && given.data === headers['x-request-id'] ? given.data : randomUUID();
    },
  });
  app.server.maxConnections = CONNECTIONS_MAX;
  await app.register(rateLimit, { global: false });
  const limits = { timeWindow: MINUTE_MS, cache: 10_000 };
  const ofAddress = app.createRateLimit({ ...limits, max: rates.perAddress, keyGenerator: ({ ip }) => ip });
  const ofPrincipal = app.createRateLimit({
    ...limits,
    max: rates.perPrincipal,
    keyGenerator: (request) => identities.get(request)?.key ?? '',
  });

  const send = (reply: FastifyReply, { status, body }: Answer): FastifyReply => reply.code(status).send(body);
  const refuse = (request: FastifyRequest, reply: FastifyReply, code: ApiErrorCode, message?: string): FastifyReply =>
    send(reply, apiError(code, request.id, message));

  // Who asks comes before everything else, so that a stranger does not learn which paths there are.
  app.addHook('onRequest', async (request, reply) => {
    reply.header('cache-control', 'no-store').header('x-request-id', request.id);
    if (request.routeOptions.url === ROUTES.health.path) return undefined;
    if (isOver(await ofAddress(request))) return refuse(request, reply, 'rate_limited');
    // A page in a browser has no business here: no answer would be given to it, and nothing is done for it.
    if (request.headers.origin !== undefined) return refuse(request, reply, 'permission_denied');
    const known = await bearer(request.headers.authorization);
    if (!known.ok) {
      if (known.error === 'unauthorized') reply.header('www-authenticate', 'Bearer');
      return refuse(request, reply, known.error);
    }
    identities.set(request, known.value);
    if (isOver(await ofPrincipal(request))) return refuse(request, reply, 'rate_limited');
    return undefined;
  });
  app.addHook('onResponse', async (request, reply) => {
    log('request', {
      requestId: request.id,
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      status: reply.raw.statusCode,
      ms: Math.round(reply.elapsedTime),
      principal: identities.get(request)?.key,
    });
  });

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_, text, done) => {
    const parsed = parseJsonText(text as string);
    if (parsed.ok) done(null, parsed.value);
    else done(Object.assign(new Error(), { code: 'NOT_JSON' }));
  });
  app.setErrorHandler((error, request, reply) => {
    const code = ERROR_CODES[(error as { readonly code?: string }).code ?? ''];
    if (code === undefined) log('defect', { requestId: request.id, error: error instanceof Error ? error.stack : String(error) });
    return refuse(request, reply, code ?? 'internal_error');
  });
  app.setNotFoundHandler((request, reply) => {
    const allowed = methodsOf(app, request.url.split('?', 1)[0] ?? '');
    if (allowed.length === 0) return refuse(request, reply, 'not_found');
    reply.header('allow', allowed.join(', '));
    return refuse(request, reply, 'method_not_allowed');
  });

  const askedOf = (request: FastifyRequest, reply: FastifyReply): Asked => {
    const gone = new AbortController();
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) gone.abort();
    });
    return {
      identity: identities.get(request) as Identity,
      body: request.body,
      parameters: request.params as Readonly<Record<string, string>>,
      requestId: request.id,
      signal: gone.signal,
    };
  };

  for (const [id, route] of Object.entries(ROUTES) as [OperationId, Route][]) {
    app.route({
      method: route.method,
      url: route.path,
      ...(route.bodyBytesMax === undefined ? {} : { bodyLimit: route.bodyBytesMax }),
      handler: async (request, reply) => {
        if (id === 'health') {
          return speakers.connected()
            ? send(reply, answer({ status: 'ok', protocolVersion: PROTOCOL_VERSION }))
            : refuse(request, reply, 'unavailable');
        }
        const asked = askedOf(request, reply);
        if (id === 'turnEvents' || id === 'auditRecords') return stream(id, asked, request, reply);
        if (route.body === undefined) return send(reply, await performs[id](asked));
        const body = route.body.safeParse(request.body);
        if (!body.success) return refuse(request, reply, 'invalid_request', describeIssues(body.error));
        return send(reply, await performs[id]({ ...asked, body: body.data }));
      },
    });
  }

  const stream = async (
    id: 'turnEvents' | 'auditRecords',
    asked: Asked,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<FastifyReply> => {
    const { key } = asked.identity;
    const mine = openStreams.get(key) ?? 0;
    if (mine >= options.streamsMax) return refuse(request, reply, 'rate_limited');
    openStreams.set(key, mine + 1);
    try {
      const lastEventId = request.headers['last-event-id'];
      const fill = await fills[id](asked, typeof lastEventId === 'string' ? lastEventId : undefined);
      if (!fill.ok) return send(reply, clientError(fill.error, request.id));
      await fill.value(openEventStream(hijacked(reply)));
      return reply;
    } finally {
      openStreams.set(key, (openStreams.get(key) ?? 1) - 1);
    }
  };

  app.route({
    method: [...MCP_METHODS],
    url: MCP,
    handler: async (request, reply) => {
      const identity = identities.get(request) as Identity;
      const seat = await speakers.seat(identity);
      if (!seat.ok) return send(reply, clientError(seat.error, request.id));
      const asked = { identity, seat: seat.value, body: request.body ?? undefined };
      const refused = await sessions.handle(asked, request.raw, () => hijacked(reply));
      return refused === undefined ? reply : refuse(request, reply, refused);
    },
  });

  app.addHook('preClose', () => sessions.close());
  return app;
};

const ERROR_CODES: Readonly<Record<string, ApiErrorCode>> = {
  NOT_JSON: 'invalid_json',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'invalid_json',
  FST_ERR_CTP_INVALID_JSON_BODY: 'invalid_json',
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalid_request',
};

/** The limiter calls allowed only what no limit is for. */
const isOver = (limit: { readonly isAllowed: boolean; readonly isExceeded?: boolean }): boolean =>
  !limit.isAllowed && limit.isExceeded === true;

const METHODS = ['GET', 'POST', 'PUT', 'DELETE'] as const;

/** Methods that a path has; none where there is nothing at it. */
const methodsOf = (app: FastifyInstance, url: string): readonly string[] =>
  METHODS.filter((method) => app.findRoute({ method, url }) !== null || matches(method, url));

const matches = (method: string, url: string): boolean =>
  Object.values(ROUTES).some(
    (route: Route) => route.method === method && new RegExp(`^${route.path.replaceAll(/:\w+/g, '[^/]+')}$`).test(url),
  );

/** The response itself, with the headers that every answer has, for whoever writes it without the framework. */
const hijacked = (reply: FastifyReply): FastifyReply['raw'] => {
  reply.hijack();
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) reply.raw.setHeader(name, value);
  return reply.raw;
};
