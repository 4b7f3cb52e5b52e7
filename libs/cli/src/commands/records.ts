import { AuditOutcome, AuditType, type RecordsQuery } from '@sharedos/contracts';
import { Command, Option } from 'commander';
import { auditLine } from '../audit-line.ts';
import { type Terminal, connected, invocationOf, valueOf } from '../command-line.ts';
import { naturalNumber, positiveInteger } from '../numbers.ts';
import { parsePrincipal } from '../principal-name.ts';

interface QueryOptions {
  readonly trace?: string;
  readonly operation?: string;
  readonly turn?: string;
  readonly type?: RecordsQuery['type'];
  readonly outcome?: RecordsQuery['outcome'];
  readonly authority?: string;
  readonly limit?: number;
  readonly after?: number;
}

const HEADER = ' PLACE  TIME (UTC)     RECORD\n';

export const recordsCommand = (terminal: Terminal): Command => {
  const command = new Command('records').description('Ask the audit records.');
  command
    .command('query')
    .description('Records in the order they were made. It needs a grant to read the audit.')
    .option('--trace <id>', 'of one trace: everything about a turn, whose "turn submit" and "turn show" print it')
    .option('--operation <id>', 'of one operation: a single call or message, or the end of a turn; for all of a turn see --trace')
    .option('--turn <id>', 'of one turn, by the id that its records carry')
    .addOption(new Option('--type <type>', 'of one kind').choices(AuditType.options))
    .addOption(new Option('--outcome <outcome>', 'that came out so').choices(AuditOutcome.options))
    .option('--authority <kind:id>', 'whose grant to read is used')
    .addOption(new Option('--limit <count>', 'at most so many').argParser(positiveInteger))
    .addOption(new Option('--after <place>', 'only later ones').argParser(naturalNumber))
    .addHelpText('after', '\nExamples:\n  $ sharedos records query --outcome denied\n  $ sharedos records query --trace 4d2e… --json')
    .action(async (options: QueryOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const query: RecordsQuery = {
        ...(options.trace === undefined ? {} : { traceId: options.trace }),
        ...(options.operation === undefined ? {} : { operationId: options.operation }),
        ...(options.turn === undefined ? {} : { turnId: options.turn }),
        ...(options.type === undefined ? {} : { type: options.type }),
        ...(options.outcome === undefined ? {} : { outcome: options.outcome }),
        ...(options.authority === undefined ? {} : { authority: parsePrincipal(options.authority) }),
        ...(options.limit === undefined ? {} : { limit: options.limit }),
        ...(options.after === undefined ? {} : { after: options.after }),
      };
      const found = await connected(
        invocation,
        async ({ records }) => valueOf(await records.query(query)),
        (context) => context.auditor ?? context.defaultPrincipal,
      );
      const lines = found.records.map(({ sequence, event }) => `${String(sequence).padStart(6)}  ${auditLine(event)}\n`);
      const more = found.next === undefined ? '' : `more: --after ${found.next}\n`;
      invocation.show(found, found.records.length === 0 ? 'no records\n' : `${HEADER}${lines.join('')}${more}`);
    });
  return command;
};
