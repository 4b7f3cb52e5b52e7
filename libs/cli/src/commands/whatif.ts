import { type Difference, GrantTerms, type Supposition } from '@sharedos/contracts';
import { Command } from 'commander';
import { type Terminal, connected, invocationOf, readJson } from '../command-line.ts';
import { usageFailure } from '../exit-code.ts';
import { parsePrincipal, principalName } from '../principal-name.ts';
import { type TimeOptions, auditorOf, computedAgain, differenceText, timeOf } from './audit-replay.ts';

/** What recorded requests would have come to, had one event of the log been another. Nothing is changed by asking. */
export const whatifCommand = (terminal: Terminal): Command => {
  const command = new Command('whatif').description('What would have come out otherwise, had a grant been revoked or issued before.');
  const timed = (leaf: Command): Command =>
    leaf
      .option('--from <time>', 'decisions from an instant on, or so long ago (default: 24h)')
      .option('--to <time>', 'decisions before an instant');
  const run = async (self: Command, options: TimeOptions, suppose: Supposition): Promise<void> => {
    const invocation = invocationOf(terminal, self);
    const time = timeOf({ ...options, from: options.from ?? '24h' });
    const all = await connected(invocation, (sharedos) => computedAgain(sharedos, terminal, { ...time, suppose }), auditorOf);
    const agents = [...new Set(all.differing.map(({ record }) => principalName(record.event.actor)))].sort();
    const runningTurns = [...new Set(all.differing.flatMap(runningTurnOf))].sort();
    const { decisions, differing } = all;
    const text = [
      ...differing.map(differenceText),
      `${differing.length} of ${decisions} decisions would have come out otherwise`,
      ...(agents.length === 0 ? [] : [`agents and others: ${agents.join(', ')}`]),
      ...(runningTurns.length === 0 ? [] : [`turns running now: ${runningTurns.join(', ')} (they keep what they opened with)`]),
    ];
    invocation.show({ decisions, differing, agents, runningTurns, noBasis: all.noBasis }, `${text.join('\n')}\n`);
  };
  timed(command.command('revoke'))
    .description('Had a grant been revoked before anything was decided by it, or by what was derived from it.')
    .argument('<grant>', 'the id of the grant')
    .action((grantId: string, options: TimeOptions, self: Command) => run(self, options, { kind: 'revoke', grantId }));
  timed(command.command('issue'))
    .description('Had one more root grant been there.')
    .argument('<file>', 'the terms of the grant, as "grant issue --grant" takes them; - for standard input')
    .requiredOption('--issuer <kind:id>', 'over whose resources it would be')
    .action(async (file: string, options: TimeOptions & { readonly issuer: string }, self: Command) => {
      const terms = GrantTerms.safeParse(await readJson(terminal, file));
      if (!terms.success) throw usageFailure(`${file} holds no terms of a grant`);
      await run(self, options, { kind: 'issue', issuer: parsePrincipal(options.issuer), grant: terms.data });
    });
  return command;
};

const runningTurnOf = ({ record, turnIsRunning }: Difference): readonly string[] => {
  const turnId = record.event.metadata?.['turnId'];
  return turnIsRunning && typeof turnId === 'string' ? [turnId] : [];
};
