import { randomUUID } from 'node:crypto';
import type { McpInspected, McpPlace, McpRequirement, McpServers } from '@sharedos/contracts';
import { Command } from 'commander';
import { type Terminal, connected, invocationOf, sameCommand, valueOf } from '../command-line.ts';
import { usageFailure } from '../exit-code.ts';
import { table } from '../table.ts';
import { serveCommand } from './mcp-serve.ts';

interface AddOptions {
  readonly process?: string;
  readonly url?: string;
  readonly commandId?: string;
}
interface ApproveOptions {
  readonly seen: string;
  readonly tool?: readonly string[];
  readonly needs?: readonly string[];
  readonly commandId?: string;
}

const COMMAND_ID = ['--command-id <id>', 'makes a repetition the same command, which counts once (default: a new one)'] as const;

export const mcpCommand = (terminal: Terminal): Command => {
  const command = new Command('mcp').description('Your MCP servers, whose tools agents may be granted; and SharedOS as an MCP server.');

  command
    .command('list')
    .description('Your servers and their approved tools.')
    .addHelpText('after', '\nExample:\n  $ sharedos mcp list')
    .action(async (_: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const found = await connected(invocation, async ({ mcpServers }) => valueOf(await mcpServers.list()));
      invocation.show(found, serversText(found));
    });

  command
    .command('add')
    .argument('<server>', 'how you call it: lower-case letters, digits and dashes')
    .description('Add a server: a process of the operator’s list, or a URL on a host that it allows.')
    .option('--process <name>', 'its name in the list of the operator')
    .option('--url <url>', 'where it is, over streamable HTTP')
    .option(...COMMAND_ID)
    .addHelpText(
      'after',
      '\nExamples:\n  $ sharedos mcp add memory --process memory\n  $ sharedos mcp add crm --url https://crm.example/mcp',
    )
    .action(async (server: string, { commandId = randomUUID(), ...where }: AddOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const place = placeOf(where);
      const added = await connected(invocation, async ({ mcpServers }) =>
        valueOf(await mcpServers.add(server, place, commandId), sameCommand(commandId)),
      );
      invocation.show(
        { ...added, commandId },
        `${serversText(added)}nothing of it can be used before you approve it: sharedos mcp inspect ${server}\n`,
      );
    });

  command
    .command('inspect')
    .argument('<server>', 'one of your servers')
    .description('What the server says of its tools now. It is a stranger’s text: judge it before you approve it.')
    .addHelpText('after', '\nExample:\n  $ sharedos mcp inspect crm')
    .action(async (server: string, _: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const found = await connected(invocation, async ({ mcpServers }) => valueOf(await mcpServers.inspect(server)));
      invocation.show(found, inspectedText(found));
    });

  command
    .command('approve')
    .argument('<server>', 'one of your servers')
    .description('Approve tools as you saw them. What is not approved here is not a tool of the server any more.')
    .requiredOption('--seen <hash>', 'which list you saw: sharedos mcp inspect ends with it')
    .option('--tool <name...>', 'only these tools (default: all that can be used)')
    .option('--needs <tool=action:path...>', 'what a call of the tool needs; {arguments.NAME} stands for an argument')
    .option(...COMMAND_ID)
    .addHelpText(
      'after',
      `
A call needs <action> on mcp:<server>/<path>; "call" on mcp:<server>/tools/<tool> where nothing is said of the tool.
  {arguments.customerId}   one segment of the path: a text or a whole number
  {...arguments.path}      as many segments as the argument has parts between slashes

Example:
  $ sharedos mcp approve crm --seen 3f1c… --needs "read_customer=read:customers/{arguments.customerId}"
  $ sharedos grant issue --to agent:scout --resource mcp:crm/customers/acme --action read`,
    )
    .action(async (server: string, { seen, tool, needs = [], commandId = randomUUID() }: ApproveOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const approval = {
        listHash: seen,
        ...(tool === undefined ? {} : { tools: [...tool] }),
        ...(needs.length === 0 ? {} : { requirements: needs.map(requirementOf) }),
      };
      const approved = await connected(invocation, async ({ mcpServers }) =>
        valueOf(await mcpServers.approve(server, approval, commandId), sameCommand(commandId)),
      );
      invocation.show({ ...approved, commandId }, serversText(approved));
    });

  command
    .command('remove')
    .argument('<server>', 'one of your servers')
    .description('Remove a server, its tools, and its secrets.')
    .option(...COMMAND_ID)
    .addHelpText('after', '\nExample:\n  $ sharedos mcp remove crm')
    .action(async (server: string, { commandId = randomUUID() }: { readonly commandId?: string }, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const left = await connected(invocation, async ({ mcpServers }) =>
        valueOf(await mcpServers.remove(server, commandId), sameCommand(commandId)),
      );
      invocation.show({ ...left, commandId }, serversText(left));
    });

  command
    .command('secret')
    .argument('<server>', 'one of your servers')
    .argument('<name>', 'a header of an HTTP server, or a variable that the operator lets you set')
    .description('Keep a secret of a server, read from standard input. It is sealed, and in no log and no record.')
    .option('--forget', 'forget it instead')
    .addHelpText('after', '\nExample:\n  $ sharedos mcp secret crm authorization < token.txt')
    .action(async (server: string, name: string, { forget }: { readonly forget?: boolean }, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const value = forget === true ? null : await secretFrom(terminal);
      const kept = await connected(invocation, async ({ mcpServers }) => valueOf(await mcpServers.secret(server, name, value)));
      invocation.show(kept, `${server} has ${kept.secrets.length === 0 ? 'no secrets' : kept.secrets.join(', ')}\n`);
    });

  command.addCommand(serveCommand(terminal), { isDefault: true });
  return command;
};

const placeOf = ({ process, url }: AddOptions): McpPlace => {
  if ((process === undefined) === (url === undefined)) throw usageFailure('a server is either a --process or a --url');
  return process === undefined ? { kind: 'http', url: url as string } : { kind: 'process', process };
};

/** `read_customer=read:customers/{arguments.customerId}` */
export const requirementOf = (text: string): { readonly name: string; readonly requirement: McpRequirement } => {
  const [, name, action, path] = /^([^=]+)=([^:]+):(.+)$/.exec(text) ?? [];
  if (name === undefined || action === undefined || path === undefined)
    throw usageFailure(
      `"${text}" says nothing of a tool: write <tool>=<action>:<path>, as in read_customer=read:customers/{arguments.customerId}`,
    );
  return { name, requirement: { action, path: path.split('/') } };
};

const SECRET_BYTES_MAX = 16 * 1024;

const secretFrom = async (terminal: Terminal): Promise<string> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of terminal.stdin ?? process.stdin) {
    chunks.push(Buffer.from(chunk as Uint8Array));
    bytes += chunks.at(-1)?.byteLength ?? 0;
    if (bytes > SECRET_BYTES_MAX) throw usageFailure('a secret is not so long');
  }
  // Of a file that holds nothing else, its last line break is none of it.
  const value = Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '');
  if (value === '') throw usageFailure('the secret is read from standard input, and nothing was there');
  return value;
};

const needsText = ({ action, path }: McpRequirement, server: string): string => `${action} on mcp:${[server, ...path].join('/')}`;

const serversText = ({ servers }: McpServers): string => {
  if (servers.length === 0) return 'you have no MCP servers\n';
  return servers
    .map(({ server, place, tools, secrets }) => {
      const where = place.kind === 'http' ? place.url : `process ${place.process}`;
      const rows = tools.map(({ name, requirement, changed }) => [
        name,
        needsText(requirement, server),
        changed ? 'off: it has changed' : '',
      ]);
      const kept = secrets.length === 0 ? '' : `, secrets: ${secrets.join(', ')}`;
      return `${server}  ${where}${kept}\n${rows.length === 0 ? '' : table(['TOOL', 'NEEDS', ''], rows)}`;
    })
    .join('\n');
};

const inspectedText = ({ tools, refused, gone, listHash, server }: McpInspected): string =>
  [
    table(
      ['TOOL', 'STATE', 'HINT', 'DESCRIPTION'],
      tools.map(({ name, state, readOnly, description }) => [name, state, readOnly ? 'reads' : 'writes', description]),
    ),
    ...refused.map(({ name, reason }) => `${JSON.stringify(name)} cannot be used: ${reason}\n`),
    ...gone.map((name) => `${name} was approved, and is gone\n`),
    `\nsharedos mcp approve ${server} --seen ${listHash}\n`,
  ].join('');
