import { type Capability, type EscalationItem, type EscalationResolution, EscalationStatus } from '@sharedos/contracts';
import { Command, Option } from 'commander';
import { randomUUID } from 'node:crypto';
import { type Invocation, type Terminal, commandText, connected, invocationOf, sameCommand, valueOf } from '../command-line.ts';
import { parseWhen } from '../duration.ts';
import { escalationText, escalationsText } from '../escalation-words.ts';
import { usageFailure } from '../exit-code.ts';
import { positiveInteger } from '../numbers.ts';
import { parseResource } from '../resource-name.ts';
import { printable } from '../table.ts';

interface ListOptions {
  readonly status?: EscalationItem['status'];
  readonly limit?: number;
}

interface AnswerOptions {
  readonly resource?: string;
  readonly action?: readonly string[];
  readonly exact?: boolean;
  readonly expires?: string;
  readonly maxUses?: number;
  readonly reason?: string;
  readonly commandId?: string;
}

const AGAIN = '--command-id <id>';
const AGAIN_MEANS = 'makes a repetition the same command, which counts once (default: a new one)';

export const escalationCommand = (terminal: Terminal): Command => {
  const command = new Command('escalation').description('Questions that turns ended on: see them, and answer them.');

  command
    .command('list')
    .description('The questions that you asked, are asked, or whose resources are yours, newest first.')
    .addOption(new Option('--status <status>', 'those in this state alone').choices(EscalationStatus.options))
    .addOption(new Option('--limit <count>', 'at most so many').argParser(positiveInteger))
    .addHelpText('after', '\nExample:\n  $ sharedos escalation list --status open')
    .action(async ({ status, limit }: ListOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const query = { ...(status === undefined ? {} : { status }), ...(limit === undefined ? {} : { limit }) };
      const found = await connected(invocation, async ({ escalations }) => valueOf(await escalations.list(query)));
      invocation.show(found, escalationsText(found.escalations));
    });

  command
    .command('show')
    .argument('<question>', 'its id')
    .description('One question: who asks, why, what for, and what became of it.')
    .addHelpText('after', '\nExample:\n  $ sharedos escalation show ask-1')
    .action(async (id: string, _: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const found = await connected(invocation, async ({ escalations }) => valueOf(await escalations.show(id)));
      const next = found.escalation.status === 'open' ? nextSteps(invocation, id) : '';
      invocation.show(found, `${escalationText(found.escalation)}${next}`);
    });

  withBounds(command.command('approve'), 'give this instead of what was asked')
    .description('Say yes: whoever asked gets a grant, which its next turn finds.')
    .addHelpText(
      'after',
      `
Examples:
  $ sharedos escalation approve ask-1
  $ sharedos escalation approve ask-1 --resource files:notes --action read --expires 30m --max-uses 3

Where the question names what it wants, that is given, or --resource and --action within it. Where it names nothing, you say what to
give. The grant is for the purpose of the question; it lasts an hour and allows one use unless you say otherwise, and it cannot be passed on.
Where the question is about one call ("sharedos escalation show" has its arguments), the grant allows that very call, once.`,
    )
    .action((id: string, options: AnswerOptions, self: Command) => answer(invocationOf(terminal, self), id, approval(options), options));

  withBounds(command.command('narrow'), 'the part to give')
    .description('Say yes to a part of what was asked.')
    .addHelpText('after', '\nExample:\n  $ sharedos escalation narrow ask-1 --resource files:notes/plan.md --action read --exact')
    .action((id: string, options: AnswerOptions, self: Command) => {
      if (options.resource === undefined) throw usageFailure('say which part with --resource and --action, or approve all of it');
      return answer(invocationOf(terminal, self), id, approval(options), options);
    });

  for (const [verb, description] of [
    ['refuse', 'Say no. Nothing is granted.'],
    ['withdraw', 'Take back a question of your own.'],
  ] as const) {
    command
      .command(verb)
      .argument('<question>', 'its id')
      .description(description)
      .option('--reason <text>', 'kept with the answer, and told')
      .option(AGAIN, AGAIN_MEANS)
      .addHelpText('after', `\nExample:\n  $ sharedos escalation ${verb} ask-1 --reason "not today"`)
      .action((id: string, options: AnswerOptions, self: Command) => {
        const { reason } = options;
        return answer(invocationOf(terminal, self), id, { answer: verb, ...(reason === undefined ? {} : { reason }) }, options);
      });
  }
  return command;
};

const withBounds = (command: Command, given: string): Command =>
  command
    .argument('<question>', 'its id')
    .option('--resource <namespace:path>', given)
    .option('--action <names...>', 'which actions on it, as in read')
    .option('--exact', 'over that one resource, and not over what lies below it')
    .option('--expires <when>', 'until a time, or for a duration from now (default: an hour)')
    .addOption(new Option('--max-uses <count>', 'at most so many uses (default: 1)').argParser(positiveInteger))
    .option(AGAIN, AGAIN_MEANS);

const approval = ({ resource, action, exact, expires, maxUses }: AnswerOptions): EscalationResolution => {
  if ((resource === undefined) !== (action === undefined)) throw usageFailure('--resource and --action go together');
  if (exact === true && resource === undefined) throw usageFailure('--exact says how --resource is meant');
  const capabilities: Capability[] | undefined =
    resource === undefined || action === undefined
      ? undefined
      : [{ resource: parseResource(resource), actions: [...action], scope: exact === true ? 'exact' : 'descendants' }];
  return {
    answer: 'approve',
    ...(capabilities === undefined ? {} : { capabilities }),
    ...(expires === undefined ? {} : { expiresAt: parseWhen(expires, Date.now()) }),
    ...(maxUses === undefined ? {} : { usesMax: maxUses }),
  };
};

const answer = async (
  invocation: Invocation,
  id: string,
  resolution: EscalationResolution,
  { commandId = randomUUID() }: AnswerOptions,
): Promise<void> => {
  const answered = await connected(invocation, async ({ escalations }) =>
    valueOf(await escalations.resolve(id, resolution, commandId), sameCommand(commandId)),
  );
  const { escalation } = answered;
  invocation.show({ ...answered, commandId }, `${escalation.status} ${printable(id)}\n${escalationText(escalation)}`);
};

const nextSteps = (invocation: Invocation, id: string): string =>
  ['approve', 'refuse'].map((verb) => `${commandText(invocation, 'escalation', verb, id)}\n`).join('');
