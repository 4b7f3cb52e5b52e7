import { type AuditEvent, type AuditRecord, AuditOutcome, AuditType, type RecordsQuery, type SummaryOfRecords } from '@sharedos/contracts';
import { Command, Option } from 'commander';
import { auditLine } from '../audit-line.ts';
import { type Terminal, connected, invocationOf, valueOf } from '../command-line.ts';
import { parseSince } from '../duration.ts';
import { naturalNumber, positiveInteger } from '../numbers.ts';
import { parsePrincipal } from '../principal-name.ts';
import { recordedTurns, recordedTurnsText } from '../recorded-turns.ts';
import { parseResource } from '../resource-name.ts';
import { table } from '../table.ts';

interface QueryOptions {
  readonly trace?: string;
  readonly operation?: string;
  readonly turn?: string;
  readonly grant?: string;
  readonly actor?: string;
  readonly resource?: string;
  readonly reason?: string;
  readonly since?: string;
  readonly until?: string;
  readonly type?: RecordsQuery['type'];
  readonly outcome?: RecordsQuery['outcome'];
  readonly authority?: string;
  readonly limit?: number;
  readonly after?: number;
}

interface RecordsFound {
  readonly records: readonly AuditRecord[];
  readonly next?: number | undefined;
}

interface SummaryOptions {
  readonly since?: string;
  readonly until?: string;
  readonly authority?: string;
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
    .option('--grant <id>', 'decided by one grant')
    .option('--actor <kind:id>', 'of what one principal did')
    .option('--resource <namespace:path>', 'on a resource and all below it')
    .option('--reason <code>', 'with one reason code')
    .option('--since <time>', 'from an instant on, or so long ago: 2026-01-01T12:00:00Z, 15m')
    .option('--until <time>', 'before an instant')
    .addOption(new Option('--type <type>', 'of one kind').choices(AuditType.options))
    .addOption(new Option('--outcome <outcome>', 'that came out so').choices(AuditOutcome.options))
    .option('--authority <kind:id>', 'whose grant to read is used')
    .addOption(new Option('--limit <count>', 'at most so many').argParser(positiveInteger))
    .addOption(new Option('--after <place>', 'only later ones').argParser(naturalNumber))
    .addHelpText(
      'after',
      '\nExamples:\n  $ sharedos records query --outcome denied --since 1h\n  $ sharedos records query --resource files:notes --actor agent:scout\n  $ sharedos records query --trace 4d2e… --json',
    )
    .action(async (options: QueryOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const query: RecordsQuery = {
        ...(options.trace === undefined ? {} : { traceId: options.trace }),
        ...(options.operation === undefined ? {} : { operationId: options.operation }),
        ...(options.turn === undefined ? {} : { turnId: options.turn }),
        ...(options.grant === undefined ? {} : { grantId: options.grant }),
        ...(options.actor === undefined ? {} : { actor: parsePrincipal(options.actor) }),
        ...(options.resource === undefined ? {} : { resource: parseResource(options.resource) }),
        ...(options.reason === undefined ? {} : { reason: options.reason }),
        ...(options.since === undefined ? {} : { since: parseSince(options.since, Date.now()) }),
        ...(options.until === undefined ? {} : { until: parseSince(options.until, Date.now()) }),
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
  command
    .command('turns')
    .argument('<trace>', 'which "turn submit" and "turn show" print')
    .description('The turns of a trace, step by step: what was decided, by which grant, and what came of it.')
    .option('--authority <kind:id>', 'whose grant to read is used')
    .addHelpText('after', '\nExample:\n  $ sharedos records turns 4d2e…')
    .action(async (traceId: string, options: Pick<QueryOptions, 'authority'>, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const authority = options.authority === undefined ? {} : { authority: parsePrincipal(options.authority) };
      const turns = await connected(
        invocation,
        async ({ records }) => {
          const events: AuditEvent[] = [];
          for (let after: number | undefined = 0; after !== undefined;) {
            const page: RecordsFound = valueOf(await records.query({ traceId, after, ...authority }));
            events.push(...page.records.map(({ event }) => event));
            after = page.next;
          }
          return recordedTurns(events);
        },
        (context) => context.auditor ?? context.defaultPrincipal,
      );
      invocation.show({ turns }, turns.length === 0 ? 'no turns are recorded under this trace\n' : recordedTurnsText(turns));
    });
  command
    .command('summary')
    .description('How many decisions were allowed and denied, why, and how often each bounded grant was used, of how often the log allows.')
    .option('--since <time>', 'from an instant on, or so long ago: 2026-01-01T12:00:00Z, 15m')
    .option('--until <time>', 'before an instant')
    .option('--authority <kind:id>', 'whose grant to read is used')
    .addHelpText('after', '\nExamples:\n  $ sharedos records summary --since 24h')
    .action(async (options: SummaryOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const asked = {
        ...(options.since === undefined ? {} : { since: parseSince(options.since, Date.now()) }),
        ...(options.until === undefined ? {} : { until: parseSince(options.until, Date.now()) }),
        ...(options.authority === undefined ? {} : { authority: parsePrincipal(options.authority) }),
      };
      const summary = await connected(
        invocation,
        async ({ records }) => valueOf(await records.summary(asked)),
        (context) => context.auditor ?? context.defaultPrincipal,
      );
      invocation.show(summary, summaryText(summary));
    });
  return command;
};

/** The rate of denials leaves out what could not be found out: an outage says nothing about what people ask for. */
const summaryText = ({ records, decisions, reasons, uses, head }: SummaryOfRecords): string => {
  const { allowed, denied, outages } = decisions;
  const rate = allowed + denied === 0 ? '' : ` (${((100 * denied) / (allowed + denied)).toFixed(1)} % denied)`;
  const sections = [
    `${records} records, ${allowed + denied} decisions: ${allowed} allowed, ${denied} denied${rate}; ${outages} could not be made\n`,
    reasons.length === 0
      ? ''
      : table(
          ['COUNT', 'REASON', 'OF', 'OUTCOME', ''],
          reasons.map(({ count, reason, type, outcome, outage }) => [count, reason, type, outcome, outage ? 'outage' : '']),
        ),
    uses.length === 0
      ? ''
      : table(
          ['USES', 'GIVEN BACK', 'OF', 'GRANT', ''],
          uses.map(({ taken, released, max, grantId }) => [
            taken,
            released,
            max ?? '?',
            grantId,
            max !== undefined && taken - released > max ? 'over its limit' : '',
          ]),
        ),
    head === undefined ? '' : `signed up to record ${head.head.count}, by ${head.head.keyId}\n`,
  ];
  return sections.filter((section) => section !== '').join('\n');
};
