import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import type { ApiErrorCode } from './answers.ts';
import type { Identity } from './identities.ts';
import { mcpServer } from './mcp-server.ts';
import type { Seat } from './seat.ts';

/** Sessions of one identity at once; each holds a few kilobytes and perhaps one open stream. */
export const SESSIONS_MAX = 32;
const IDLE_MS_MAX = 30 * 60_000;
const SWEPT_EVERY_MS = 60_000;

interface McpSession {
  readonly identityKey: string;
  readonly transport: StreamableHTTPServerTransport;
  usedAt: number;
  close(): Promise<void>;
}

/** MCP over streamable HTTP. A session belongs to the identity that opened it; anybody else's is not there. */
export class McpSessions {
  readonly #sessions = new Map<string, McpSession>();
  readonly #sweep: NodeJS.Timeout;
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
    this.#sweep = setInterval(() => void this.#closeIdle(), SWEPT_EVERY_MS);
    this.#sweep.unref();
  }

  /** @returns A refusal where the request is not the business of a session; otherwise the session has answered. */
  async handle(
    { identity, seat, body }: { readonly identity: Identity; readonly seat: Seat; readonly body: unknown },
    request: IncomingMessage,
    respond: () => ServerResponse,
  ): Promise<ApiErrorCode | undefined> {
    const named = request.headers['mcp-session-id'];
    if (named !== undefined) {
      const session = typeof named === 'string' ? this.#sessions.get(named) : undefined;
      if (session === undefined || session.identityKey !== identity.key) return 'unknown_session';
      session.usedAt = this.#now();
      await session.transport.handleRequest(request, respond(), body);
      return undefined;
    }
    if (request.method !== 'POST' || !isInitializeRequest(body)) return 'invalid_request';
    const mine = [...this.#sessions.values()].filter(({ identityKey }) => identityKey === identity.key);
    if (mine.length >= SESSIONS_MAX) return 'rate_limited';
    const transport = await this.#open(identity, seat);
    await transport.handleRequest(request, respond(), body);
    return undefined;
  }

  async close(): Promise<void> {
    clearInterval(this.#sweep);
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
  }

  async #open(identity: Identity, seat: Seat): Promise<StreamableHTTPServerTransport> {
    const server = mcpServer(seat);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        this.#sessions.set(id, { identityKey: identity.key, transport, usedAt: this.#now(), close: () => server.close() });
      },
      onsessionclosed: (id) => void this.#sessions.delete(id),
    });
    // Its types allow members to be undefined that ours do not.
    await server.connect(transport as Transport);
    return transport;
  }

  async #closeIdle(): Promise<void> {
    for (const [id, session] of this.#sessions) {
      if (this.#now() - session.usedAt < IDLE_MS_MAX) continue;
      this.#sessions.delete(id);
      await session.close();
    }
  }
}
