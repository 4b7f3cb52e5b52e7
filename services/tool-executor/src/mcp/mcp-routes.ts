import { type Route, route } from '@sharedos/bus';
import {
  McpAdd,
  McpApprove,
  McpInspect,
  McpInspectReply,
  McpList,
  McpRemove,
  McpSecret,
  McpSecretReply,
  McpServersReply,
} from '@sharedos/contracts';
import { type ManagePorts, addServer, approveServer, inspectServer, keepSecret, listServers, removeServer } from './manage-servers.ts';

/** What owners ask of their own MCP servers. */
export const mcpRoutes = (ports: ManagePorts): readonly Route[] => [
  route('mcp.add', { request: McpAdd, reply: McpServersReply, handle: addServer(ports) }),
  route('mcp.list', { request: McpList, reply: McpServersReply, handle: listServers(ports) }),
  route('mcp.inspect', { request: McpInspect, reply: McpInspectReply, handle: inspectServer(ports) }),
  route('mcp.approve', { request: McpApprove, reply: McpServersReply, handle: approveServer(ports) }),
  route('mcp.remove', { request: McpRemove, reply: McpServersReply, handle: removeServer(ports) }),
  route('mcp.secret', { request: McpSecret, reply: McpSecretReply, handle: keepSecret(ports) }),
];
