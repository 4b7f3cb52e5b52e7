import {
  type Json,
  OPERATION_KINDS,
  OPERATION_STATES,
  type OperationAt,
  type OperationKind,
  type OperationState,
  type OperationSummary,
} from '@sharedos/contracts';
import type { SharedOS } from '@sharedos/client';
import { Command, Option } from 'commander';
import { type Invocation, type Terminal, commandText, connected, invocationOf, parseJson, readJson, valueOf } from '../command-line.ts';
import { parseSince } from '../duration.ts';
import { usageFailure } from '../exit-code.ts';
import { positiveInteger } from '../numbers.ts';
import { parsePrincipal, principalName } from '../principal-name.ts';
import { printable, table } from '../table.ts';
import { timelineText } from '../timeline.ts';

interface NameOptions {
  readonly kind: OperationKind;
  readonly of?: string;
}

interface ListOptions {
  readonly state?: OperationState;
  readonly kind?: OperationKind;
  readonly of?: string;
  readonly since?: string;
  readonly limit?: number;
}

interface ResolveOptions extends NameOptions {
  readonly call?: string;
  readonly happened?: boolean;
  readonly didNotHappen?: boolean;
  readonly output?: string;
  readonly note?: string;
  readonly expectedRevision?: number;
}

const kindOption = () => new Option('--kind <kind>', 'a turn, or a message').choices(OPERATION_KINDS);

export const ledgerCommand = (terminal: Terminal): Command => {
  const command = new Command('ledger').description('What was admitted, done and answered, and what nobody can tell of.');
  listCommand(command, terminal);
  showCommand(command, terminal);
  resolveCommand(command, terminal);
  return command;
};

const listCommand = (command: Command, terminal: Terminal): void => {
  command
    .command('list')
    .description('Turns and messages of everybody, by when something was last recorded of them, newest first.')
    .addOption(new Option('--state <state>', 'only those').choices(OPERATION_STATES))
    .addOption(kindOption())
    .option('--of <kind:id>', 'those that this principal asked for')
    .option('--since <when>', 'those of which something was recorded since: a time, or so long ago, such as 2h')
    .addOption(new Option('--limit <count>', 'at most so many, up to 200').argParser(positiveInteger))
    .addHelpText(
      'after',
      '\nExamples:\n  $ sharedos ledger list --state unknown\n  $ sharedos ledger list --of human:alice --since 2h --json',
    )
    .action(async ({ state, kind, of, since, limit }: ListOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const query = {
        ...(state === undefined ? {} : { state }),
        ...(kind === undefined ? {} : { kind }),
        ...(of === undefined ? {} : { requester: parsePrincipal(of) }),
        ...(since === undefined ? {} : { since: parseSince(since, Date.now()) }),
        ...(limit === undefined ? {} : { limit }),
      };
      const found = await connected(invocation, async ({ operations }) => valueOf(await operations.list(query)));
      const rows = found.operations.map(rowOf);
      const text = rows.length === 0 ? 'no operations\n' : table(['KIND', 'OF', 'ID', 'STATE', 'ANSWER', 'UNKNOWN', 'AT'], rows);
      invocation.show(found, found.more ? `${text}there are more: narrow it down, or raise --limit\n` : text);
    });
};

const rowOf = ({ kind, requester, operationId, state, status, code, unknownCalls, endedAt, at }: OperationSummary) => [
  kind,
  requester === undefined ? undefined : principalName(requester),
  operationId,
  state,
  code ?? status,
  unknownCalls.length === 0 ? undefined : unknownCalls.join(' '),
  endedAt ?? at,
];

const showCommand = (command: Command, terminal: Terminal): void => {
  command
    .command('show')
    .argument('<id>', 'the execution id of a turn, or the id of a message')
    .description('What was recorded of one turn or message, in order.')
    .addOption(kindOption().default('execution'))
    .option('--of <kind:id>', 'who asked for it (default: you)')
    .addHelpText('after', '\nExample:\n  $ sharedos ledger show 7f3c… --of human:bob')
    .action(async (id: string, options: NameOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const shown = await connected(invocation, async (sharedos) => valueOf(await sharedos.operations.show(nameOf(sharedos, id, options))));
      invocation.show(shown, inFull(invocation, id, options, shown));
    });
};

const resolveCommand = (command: Command, terminal: Terminal): void => {
  command
    .command('resolve')
    .argument('<id>', 'the execution id of a turn, or the id of a message')
    .description('State what became of a call that was left unknown, once you have found it out where it would have happened.')
    .addOption(kindOption().default('execution'))
    .option('--of <kind:id>', 'who asked for it (default: you)')
    .option('--call <id>', 'the call (default: the only one that is unknown)')
    .option('--happened', 'its effect is there')
    .option('--did-not-happen', 'its effect is not there, and cannot come any more')
    .option('--output <json>', 'with --happened: what the call would have answered; @file reads a file, @- standard input')
    .option('--note <text>', 'how you know; kept beside it')
    .addOption(new Option('--expected-revision <n>', 'refuse it when anything was recorded since').argParser(positiveInteger))
    .addHelpText(
      'after',
      `
Examples:
  $ sharedos ledger resolve 7f3c… --of human:bob --happened --note "the line is in the file"
  $ sharedos ledger resolve 7f3c… --of human:bob --call call-3 --did-not-happen

It starts nothing and undoes nothing. The turn stays as it ended; whoever asks for it again hears what was found. A message is answered
by it. The first finding stands: the same again changes nothing, another is refused.`,
    )
    .action(async (id: string, options: ResolveOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const { happened, didNotHappen, note, expectedRevision } = options;
      if ((happened === true) === (didNotHappen === true)) throw usageFailure('say --happened or --did-not-happen');
      if (options.output !== undefined && happened !== true) throw usageFailure('only what happened has an --output');
      const output = options.output === undefined ? undefined : await outputOf(terminal, options.output);
      await connected(invocation, async (sharedos) => {
        const name = nameOf(sharedos, id, options);
        const callId = options.call ?? (await onlyUnknownCall(sharedos, name));
        const resolved = valueOf(
          await sharedos.operations.resolve({
            ...name,
            callId,
            outcome: happened === true ? 'happened' : 'did_not_happen',
            ...(output === undefined ? {} : { output }),
            ...(note === undefined ? {} : { note }),
            ...(expectedRevision === undefined ? {} : { expectedLedgerRevision: expectedRevision }),
          }),
          { text: 'The same command again changes nothing' },
        );
        invocation.show(resolved, inFull(invocation, id, options, resolved));
      });
    });
};

const nameOf = ({ principal }: Pick<SharedOS, 'principal'>, operationId: string, { kind, of }: NameOptions) => ({
  kind,
  requester: of === undefined ? principal : parsePrincipal(of),
  operationId,
});

const onlyUnknownCall = async ({ operations }: SharedOS, name: ReturnType<typeof nameOf>): Promise<string> => {
  const { operation } = valueOf(await operations.show(name));
  const [call, ...more] = operation.unknownCalls;
  if (call === undefined) throw usageFailure('nothing of it is unknown; with --call, what stands of a call can be stated again');
  if (more.length > 0)
    throw usageFailure(`several calls are unknown, name one with --call: ${printable(operation.unknownCalls.join(', '))}`);
  return call;
};

const outputOf = async (terminal: Terminal, text: string): Promise<Json> =>
  (text.startsWith('@') ? await readJson(terminal, text.slice(1)) : parseJson(text, '--output')) as Json;

const inFull = (
  invocation: Invocation,
  id: string,
  { kind, of }: NameOptions,
  { operation, timeline, ledgerRevision }: OperationAt,
): string => {
  const { state, unknownCalls, agent, traceId, code, status } = operation;
  const answer = status === undefined ? '' : `, answered ${status}${code === undefined ? '' : ` (${code})`}`;
  const head = [
    `${printable(operation.operationId ?? id)} is ${state}${answer}`,
    agent === undefined ? undefined : `agent ${printable(agent.agentId)}`,
    traceId === undefined ? undefined : `trace ${printable(traceId)}`,
    `revision ${ledgerRevision}`,
  ];
  const words = ['ledger', 'resolve', id, ...(kind === 'execution' ? [] : ['--kind', kind]), ...(of === undefined ? [] : ['--of', of])];
  const next = unknownCalls.map(
    (call) =>
      `unknown: ${printable(call)}; once you know: ${commandText(invocation, ...words, '--call', call, '--happened')} (or --did-not-happen)\n`,
  );
  return `${head.filter((part) => part !== undefined).join(', ')}\n${timelineText(timeline)}${next.join('')}`;
};
