import {
  MCP_APPROVAL_BYTES_MAX,
  MCP_DEFINITION_BYTES_MAX,
  MCP_SERVERS_MAX,
  MCP_TOOLS_MAX,
  type Address,
  type McpCommand,
  type McpEvent,
  type McpServer,
  type McpTool,
  byCodeUnit,
  canonicalJson,
} from '@sharedos/contracts';
import { portableToolName } from './catalog.ts';
import { type Decider, accept, invariant, refuse, unreachable } from './decider.ts';
import { McpRequirementError, checkMcpRequirement } from './mcp-requirement.ts';

/** The owner states the command: whoever asked, or whose server was seen to have changed. */
export type McpServersCommand = McpCommand & { readonly owner: Address };

/** The servers of one owner, in order of name. */
export interface McpServersState {
  readonly servers: readonly McpServer[];
}

export type McpServersRefusal = {
  readonly code: 'mcp_server_exists' | 'mcp_server_not_found' | 'too_many_mcp_servers' | 'too_many_mcp_tools' | 'mcp_tool_refused';
  /** Which tool, and what is wrong with it. */
  readonly why?: string;
};

/**
 * The MCP servers whose tools an owner has, each with the tools that were approved. A tool is what it was when it was approved: one
 * that was seen to be something else is off until somebody approves it again.
 */
export const mcpServers: Decider<McpServersState, McpServersCommand, McpEvent, McpServersRefusal> = {
  initial: { servers: [] },
  decide: (command, { servers }) => {
    const { server } = command;
    const here = servers.find((one) => one.server === server);
    switch (command.type) {
      case 'AddMcpServer':
        if (here !== undefined)
          return canonicalJson(here.place) === canonicalJson(command.place) ? accept([]) : refuse({ code: 'mcp_server_exists' });
        if (servers.length >= MCP_SERVERS_MAX) return refuse({ code: 'too_many_mcp_servers' });
        return accept([{ type: 'McpServerAdded', owner: command.owner, server, place: command.place }]);
      case 'ApproveMcpServer': {
        if (here === undefined) return refuse({ code: 'mcp_server_not_found' });
        const tools = [...command.tools].sort((a, b) => byCodeUnit(a.name, b.name));
        const wrong = wrongIn(tools);
        if (wrong !== undefined) return refuse({ code: 'mcp_tool_refused', why: wrong });
        const all = [...servers.filter((one) => one !== here).flatMap((one) => one.tools), ...tools];
        if (all.length > MCP_TOOLS_MAX || bytesOf(all) > MCP_DEFINITION_BYTES_MAX || bytesOf(tools) > MCP_APPROVAL_BYTES_MAX)
          return refuse({ code: 'too_many_mcp_tools' });
        if (here.changed.length === 0 && canonicalJson(tools) === canonicalJson(here.tools)) return accept([]);
        return accept([{ type: 'McpServerApproved', server, tools }]);
      }
      case 'ReportMcpToolsChanged': {
        // What was seen may be older than an approval, or than the removal of the whole server: then it says nothing any more.
        const stands = ({ name, hash }: (typeof command.tools)[number]): boolean =>
          here?.tools.some((tool) => tool.name === name && tool.hash === hash) === true && !here.changed.includes(name);
        const changed = command.tools.filter(stands).map(({ name }) => name);
        return changed.length === 0
          ? accept([])
          : accept([{ type: 'McpToolsChanged', server, tools: [...new Set(changed)].sort(byCodeUnit) }]);
      }
      case 'RemoveMcpServer':
        return here === undefined ? refuse({ code: 'mcp_server_not_found' }) : accept([{ type: 'McpServerRemoved', server }]);
      default:
        return unreachable(command);
    }
  },
  evolve: ({ servers }, event) => {
    const { server } = event;
    const here = servers.find((one) => one.server === server);
    const others = servers.filter((one) => one !== here);
    if (event.type === 'McpServerAdded') {
      invariant(here === undefined, 'a server is removed before another one has its name');
      return {
        servers: [...others, { server, place: event.place, tools: [], changed: [] }].sort((a, b) => byCodeUnit(a.server, b.server)),
      };
    }
    invariant(here !== undefined, 'a server is added before anything is said of it');
    const becomes = (changes: Partial<McpServer>): McpServersState => ({
      servers: servers.map((one) => (one === here ? { ...one, ...changes } : one)),
    });
    switch (event.type) {
      case 'McpServerApproved':
        return becomes({ tools: event.tools, changed: [] });
      case 'McpToolsChanged':
        return becomes({ changed: [...here.changed, ...event.tools] });
      case 'McpServerRemoved':
        return { servers: others };
      default:
        return unreachable(event);
    }
  },
};

const bytesOf = (tools: readonly McpTool[]): number => Buffer.byteLength(canonicalJson(tools));

/** What is wrong with a set of tools: a name twice, also as a name without dots, or a requirement that no call could meet. */
const wrongIn = (tools: readonly McpTool[]): string | undefined => {
  const spelled = new Map<string, string>();
  for (const { name, requirement, inputSchema } of tools) {
    const portable = portableToolName(name);
    const other = spelled.get(portable);
    if (other !== undefined) return `${name} and ${other} are one name where dots are not allowed`;
    spelled.set(portable, name);
    const wrong = checkMcpRequirement(requirement, inputSchema);
    if (wrong instanceof McpRequirementError) return `${name}: ${wrong.message}`;
  }
  return undefined;
};
