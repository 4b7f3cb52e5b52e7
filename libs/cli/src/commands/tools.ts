import { randomUUID } from 'node:crypto';
import type { AgentAddress, ToolNamespacesAt, ToolsPage } from '@sharedos/contracts';
import { Command } from 'commander';
import { type Terminal, connected, invocationOf, sameCommand, valueOf } from '../command-line.ts';
import { positiveInteger } from '../numbers.ts';
import { table } from '../table.ts';

interface ListOptions {
  readonly purpose: string;
  readonly agent?: string;
  readonly after?: string;
  readonly limit?: number;
}

export const toolsCommand = (terminal: Terminal): Command => {
  const command = new Command('tools').description('Which tools there are, and which families of them are on.');

  command
    .command('list')
    .description('The tools that you may discover, or an agent that exercises your grants.')
    .requiredOption('--purpose <purpose>', 'what they would be used for')
    .option('--agent <id>', 'the agent that would use them')
    .option('--after <name>', 'go on after this tool')
    .option('--limit <n>', 'tools of one page, 512 at most', positiveInteger)
    .addHelpText('after', '\nExample:\n  $ sharedos tools list --agent scout --purpose "read notes"')
    .action(async ({ agent, ...asked }: ListOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const { purpose, after, limit } = asked;
      const as: { readonly agent?: AgentAddress } = agent === undefined ? {} : { agent: { kind: 'agent', agentId: agent } };
      const page = await connected(invocation, async ({ tools }) =>
        valueOf(
          await tools.list({
            purpose,
            ...as,
            ...(after === undefined ? {} : { after }),
            ...(limit === undefined ? {} : { limit }),
          }),
        ),
      );
      invocation.show(page, pageText(page));
    });

  command
    .command('namespaces')
    .description('All families of tools, and which are on.')
    .addHelpText('after', '\nExample:\n  $ sharedos tools namespaces')
    .action(async (_: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const found = await connected(invocation, async ({ tools }) => valueOf(await tools.namespaces()));
      invocation.show(found, familiesText(found));
    });

  for (const verb of ['enable', 'disable'] as const) {
    command
      .command(verb)
      .argument('<family...>', 'families of tools, such as files or repo')
      .description(`Switch families of tools ${verb === 'enable' ? 'on' : 'off'} for the namespace.`)
      .option('--command-id <id>', 'makes a repetition the same command, which counts once (default: a new one)')
      .addHelpText('after', `\nExample:\n  $ sharedos tools ${verb} repo`)
      .action(async (families: readonly string[], { commandId = randomUUID() }: { readonly commandId?: string }, self: Command) => {
        const invocation = invocationOf(terminal, self);
        const changed = await connected(invocation, async ({ tools }) =>
          valueOf(await tools.update({ [verb]: [...families] }, commandId), sameCommand(commandId)),
        );
        invocation.show({ ...changed, commandId }, familiesText(changed));
      });
  }
  return command;
};

const pageText = ({ tools, total, next }: ToolsPage): string =>
  `${table(
    ['TOOL', 'DESCRIPTION'],
    tools.map(({ name, description }) => [name, description]),
  )}${tools.length} of ${total}${next === undefined ? '' : `; go on with --after ${next}`}\n`;

const familiesText = ({ catalog }: ToolNamespacesAt): string =>
  table(
    ['FAMILY', 'TOOLS', 'ON', 'FROM'],
    catalog.namespaces.map(({ namespace, toolCount, enabled, sources }) => [
      namespace,
      String(toolCount),
      enabled ? 'yes' : 'no',
      sources.join(', '),
    ]),
  );
