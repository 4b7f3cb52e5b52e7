import {
  type AccessContext,
  type Instant,
  type Json,
  JsonObj,
  type McpServer,
  type McpTool,
  type ProtocolError,
  RESULT_BYTES_MAX,
  type Result,
  type ToolCall,
  type ToolResult,
  ok,
  timestampOf,
} from '@sharedos/contracts';
import { type ToolHandler, mcpCeiling, mcpPath, untilAborted } from '@sharedos/kernel';
import { isLargerThan } from '../json-size.ts';
import type { ServerAnswer, ServerConnection, ServerFailure } from './server-connection.ts';
import type { OwnServer, ServerPool } from './server-pool.ts';

/** The family that all of these tools are in, and the namespace of the resources that their grants name. */
export const MCP_NAMESPACE = 'mcp';

export interface McpToolsPorts {
  readonly pool: Pick<ServerPool, 'connection'>;
  /** Told of tools that are not any more what was approved, so that they are off for everybody. */
  readonly onChanged: (own: OwnServer, tools: readonly { readonly name: string; readonly hash: string }[]) => void;
  readonly now?: () => Instant;
}

/** What a person reads of a failure. A server's own words are the answer of a call that it failed itself, and nothing else. */
export const MCP_REFUSALS: Readonly<Record<ServerFailure | 'mcp_tool_changed' | 'invalid_tool_result', string>> = {
  mcp_server_unavailable: 'the server of this tool cannot be reached now; nothing was asked of it',
  mcp_call_interrupted: 'the server of this tool went away during the call; what it did is not known',
  mcp_call_timed_out: 'the server of this tool did not answer in time; what it did is not known',
  mcp_tool_failed: 'the server refused or failed the call',
  mcp_list_refused: 'what the server says of its tools has no end, or is more than is taken',
  mcp_tool_changed: 'the tool is not any more what was approved; its owner has to approve it again',
  invalid_tool_result: 'the answer of the server is too large, or no answer of a tool',
};

const OUTPUT_SCHEMA: JsonObj = {
  type: 'object',
  properties: {
    content: { type: 'array', items: { type: 'object' } },
    structuredContent: { type: 'object' },
  },
  required: ['content'],
  additionalProperties: false,
};

/**
 * The tools of one server of an owner, made of what was approved alone: no server is asked anything before one of them is called, so none can
 * delay or change a catalogue. Tools that were seen to have changed are not among them.
 */
export const mcpTools = (ports: McpToolsPorts, own: OwnServer, { tools, changed }: McpServer): readonly ToolHandler[] =>
  tools.filter(({ name }) => !changed.includes(name)).map((tool) => mcpTool(ports, own, tool));

const mcpTool = (ports: McpToolsPorts, own: OwnServer, tool: McpTool): ToolHandler => {
  const { server } = own;
  const { readOnly, destructive, idempotent, requirement, inputSchema } = tool;
  const known = argumentsOf(inputSchema);
  return {
    definition: {
      name: `mcp.${server}.${tool.name}`,
      description: tool.description,
      namespace: MCP_NAMESPACE,
      source: `mcp.${server}`,
      readWrite: readOnly ? 'read' : 'write',
      inputSchema,
      outputSchema: OUTPUT_SCHEMA,
      requiredCapability: {
        resource: { namespace: MCP_NAMESPACE, path: [server, ...mcpCeiling(requirement)] },
        action: requirement.action,
      },
      annotations: {
        readOnly,
        ...(destructive === undefined ? {} : { destructive }),
        ...(idempotent === undefined ? {} : { idempotent }),
      },
    },
    parseArguments: (raw) => {
      // Servers are lenient: an argument that the description does not have could be a second name of the one that was decided on.
      if (Object.keys(raw).some((name) => !known.has(name))) throw new Error('an argument that the tool does not have');
      return raw;
    },
    resolveRequirement: ({ owner }, call) => ({
      resource: { namespace: MCP_NAMESPACE, path: [server, ...mcpPath(requirement, call.arguments)], owner },
      action: requirement.action,
    }),
    invoke: (context, call, cancel) => invoke(ports, own, tool, context, call, cancel),
  };
};

const argumentsOf = ({ properties }: JsonObj): ReadonlySet<string> => {
  const described = JsonObj.safeParse(properties ?? {});
  return new Set(described.success ? Object.keys(described.data) : []);
};

const invoke = async (
  { pool, onChanged, now = Date.now }: McpToolsPorts,
  own: OwnServer,
  { name, hash }: McpTool,
  _context: AccessContext,
  call: ToolCall,
  cancel: AbortSignal,
): Promise<ToolResult> => {
  const answered = { callId: call.id, tool: call.tool };
  const ended = (status: 'denied' | 'failed', error: ProtocolError): ToolResult => ({
    status,
    ...answered,
    error,
    completedAt: timestampOf(now()),
  });
  const failed = (code: ServerFailure | 'invalid_tool_result'): ToolResult =>
    ended('failed', { code, message: MCP_REFUSALS[code], retryable: code === 'mcp_server_unavailable' });

  const found = await untilAborted(verified(pool, own), cancel);
  if (!found.ok) return failed(found.error);
  const { connection, hashes } = found.value;
  if (hashes.get(name) !== hash) {
    onChanged(own, [{ name, hash }]);
    return ended('denied', { code: 'mcp_tool_changed', message: MCP_REFUSALS.mcp_tool_changed, retryable: false });
  }
  const said = await untilAborted(connection.call(name, call.arguments, cancel), cancel);
  if (!said.ok) return failed(said.error);
  const output = outputOf(said.value);
  if (output === undefined) return failed('invalid_tool_result');
  if (said.value.isError === true) return ended('failed', { code: 'mcp_tool_failed', message: textOf(said.value), retryable: false });
  return { status: 'succeeded', ...answered, output, completedAt: timestampOf(now()) };
};

/** A connection to a server, and the hashes of the tools that it tells of now. */
const verified = async (
  pool: Pick<ServerPool, 'connection'>,
  own: OwnServer,
): Promise<Result<{ readonly connection: ServerConnection; readonly hashes: ReadonlyMap<string, string> }, ServerFailure>> => {
  const connection = await pool.connection(own);
  if (!connection.ok) return connection;
  const told = await connection.value.tools();
  if (!told.ok) return told;
  return ok({ connection: connection.value, hashes: new Map(told.value.tools.map((tool) => [tool.name, tool.hash])) });
};

/** What a call answers of what the server said; nothing where that is no JSON that is taken, or too large. */
const outputOf = ({ content, structuredContent }: ServerAnswer): Json | undefined => {
  const output = JsonObj.safeParse({ content, ...(structuredContent === undefined ? {} : { structuredContent }) });
  return output.success && !isLargerThan(output.data, RESULT_BYTES_MAX - ROOM_BYTES) ? output.data : undefined;
};

/** For the rest of a result around its output. */
const ROOM_BYTES = 4 * 1024;
const MESSAGE_MAX = 4_000;

const textOf = ({ content }: ServerAnswer): string => {
  const text = content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');
  return text === '' ? MCP_REFUSALS.mcp_tool_failed : text.slice(0, MESSAGE_MAX);
};
