import { type AgentAt, type JsonObj, JsonObj as JsonObject } from '@sharedos/contracts';
import { Command, Option } from 'commander';
import { randomUUID } from 'node:crypto';
import { type Terminal, connected, invocationOf, readJson, sameCommand, valueOf } from '../command-line.ts';
import { usageFailure } from '../exit-code.ts';
import { naturalNumber } from '../numbers.ts';
import { parsePrincipal, principalName } from '../principal-name.ts';
import { printable } from '../table.ts';

interface RegisterOptions {
  readonly authority: string;
  readonly owner?: string;
  readonly runtime?: string;
  readonly config?: string;
  readonly expectedVersion?: number;
  readonly commandId?: string;
}

export const agentCommand = (terminal: Terminal): Command => {
  const command = new Command('agent').description('Under whose authority, over whose resources and by which runtime agents run.');

  command
    .command('register')
    .argument('<agent>', 'its id, or agent:<id>')
    .description('State the terms of an agent, or agree to terms that stand by stating the same.')
    .requiredOption('--authority <kind:id>', 'whose grants it exercises when a message starts a turn of it')
    .option('--owner <kind:id>', 'over whose resources (default: the authority’s own)')
    .option('--runtime <name>', 'what runs its turns, of the runtimes that the executors have')
    .option('--config <file.json>', 'what the runtime is told at its start; - for standard input')
    .addOption(new Option('--expected-version <n>', 'refuse it when the registration has another version by now').argParser(naturalNumber))
    .option('--command-id <id>', 'makes a repetition the same command, which counts once (default: a new one)')
    .addHelpText(
      'after',
      `
Examples:
  $ sharedos agent register scout --authority human:alice
  $ sharedos agent register scout --authority human:alice --runtime remote

It is active once the authority and the owner have both stated exactly these terms: each by registering it so themselves.`,
    )
    .action(async (name: string, options: RegisterOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const { authority, owner = authority, runtime, config, expectedVersion, commandId = randomUUID() } = options;
      if (config !== undefined && runtime === undefined) throw usageFailure('--config is for a --runtime');
      const terms = {
        agentId: agentIdOf(name),
        authority: parsePrincipal(authority),
        owner: parsePrincipal(owner),
        ...(runtime === undefined ? {} : { runtime: { runtime, config: config === undefined ? {} : await configOf(terminal, config) } }),
      };
      const change = { commandId, ...(expectedVersion === undefined ? {} : { expectedVersion }) };
      const registered = await connected(invocation, async ({ agents }) =>
        valueOf(await agents.register(terms, change), sameCommand(commandId)),
      );
      invocation.show({ ...registered, commandId }, agentText(registered));
    });

  command
    .command('get')
    .argument('<agent>', 'its id, or agent:<id>')
    .description('The terms of an agent, and who agreed to them.')
    .addHelpText('after', '\nExample:\n  $ sharedos agent get scout')
    .action(async (name: string, _: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const found = await connected(invocation, async ({ agents }) => valueOf(await agents.get(agentIdOf(name))));
      invocation.show(found, agentText(found));
    });

  command
    .command('withdraw')
    .argument('<agent>', 'its id, or agent:<id>')
    .description('Take a registration back: for its authority, its owner, or whoever manages agents.')
    .option('--reason <text>', 'kept with it')
    .option('--command-id <id>', 'makes a repetition the same command, which counts once (default: a new one)')
    .addHelpText('after', '\nExample:\n  $ sharedos agent withdraw scout --reason "its work is done"')
    .action(
      async (
        name: string,
        { reason, commandId = randomUUID() }: { readonly reason?: string; readonly commandId?: string },
        self: Command,
      ) => {
        const invocation = invocationOf(terminal, self);
        const withdrawn = await connected(invocation, async ({ agents }) =>
          valueOf(await agents.withdraw(agentIdOf(name), reason, commandId), sameCommand(commandId)),
        );
        invocation.show({ ...withdrawn, commandId }, agentText(withdrawn));
      },
    );
  return command;
};

const agentIdOf = (name: string): string => (name.startsWith('agent:') ? name.slice('agent:'.length) : name);

const configOf = async (terminal: Terminal, place: string): Promise<JsonObj> => {
  const parsed = JsonObject.safeParse(await readJson(terminal, place));
  if (!parsed.success) throw usageFailure(`${place} is no JSON object`);
  return parsed.data;
};

const agentText = ({ agent: { terms, status, consents, version } }: AgentAt): string => {
  const { agentId, authority, owner, runtime } = terms;
  const missing = [authority, owner].map(principalName).filter((name) => !consents.map(principalName).includes(name));
  return printableLines([
    ['agent', agentId],
    ['state', status === 'proposed' ? `proposed: ${[...new Set(missing)].join(' and ')} still to agree` : status],
    ['authority', principalName(authority)],
    ['owner', principalName(owner)],
    ['runtime', runtime === undefined ? 'the executor’s own' : runtime.runtime],
    ['version', String(version)],
  ]);
};

const printableLines = (facts: readonly (readonly [string, string])[]): string =>
  facts.map(([name, value]) => `${name.padEnd(11)}${printable(value)}\n`).join('');
