export { MCP_LIMITS, type McpLimits } from './limits.ts';
export * from './mcp-tools.ts';
export { NO_SERVERS, type OperatorList, isAllowed, isSecretOf, readOperatorList } from './operator-list.ts';
export * from './secret-store.ts';
export { ServerConnection, type ServerFailure } from './server-connection.ts';
export { type OwnServer, ServerPool, type ServerPoolOptions } from './server-pool.ts';
export type { ServerTool, ServerTools } from './server-tools.ts';
