import { randomUUID } from 'node:crypto';
import type { Bus } from '@sharedos/bus';
import {
  type AccessContext,
  AuthorityMcp,
  AuthorityMcpReply,
  type McpCommand,
  type McpServer,
  type ProtocolError,
  type Result,
  type Revision,
  addressKey,
  encodeName,
  err,
  namespaceSubject,
  ok,
} from '@sharedos/contracts';
import { type OwnServer, type ServerPool, type ToolHandler, mcpTools } from '@sharedos/tools';

const ANSWER_MS = 5_000;
/** Owners whose servers are remembered; each holds a megabyte at most, and most hold a few kilobytes. */
const OWNERS_MAX = 64;

export interface OwnServersPorts {
  readonly bus: Pick<Bus, 'request'>;
  readonly pool?: ServerPool | undefined;
  readonly onDefect: (error: unknown, where: string) => void;
}

export interface ServersRead {
  readonly servers: readonly McpServer[];
  readonly revision: Revision;
}

interface Known {
  readonly hash: string;
  readonly servers: readonly McpServer[];
  readonly tools: readonly ToolHandler[];
}

type ChangedTools = readonly { readonly name: string; readonly hash: string }[];

type Owned = Pick<AccessContext, 'namespaceId' | 'owner'>;

const UNAVAILABLE: ProtocolError = {
  code: 'authority_unavailable',
  message: 'no authorizer answered; send the same command again',
  retryable: true,
};

/**
 * The MCP servers of owners, as the log has them. Each question goes to an authorizer, so that an approval and its end count from the next turn
 * on everywhere; what has not changed is not sent again, and its tools are not made again.
 */
export class OwnServers {
  readonly #ports: OwnServersPorts;
  readonly #known = new Map<string, Known>();

  constructor(ports: OwnServersPorts) {
    this.#ports = ports;
  }

  /** The tools of all servers of an owner. No server is asked for them. */
  async tools(of: Owned): Promise<Result<readonly ToolHandler[], ProtocolError>> {
    const asked = await this.#ask(of);
    return asked.ok ? ok(asked.value.known.tools) : asked;
  }

  async read(
    of: Owned,
    change?: { readonly commandId: string; readonly command: McpCommand },
  ): Promise<Result<ServersRead, ProtocolError>> {
    const asked = await this.#ask(of, change);
    return asked.ok ? ok({ servers: asked.value.known.servers, revision: asked.value.revision }) : asked;
  }

  async #ask(
    of: Owned,
    change?: { readonly commandId: string; readonly command: McpCommand },
  ): Promise<Result<{ readonly known: Known; readonly revision: Revision }, ProtocolError>> {
    const { namespaceId, owner } = of;
    const key = encodeName(namespaceId, addressKey(owner));
    const before = this.#known.get(key);
    const body: AuthorityMcp = {
      owner,
      ...(before === undefined ? {} : { known: before.hash }),
      ...(change === undefined ? {} : { change }),
    };
    const subject = namespaceSubject('authority.mcp', namespaceId);
    const answered = await this.#ports.bus.request(subject, AuthorityMcp, body, AuthorityMcpReply, { timeoutMs: ANSWER_MS });
    if (!answered.ok) return err(UNAVAILABLE);
    if (!answered.value.ok) return err(answered.value.error);
    const { hash, servers, revision } = answered.value.value;
    if (servers === undefined) return before === undefined ? err(UNAVAILABLE) : ok({ known: before, revision });
    const known: Known = { hash, servers, tools: this.#toolsOf(of, servers) };
    this.#known.delete(key);
    if (this.#known.size >= OWNERS_MAX) for (const oldest of [...this.#known.keys()].slice(0, 1)) this.#known.delete(oldest);
    this.#known.set(key, known);
    return ok({ known, revision });
  }

  #toolsOf({ namespaceId, owner }: Owned, servers: readonly McpServer[]): readonly ToolHandler[] {
    const { pool } = this.#ports;
    if (pool === undefined) return [];
    const ports = { pool, onChanged: (own: OwnServer, changed: ChangedTools) => void this.#report(own, changed) };
    return servers.flatMap((server) => mcpTools(ports, { namespaceId, owner, server: server.server, place: server.place }, server));
  }

  /** What was seen here is off for every executor. One that hears nothing of it refuses the calls by itself. */
  async #report({ namespaceId, owner, server }: OwnServer, changed: ChangedTools): Promise<void> {
    const command: McpCommand = { type: 'ReportMcpToolsChanged', server, tools: [...changed] };
    try {
      await this.read({ namespaceId, owner }, { commandId: randomUUID(), command });
    } catch (error) {
      this.#ports.onDefect(error, 'telling of changed tools');
    }
  }
}
