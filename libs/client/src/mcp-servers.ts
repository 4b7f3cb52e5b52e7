import { randomUUID } from 'node:crypto';
import {
  McpAdd,
  McpApprove,
  McpInspect,
  type McpInspected,
  McpInspectReply,
  McpList,
  type McpPlace,
  McpRemove,
  McpSecret,
  McpSecretReply,
  type McpSecrets,
  type McpServers,
  McpServersReply,
  type Result,
} from '@sharedos/contracts';
import type { ClientError } from './client-error.ts';
import { type Session, ask } from './session.ts';

/** Which tools of a server are approved, as they were seen. */
export type McpApproval = Omit<McpApprove, 'commandId' | 'server'>;

/** The MCP servers whose tools the principal has. A tool can be used once it is approved, as it was then, and where it was granted. */
export interface McpServerCommands {
  list(): Promise<Result<McpServers, ClientError>>;
  /** A process of the operator's list, or a URL on a host that it allows. */
  add(server: string, place: McpPlace, commandId?: string): Promise<Result<McpServers, ClientError>>;
  /** What the server says of its tools now; `listHash` names exactly that. It is a stranger's text, for a person to judge. */
  inspect(server: string): Promise<Result<McpInspected, ClientError>>;
  /** Approves the tools of a server; those that are not named here are not its tools any more. */
  approve(server: string, approval: McpApproval, commandId?: string): Promise<Result<McpServers, ClientError>>;
  /** Ends the server and forgets its secrets. */
  remove(server: string, commandId?: string): Promise<Result<McpServers, ClientError>>;
  /** Keeps a header of an HTTP server or a variable of a process, outside the log; `null` forgets it. */
  secret(server: string, name: string, value: string | null): Promise<Result<McpSecrets, ClientError>>;
}

/** The server itself is asked, and may have to be started first. */
const SERVER_MS = 25_000;

export const mcpServerCommands = (session: Session): McpServerCommands => ({
  list: () => ask(session, 'mcp.list', McpList, {}, McpServersReply),
  add: (server, place, commandId = randomUUID()) => ask(session, 'mcp.add', McpAdd, { commandId, server, place }, McpServersReply),
  inspect: (server) => ask(session, 'mcp.inspect', McpInspect, { server }, McpInspectReply, { waitMs: SERVER_MS }),
  approve: (server, approval, commandId = randomUUID()) =>
    ask(session, 'mcp.approve', McpApprove, { commandId, server, ...approval }, McpServersReply, { waitMs: SERVER_MS }),
  remove: (server, commandId = randomUUID()) => ask(session, 'mcp.remove', McpRemove, { commandId, server }, McpServersReply),
  secret: (server, name, value) => ask(session, 'mcp.secret', McpSecret, { server, name, value }, McpSecretReply),
});
