import { type ScriptedCall, type SubmittedTurn, newTurn } from '@sharedos/client';
import {
  type Address,
  type ExecutionEvent,
  type ExecutionResult,
  type Json,
  type JsonObj,
  TURN_STATES,
  TurnRequest,
  type TurnState,
  timestampOf,
} from '@sharedos/contracts';
import { Command, Option } from 'commander';
import {
  type Again,
  type Invocation,
  type Terminal,
  commandText,
  connected,
  invocationOf,
  parseJson,
  readJson,
  untilStopped,
  valueOf,
} from '../command-line.ts';
import { parseSince, parseTimestamp } from '../duration.ts';
import { CommandFailure, EXIT, saying, usageFailure } from '../exit-code.ts';
import { positiveInteger } from '../numbers.ts';
import { parsePrincipal } from '../principal-name.ts';
import { parsePath } from '../resource-name.ts';
import { toolHint } from '../known-tools.ts';
import { shellWord } from '../shell-word.ts';
import { printable, table } from '../table.ts';
import { timelineText } from '../timeline.ts';
import { type AnsweredCall, resultText, scriptedCalls } from '../turn-result.ts';

interface SubmitCommandOptions {
  readonly agent?: string;
  readonly purpose?: string;
  readonly message?: string;
  readonly call?: readonly string[];
  readonly owner?: string;
  readonly id?: string;
  readonly trace?: string;
  readonly at?: string;
  readonly request?: string;
  readonly wait: boolean;
  readonly waitFor?: number;
}

export const turnCommand = (terminal: Terminal): Command => {
  const command = new Command('turn').description('Let an agent run one bounded turn, and see what became of it.');

  command
    .command('submit')
    .description('Queue a turn and wait for its result.')
    .option('--agent <id>', 'which agent runs it')
    .option('--purpose <text>', 'what it is for; grants may be bound to purposes')
    .option('--message <text>', 'what the agent is told')
    .option(
      '--call <call>',
      'for an agent that runs a script: a tool, then a path or JSON arguments, as one text; repeatable',
      (value: string, all: readonly string[] | undefined) => [...(all ?? []), value],
    )
    .option('--owner <kind:id>', 'whose resources are meant (default: your own)')
    .option('--id <id>', 'its execution id (default: a new one)')
    .option('--at <timestamp>', 'when it is asked, at most 7 days ago (default: now)', parseTimestamp)
    .option('--trace <id>', 'its trace id (default: one that follows from --id and --at)')
    .option('--request <file>', 'the whole request as JSON in a file, or - for standard input')
    .option('--no-wait', 'only queue it')
    .addOption(new Option('--wait-for <ms>', 'how long to wait for the result').argParser(positiveInteger))
    .addHelpText(
      'after',
      `
Examples:
  $ sharedos turn submit --agent scout --purpose "read notes" --call "files.read notes/plan.md"
  $ sharedos turn submit --agent scout --purpose "read notes" --call "files.list notes" --call 'files.search {"path":["notes"],"query":"milk"}'
  $ sharedos turn submit --request turn.json --no-wait --json
  $ sharedos turn submit --agent scout --purpose "read notes" --id turn-1 --at 2026-12-01T12:00:00Z --call "files.read notes/plan.md"

What is the same: a request with the same --id and --at, from the same principal, with everything else unchanged, or the same file
given with --request, runs once and is answered as it was the first time. The same --id with anything else is refused.

It exits with 1 when the turn, or any call of its script, was refused or failed; the result is printed all the same.`,
    )
    .action(async (options: SubmitCommandOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const requestAs = await requestOf(terminal, options);
      for (const hint of (options.call ?? []).flatMap((call) => toolHint(parseCall(call).tool))) terminal.err(`note: ${printable(hint)}\n`);
      await connected(invocation, async ({ turns, principal }) => {
        const request = requestAs(principal);
        const submitted = valueOf(
          await turns.submit(request, options.waitFor === undefined ? {} : { resultTimeoutMs: options.waitFor }),
          perhapsQueued(invocation, request, options.request),
        );
        const { executionId } = submitted;
        const { traceId } = request.message;
        if (!options.wait) {
          invocation.show(
            { executionId, sequence: submitted.sequence, traceId },
            `queued ${printable(executionId)} at place ${submitted.sequence}, trace ${printable(traceId)}\nits result: ${commandText(invocation, 'turn', 'show', executionId)}\n`,
          );
          return;
        }
        const result = await resultOf(invocation, submitted, traceId);
        // People who read why a turn did not succeed need not read it twice.
        if (result.status === 'succeeded' || invocation.options.json === true) invocation.show(result, resultText(result));
        if (result.status !== 'succeeded') throw notSucceeded(result, request.agent.agentId);
        const refusedCalls = (scriptedCalls(result.output) ?? []).filter(({ status }) => status !== 'succeeded');
        if (refusedCalls.length > 0) throw callsNotSucceeded(result, refusedCalls);
      });
    });

  command
    .command('list')
    .description('Your turns, newest first.')
    .addOption(new Option('--state <state>', 'only those').choices(TURN_STATES))
    .option('--agent <id>', 'those of one agent')
    .option('--since <when>', 'those heard of since: a time, or so long ago, such as 2h')
    .addOption(new Option('--limit <count>', 'at most so many').argParser(positiveInteger))
    .addHelpText(
      'after',
      '\nExamples:\n  $ sharedos turn list\n  $ sharedos turn list --state running --json\n  $ sharedos turn list --agent scout --since 2h',
    )
    .action(async ({ state, agent, since, limit }: ListOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const query = {
        ...(state === undefined ? {} : { state }),
        ...(agent === undefined ? {} : { agent: { kind: 'agent' as const, agentId: agentIdOf(agent) } }),
        ...(since === undefined ? {} : { since: parseSince(since, Date.now()) }),
        ...(limit === undefined ? {} : { limit }),
      };
      const turns = await connected(invocation, async (sharedos) => valueOf(await sharedos.turns.list(query)));
      const anyAgent = turns.some(({ agent }) => agent !== undefined);
      const rows = turns.map(({ executionId, state, code, agent, at }) => [
        executionId,
        state,
        code,
        ...(anyAgent ? [agent?.agentId] : []),
        at,
      ]);
      const header = ['TURN', 'STATE', 'CODE', ...(anyAgent ? ['AGENT'] : []), 'AT'];
      invocation.show({ turns }, rows.length === 0 ? 'no turns\n' : table(header, rows));
    });

  command
    .command('show')
    .argument('<turn>', 'its execution id')
    .description('What became of a turn, and what was recorded of it.')
    .addHelpText('after', '\nExample:\n  $ sharedos turn show 7f3c… --json')
    .action(async (executionId: string, _: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const found = await connected(invocation, async ({ turns }) => valueOf(await turns.get(executionId)));
      const { summary, result } = found;
      const trace = summary.traceId === undefined ? '' : `, trace ${printable(summary.traceId)}`;
      const text = result === undefined ? `${printable(summary.executionId)} is ${summary.state}${trace}\n` : resultText(result);
      invocation.show(found, found.timeline === undefined ? text : `${text}\n${timelineText(found.timeline)}`);
    });

  command
    .command('watch')
    .argument('<turn>', 'its execution id')
    .description('Follow a turn of yours, whoever submitted it, until it ends.')
    .addHelpText(
      'after',
      '\nExample:\n  $ sharedos turn watch 7f3c…\n\nIt exits with 1 when the turn was refused or failed. With --json it prints {"event"} as they come and {"result"} last, one a line.',
    )
    .action(async (executionId: string, _: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      await connected(invocation, async ({ turns }) => {
        const onEvent = (event: ExecutionEvent): void => invocation.show({ event }, eventLine(event));
        const watcher = valueOf(await turns.watch(executionId, { onEvent, resultTimeoutMs: WATCHED_MS }));
        const stopped = untilStopped(terminal).then(() => 'stopped' as const);
        const ended = await Promise.race([watcher.result, stopped]);
        if (ended === 'stopped') return watcher.stop();
        const { result } = valueOf(ended);
        invocation.show({ result }, resultText(result));
        if (result.status !== 'succeeded') throw endedOtherwise(result);
      });
    });

  command
    .command('cancel')
    .argument('<turn>', 'its execution id')
    .description('Stop a turn that runs, or take it out of the queue.')
    .addHelpText('after', '\nExample:\n  $ sharedos turn cancel 7f3c…')
    .action(async (executionId: string, _: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const outcome = await connected(invocation, async ({ turns }) => valueOf(await turns.cancel(executionId)));
      const said = { cancelling: 'is told to stop', cancelled: 'was not yet taken and never will be', ended: 'had ended already' }[outcome];
      invocation.show({ executionId, outcome }, `${printable(executionId)} ${said}\n`);
    });
  return command;
};

interface ListOptions {
  readonly state?: TurnState;
  readonly agent?: string;
  readonly since?: string;
  readonly limit?: number;
}

/** Longer than any turn waits and runs. */
const WATCHED_MS = 7 * 86_400_000;

const eventLine = ({ sequence, type, occurredAt, data }: ExecutionEvent): string =>
  `${occurredAt} ${String(sequence).padStart(3)} ${printable(type)}${isEmpty(data) ? '' : ` ${printable(JSON.stringify(data)).slice(0, EVENT_SHOWN)}`}\n`;
const EVENT_SHOWN = 200;
const isEmpty = (data: Json): boolean => data === null || (typeof data === 'object' && Object.keys(data).length === 0);

/** Everywhere else an agent is written with its kind, so it may be here too. */
const agentIdOf = (named: string): string => (named.startsWith('agent:') ? named.slice('agent:'.length) : named);

/** `files.read notes/plan.md`, or a tool and JSON arguments. */
export const parseCall = (text: string): ScriptedCall => {
  const [, tool = '', rest = ''] = /^\s*(\S+)\s*(.*)$/s.exec(text) ?? [];
  if (tool === '') throw usageFailure('a call names a tool, as in "files.read notes/plan.md"');
  if (!rest.startsWith('{')) return { tool, arguments: { path: parsePath(rest.trim()) } };
  return { tool, arguments: parseJson(rest, `the arguments of ${tool}`) as JsonObj };
};

/** The request, but for who asks: what is wrong with a command line is said before anything is connected. */
const requestOf = async (terminal: Terminal, options: SubmitCommandOptions): Promise<(from: Address) => TurnRequest> => {
  if (options.request !== undefined) {
    const parsed = TurnRequest.schema.safeParse(await readJson(terminal, options.request));
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      throw usageFailure(`${options.request} is not a turn request: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
    }
    return () => parsed.data;
  }
  const { agent: named, purpose, call = [] } = options;
  const agent = named === undefined ? undefined : agentIdOf(named);
  if (agent === undefined || purpose === undefined) throw usageFailure('a turn needs --agent and --purpose, or --request with a file');
  const stated = {
    agent,
    purpose,
    ...(options.message === undefined ? {} : { payload: options.message }),
    ...(call.length === 0 ? {} : { calls: call.map(parseCall) }),
    ...(options.owner === undefined ? {} : { owner: parsePrincipal(options.owner) }),
    ...(options.id === undefined ? {} : { executionId: options.id }),
    ...(options.trace === undefined ? {} : { traceId: options.trace }),
    at: options.at ?? timestampOf(Date.now()),
  };
  return (from) => newTurn({ from, ...stated });
};

/** Nobody knows whether the queue took it: whoever asked can look, or make exactly the same request again. */
const perhapsQueued = (invocation: Invocation, { executionId, requestedAt }: TurnRequest, file: string | undefined): Again => {
  const look = `The turn may be queued: see "${commandText(invocation, 'turn', 'show', executionId)}"`;
  const repeat =
    file === undefined
      ? `this command with --id ${shellWord(printable(executionId))} --at ${requestedAt} is the same request, which runs once`
      : 'the same file again is the same request, which runs once';
  return { text: `${look}; ${repeat}`, details: { executionId, requestedAt } };
};

const resultOf = async (invocation: Invocation, { executionId, result }: SubmittedTurn, traceId: string): Promise<ExecutionResult> => {
  const again = { text: `Its result: "${commandText(invocation, 'turn', 'show', executionId)}"`, details: { executionId, traceId } };
  return valueOf(await result, again).result;
};

const endedOtherwise = (result: ExecutionResult): CommandFailure => {
  const { executionId, status, traceId } = result;
  const code = 'error' in result && result.error !== undefined ? result.error.code : status;
  const see = `See "sharedos records query --trace ${shellWord(printable(traceId))}"`;
  return new CommandFailure(EXIT.refused, code, printable(`${executionId} ended as ${status} (${code}). ${see}`));
};

const callsNotSucceeded = ({ traceId }: ExecutionResult, calls: readonly AnsweredCall[]): CommandFailure => {
  const said = calls.map(({ tool, status, code = status }) => `${printable(tool)} (${printable(code)})`).join(', ');
  return new CommandFailure(
    EXIT.refused,
    'call_not_succeeded',
    `refused or failed: ${said}. See "sharedos records query --trace ${shellWord(printable(traceId))}"`,
  );
};

const notSucceeded = (result: ExecutionResult, agentId: string): CommandFailure => {
  const error =
    'error' in result && result.error !== undefined
      ? result.error
      : { code: result.status, message: `The turn ended as ${result.status}.` };
  const { code } = error;
  const next =
    result.status === 'denied' && code === 'no_matching_grant'
      ? `To let the agent be run for you: sharedos grant issue --to ${shellWord(printable(`agent:${agentId}`))} --resource ${shellWord(printable(`sharedos.execution:agent/${agentId}`))} --action invoke --exact`
      : `See "sharedos records query --trace ${shellWord(printable(result.traceId))}"`;
  return new CommandFailure(EXIT.refused, code, printable(`${result.executionId} ended as ${result.status} ${saying(error)} ${next}`));
};
