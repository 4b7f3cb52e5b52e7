import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { JsonObj } from '../json.ts';
import { Address } from '../principals.ts';
import { Action, Hash } from '../scalars.ts';
import { CommandId } from './management.ts';
import { Revision } from './revision.ts';
import { replyMessage, wireMessage } from './wire.ts';

/** Tools that the servers of one owner may have approved, all together, and the bytes of their definitions as canonical JSON. */
export const MCP_TOOLS_MAX = 2_048;
export const MCP_DEFINITION_BYTES_MAX = 1024 * 1024;
/** Definitions that one approval may hold: it is one event of the log. */
export const MCP_APPROVAL_BYTES_MAX = 384 * 1024;
export const MCP_SERVERS_MAX = 32;

/**
 * A server as its owner calls it. Without dots and underscores: `mcp.<server>.<tool>` and its spelling without dots then tell
 * servers apart, whatever they call their tools.
 */
export const McpServerName = z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/);
export type McpServerName = z.infer<typeof McpServerName>;

/** What is behind `mcp.<server>.` of a tool's name, as the server spells it. */
export const McpToolName = z.string().regex(/^[A-Za-z0-9_.-]{1,91}$/);

/** Where a server is: a process that the operator's own list names, or a URL on a host that it allows. Never a command. */
export const McpPlace = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('process'), process: McpServerName }),
  z.strictObject({ kind: z.literal('http'), url: bounded(z.string(), 1, 2_048) }),
]);
export type McpPlace = Readonly<z.infer<typeof McpPlace>>;

/**
 * What a call of a tool needs: `action` on `mcp` / `[server, …path]`. A part `{arguments.customerId}` of the path is that argument of
 * the call, `{...arguments.path}` its parts between slashes; every other part stands for itself.
 */
export const McpRequirement = z.strictObject({ path: bounded(z.array(bounded(z.string(), 1, 256)), 1, 32), action: Action });
export type McpRequirement = Readonly<z.infer<typeof McpRequirement>>;

/** A tool as its owner approved it. `hash` is of all that the server said of it, so whatever the server changes shows. */
export const McpTool = z.strictObject({
  name: McpToolName,
  description: bounded(z.string(), 1, 8_192),
  inputSchema: JsonObj,
  readOnly: z.boolean(),
  destructive: z.boolean().optional(),
  idempotent: z.boolean().optional(),
  hash: Hash,
  requirement: McpRequirement,
});
export type McpTool = Readonly<z.infer<typeof McpTool>>;

const tools = bounded(z.array(McpTool), 0, MCP_TOOLS_MAX);
const names = bounded(z.array(McpToolName), 1, MCP_TOOLS_MAX);

/** A server of an owner. `changed` names tools that are not any more what was approved: they are off until they are approved again. */
export const McpServer = z.strictObject({
  server: McpServerName,
  place: McpPlace,
  tools,
  changed: bounded(z.array(McpToolName), 0, MCP_TOOLS_MAX),
});
export type McpServer = Readonly<z.infer<typeof McpServer>>;

export const McpServerAdded = z.strictObject({
  type: z.literal('McpServerAdded'),
  owner: Address,
  server: McpServerName,
  place: McpPlace,
});
/** From then on these are the tools of the server, and no others. */
export const McpServerApproved = z.strictObject({ type: z.literal('McpServerApproved'), server: McpServerName, tools });
export const McpToolsChanged = z.strictObject({ type: z.literal('McpToolsChanged'), server: McpServerName, tools: names });
export const McpServerRemoved = z.strictObject({ type: z.literal('McpServerRemoved'), server: McpServerName });
export const McpEvent = z.discriminatedUnion('type', [McpServerAdded, McpServerApproved, McpToolsChanged, McpServerRemoved]);
export type McpEvent = z.infer<typeof McpEvent>;

export const McpCommand = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('AddMcpServer'), server: McpServerName, place: McpPlace }),
  z.strictObject({ type: z.literal('ApproveMcpServer'), server: McpServerName, tools }),
  /** `hashes` are what was approved when the change was seen: a later approval is not undone by an earlier sight. */
  z.strictObject({
    type: z.literal('ReportMcpToolsChanged'),
    server: McpServerName,
    tools: bounded(z.array(z.strictObject({ name: McpToolName, hash: Hash })), 1, MCP_TOOLS_MAX),
  }),
  z.strictObject({ type: z.literal('RemoveMcpServer'), server: McpServerName }),
]);
export type McpCommand = z.infer<typeof McpCommand>;

/**
 * Reads the servers of an owner, after a change where one is stated. The sending service names the owner: the principal that asked
 * it, or, for a change seen in a server, whose server it is. `known` is the `hash` of an answer that the sender still has.
 */
export const AuthorityMcp = wireMessage(
  'authority.mcp/1',
  z.strictObject({
    owner: Address,
    known: Hash.optional(),
    change: z.strictObject({ commandId: CommandId, command: McpCommand }).optional(),
  }),
);
export type AuthorityMcp = z.infer<typeof AuthorityMcp.schema>;

/** `servers` is absent where `hash` is what the sender knew. */
export const McpServersAt = z.strictObject({
  hash: Hash,
  servers: bounded(z.array(McpServer), 0, MCP_SERVERS_MAX).optional(),
  revision: Revision,
});
export type McpServersAt = z.infer<typeof McpServersAt>;
export const AuthorityMcpReply = replyMessage('authority.mcp.reply/1', McpServersAt);

/** Adds a server to the caller's own. Nothing of it can be used before it is approved. */
export const McpAdd = wireMessage('mcp.add/1', z.strictObject({ commandId: CommandId, server: McpServerName, place: McpPlace }));
export type McpAdd = z.infer<typeof McpAdd.schema>;

/** Asks the server what tools it has now. It is a stranger's text: for a person to judge, never for a model. */
export const McpInspect = wireMessage('mcp.inspect/1', z.strictObject({ server: McpServerName }));
export type McpInspect = z.infer<typeof McpInspect.schema>;

/**
 * Approves tools as they were seen: `listHash` is what `mcp.inspect` answered, and another list is refused. All usable tools where none is named.
 * `requirements` states by name of the tool what its calls need; `tools/<name>` and `call` where it says nothing.
 */
export const McpApprove = wireMessage(
  'mcp.approve/1',
  z.strictObject({
    commandId: CommandId,
    server: McpServerName,
    listHash: Hash,
    tools: names.optional(),
    requirements: bounded(z.array(z.strictObject({ name: McpToolName, requirement: McpRequirement })), 0, MCP_TOOLS_MAX).optional(),
  }),
);
export type McpApprove = z.infer<typeof McpApprove.schema>;

export const McpRemove = wireMessage('mcp.remove/1', z.strictObject({ commandId: CommandId, server: McpServerName }));
export type McpRemove = z.infer<typeof McpRemove.schema>;

/** Keeps a secret of a server outside the log: a header of an HTTP server, a variable of a process. `null` forgets it. */
export const McpSecret = wireMessage(
  'mcp.secret/1',
  z.strictObject({
    server: McpServerName,
    name: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
    value: bounded(z.string(), 1, 8_192).nullable(),
  }),
);
export type McpSecret = z.infer<typeof McpSecret.schema>;

export const McpList = wireMessage('mcp.list/1', z.strictObject({}));
export type McpList = z.infer<typeof McpList.schema>;

/** A server and its approved tools, short. `secrets` are names alone. */
const McpServerView = z.strictObject({
  server: McpServerName,
  place: McpPlace,
  tools: bounded(z.array(z.strictObject({ name: z.string(), requirement: McpRequirement, changed: z.boolean() })), 0, MCP_TOOLS_MAX),
  secrets: bounded(z.array(z.string()), 0, 64),
});
export const McpServers = z.strictObject({ servers: bounded(z.array(McpServerView), 0, MCP_SERVERS_MAX), revision: Revision });
export type McpServers = z.infer<typeof McpServers>;
export const McpServersReply = replyMessage('mcp.servers.reply/1', McpServers);

/** What a server says of itself now. `refused` names what can never be approved here, and why. */
export const McpInspected = z.strictObject({
  server: McpServerName,
  listHash: Hash,
  tools: bounded(
    z.array(
      z.strictObject({
        name: McpToolName,
        description: z.string(),
        inputSchema: JsonObj,
        readOnly: z.boolean(),
        hash: Hash,
        state: z.enum(['new', 'approved', 'changed']),
      }),
    ),
    0,
    MCP_TOOLS_MAX,
  ),
  refused: bounded(z.array(z.strictObject({ name: z.string(), reason: z.string() })), 0, MCP_TOOLS_MAX),
  gone: bounded(z.array(McpToolName), 0, MCP_TOOLS_MAX),
});
export type McpInspected = z.infer<typeof McpInspected>;
export const McpInspectReply = replyMessage('mcp.inspect.reply/1', McpInspected);

export const McpSecrets = z.strictObject({ server: McpServerName, secrets: bounded(z.array(z.string()), 0, 64) });
export type McpSecrets = z.infer<typeof McpSecrets>;
export const McpSecretReply = replyMessage('mcp.secret.reply/1', McpSecrets);
