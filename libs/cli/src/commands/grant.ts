import { type Address, type CapabilityGrant, GrantTerms, hashOf } from '@sharedos/contracts';
import { Command, Option } from 'commander';
import { randomUUID } from 'node:crypto';
import { type Invocation, type Terminal, connected, invocationOf, readJson, sameCommand, valueOf } from '../command-line.ts';
import { parseWhen } from '../duration.ts';
import { usageFailure } from '../exit-code.ts';
import { actionHint } from '../known-tools.ts';
import { described, stateOf } from '../grant-words.ts';
import { naturalNumber, positiveInteger } from '../numbers.ts';
import { parsePrincipal } from '../principal-name.ts';
import { parseResource } from '../resource-name.ts';
import { printable } from '../table.ts';
import { exportCommand, listCommand, showCommand } from './grant-reading.ts';
import { explainCommand, treeCommand, whoCommand } from './grant-views.ts';

interface TermOptions {
  readonly to?: string;
  readonly resource?: string;
  readonly action?: readonly string[];
  readonly exact?: boolean;
  readonly purpose?: readonly string[];
  readonly from?: string;
  readonly expires?: string;
  readonly maxUses?: number;
  readonly depth?: number;
  readonly id?: string;
  readonly grant?: string;
  readonly commandId?: string;
}

export const grantCommand = (terminal: Terminal): Command => {
  const command = new Command('grant').description('Who may do what: issue, pass on, revoke, list and explain grants.');

  withTerms(command.command('issue').description('Grant somebody authority over resources of your own.'))
    .addHelpText(
      'after',
      `
Examples:
  $ sharedos grant issue --to agent:scout --resource files:notes --action read
  $ sharedos grant issue --to agent:scout --resource files:notes --action read --purpose "read notes" --expires 12h --max-uses 5
  $ sharedos grant issue --grant terms.json --json

What is the same: a command with the same --command-id, from the same principal, for the same grant, counts once, and is answered as
it was the first time. Without --id the id of the grant follows from the command id. Without --command-id every run is a new command.`,
    )
    .action(async (options: TermOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      hintAt(terminal, options);
      const { commandId = randomUUID() } = options;
      const termsFrom = await termsOf(terminal, options, commandId);
      const { grant, revision } = await connected(invocation, async ({ grants, principal }) =>
        valueOf(await grants.issue(termsFrom(principal, 'issue'), commandId), sameCommand(commandId)),
      );
      invocation.show({ grant, revision, commandId }, `issued ${described(grant)}\n`);
      warnOfExpiry(invocation, grant);
    });

  withTerms(command.command('derive').argument('<parent>', 'the grant to pass on').description('Pass on part of a grant that you hold.'))
    .addHelpText(
      'after',
      `
Example:
  $ sharedos grant issue --to agent:scout --resource files:notes --action read --depth 1 --id grant-1
  $ sharedos grant derive grant-1 --as agent:scout --to human:bob --resource files:notes/ideas --action read

Only a grant with a delegation depth (--depth) and without a bound on uses can be passed on, and only within what it grants. Its
resources stay those of its owner.

What is the same: a command with the same --command-id, from the same principal, for the same grant, counts once, and is answered as
it was the first time, unless the parent was revoked meanwhile. Without --id the id of the grant follows from the command id. Without
--command-id every run is a new command.`,
    )
    .action(async (parent: string, options: TermOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      hintAt(terminal, options);
      const { commandId = randomUUID() } = options;
      const termsFrom = await termsOf(terminal, options, commandId);
      const { grant, revision } = await connected(invocation, async ({ grants, principal }) =>
        valueOf(await grants.derive(parent, termsFrom(principal, 'derive'), commandId), sameCommand(commandId)),
      );
      invocation.show({ grant, revision, commandId }, `derived ${described(grant)}\n`);
      warnOfExpiry(invocation, grant);
    });

  command
    .command('revoke')
    .argument('<grant>', 'its id')
    .description('End a grant. Once this is answered, no turn opens that still uses it or one derived from it.')
    .option('--reason <text>', 'kept with the revocation')
    .option('--command-id <id>', 'makes a repetition the same command, which counts once (default: a new one)')
    .addHelpText('after', '\nExample:\n  $ sharedos grant revoke grant-1 --reason "job done"\n\nRevoking a grant again changes nothing.')
    .action(async (grantId: string, options: { readonly reason?: string; readonly commandId?: string }, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const { commandId = randomUUID() } = options;
      const { grant, revision } = await connected(invocation, async ({ grants }) =>
        valueOf(await grants.revoke(grantId, options.reason, commandId), sameCommand(commandId)),
      );
      invocation.show({ grant, revision, commandId }, `revoked ${printable(grant.id)} at ${grant.revokedAt ?? revision}\n`);
    });

  listCommand(command, terminal);
  showCommand(command, terminal);
  treeCommand(command, terminal);
  explainCommand(command, terminal);
  whoCommand(command, terminal);
  exportCommand(command, terminal);
  return command;
};

const warnOfExpiry = ({ terminal }: Invocation, grant: CapabilityGrant): void => {
  if (stateOf(grant, Date.now()) === 'expired')
    terminal.err(`note: ${printable(grant.id)} expired at ${grant.constraints.expiresAt ?? ''} already, so it permits nothing\n`);
};

const hintAt = (terminal: Terminal, { resource, action = [] }: TermOptions): void => {
  const hint = resource === undefined ? [] : actionHint(parseResource(resource).namespace, action);
  for (const line of hint) terminal.err(`note: ${printable(line)}\n`);
};

const withTerms = (command: Command): Command =>
  command
    .option('--to <kind:id>', 'who is to hold it')
    .option('--resource <namespace:path>', 'over what, as in files:notes')
    .option('--action <names...>', 'which actions, as in read')
    .option('--exact', 'over that one resource, and not over what lies below it')
    .option('--purpose <texts...>', 'only for these purposes')
    .option('--from <when>', 'not before a time, or a duration from now')
    .option('--expires <when>', 'until a time, or for a duration from now')
    .addOption(new Option('--max-uses <count>', 'at most so many uses').argParser(positiveInteger))
    .addOption(new Option('--depth <count>', 'how often it may be passed on').argParser(naturalNumber))
    .option('--id <id>', 'its id (default: one that follows from the command id)')
    .option('--grant <file>', 'all of this as JSON in a file, or - for standard input')
    .option('--command-id <id>', 'makes a repetition the same command, which counts once (default: a new one)');

/** The terms, but for who states them: what is wrong with a command line is said before anything is connected. */
const termsOf = async (
  terminal: Terminal,
  options: TermOptions,
  commandId: string,
): Promise<(from: Address, verb: 'issue' | 'derive') => GrantTerms> => {
  if (options.grant !== undefined) {
    const parsed = GrantTerms.safeParse(await readJson(terminal, options.grant));
    if (!parsed.success)
      throw usageFailure(
        `${options.grant} does not describe a grant: ${parsed.error.issues[0]?.path.join('.') ?? ''} ${parsed.error.issues[0]?.message ?? ''}`,
      );
    return () => parsed.data;
  }
  const { to, resource, action } = options;
  if (to === undefined || resource === undefined || action === undefined)
    throw usageFailure('a grant needs --to, --resource and --action, or --grant with a file');
  const now = Date.now();
  const stated: Omit<GrantTerms, 'id'> = {
    subject: parsePrincipal(to),
    capabilities: [{ resource: parseResource(resource), actions: [...action], scope: options.exact === true ? 'exact' : 'descendants' }],
    constraints: {
      ...(options.purpose === undefined ? {} : { purposes: [...options.purpose] }),
      ...(options.from === undefined ? {} : { notBefore: parseWhen(options.from, now) }),
      ...(options.expires === undefined ? {} : { expiresAt: parseWhen(options.expires, now) }),
      ...(options.maxUses === undefined ? {} : { maxUses: options.maxUses }),
      ...(options.depth === undefined ? {} : { delegationDepth: options.depth }),
    },
  };
  return (from, verb) => ({ id: options.id ?? `grant-${hashOf([verb, from, commandId]).slice(0, 12)}`, ...stated });
};
