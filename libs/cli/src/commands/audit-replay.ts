import type { RecomputeOptions, SharedOS } from '@sharedos/client';
import type { AuditRecord, BlamedOperation, DecisionMade, Difference, ExplainedRecord } from '@sharedos/contracts';
import { Command } from 'commander';
import { auditLine } from '../audit-line.ts';
import { type Terminal, connected, invocationOf, valueOf } from '../command-line.ts';
import { parseSince } from '../duration.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { principalName } from '../principal-name.ts';
import { resourceName } from '../resource-name.ts';
import { printable } from '../table.ts';

const PROGRESS_MS = 2_000;

export const auditorOf = (context: { readonly auditor?: string | undefined; readonly defaultPrincipal: string }): string =>
  context.auditor ?? context.defaultPrincipal;

export interface TimeOptions {
  readonly from?: string;
  readonly to?: string;
}

export const timeOf = ({ from, to }: TimeOptions): Pick<RecomputeOptions, 'since' | 'until'> => ({
  ...(from === undefined ? {} : { since: parseSince(from, Date.now()) }),
  ...(to === undefined ? {} : { until: parseSince(to, Date.now()) }),
});

/** What computing the decisions of a time again came to. */
export interface ComputedAgain {
  decisions: number;
  same: number;
  readonly noBasis: Record<string, number>;
  readonly differing: Difference[];
  /** Records up to this place are no longer held by the read model, and were not looked at. */
  heldAfter: number;
}

export const computedAgain = async (sharedos: SharedOS, terminal: Terminal, options: RecomputeOptions): Promise<ComputedAgain> => {
  const all: ComputedAgain = { decisions: 0, same: 0, noBasis: {}, differing: [], heldAfter: 0 };
  let told = performance.now();
  const tell = (text: string): void => {
    if (performance.now() - told < PROGRESS_MS) return;
    told = performance.now();
    terminal.err(`… ${text}\n`);
  };
  for await (const page of sharedos.audit.recompute({ ...options, onWait: tell })) {
    const { decisions, same, noBasis, differing, heldAfter } = valueOf(page);
    all.decisions += decisions;
    all.same += same;
    all.heldAfter = Math.max(all.heldAfter, heldAfter);
    for (const [why, count] of Object.entries(noBasis)) all.noBasis[why] = (all.noBasis[why] ?? 0) + (count ?? 0);
    all.differing.push(...differing);
    tell(`${all.decisions} decisions`);
  }
  return all;
};

export const madeText = ({ outcome, reason, grantId }: DecisionMade): string =>
  [outcome, reason === undefined ? '' : `(${reason})`, grantId === undefined ? '' : `by ${grantId}`]
    .filter((part) => part !== '')
    .join(' ');

export const differenceText = ({ record, computed }: Difference): string =>
  [`${String(record.sequence).padStart(6)}  ${auditLine(record.event)}`, `        ${record.event.id}: computed ${madeText(computed)}`]
    .map(printable)
    .join('\n');

export const replayCommand = (terminal: Terminal): Command =>
  new Command('replay')
    .description('Compute every recorded decision again from the log, and say which come out otherwise.')
    .option('--from <time>', 'decisions from an instant on, or so long ago: 2026-01-01T12:00:00Z, 15m')
    .option('--to <time>', 'decisions before an instant')
    .addHelpText('after', '\nExit code 1 when any differs.\n\nExamples:\n  $ sharedos audit replay --from 24h')
    .action(async (options: TimeOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const all = await connected(invocation, (sharedos) => computedAgain(sharedos, terminal, timeOf(options)), auditorOf);
      const { decisions, same, noBasis, differing, heldAfter } = all;
      const apart = Object.entries(noBasis).map(([why, count]) => `, ${count} with nothing to compute from (${why})`);
      const head = `${decisions} decisions: ${same} the same, ${differing.length} differ${apart.join('')}\n`;
      const missed = heldAfter === 0 ? '' : `records up to place ${heldAfter} are no longer held by the read model\n`;
      invocation.show(all, `${differing.map((difference) => `${differenceText(difference)}\n`).join('')}${head}${missed}`);
      if (differing.length > 0) throw new CommandFailure(EXIT.refused, 'decisions_differ', `${differing.length} recorded decisions differ`);
    });

export const explainCommand = (terminal: Terminal): Command =>
  new Command('explain')
    .description('Why one recorded decision came out as it did, from the log alone, with the grants that nearly matched.')
    .argument('<id>', 'of its record, as "records query --json" shows it')
    .action(async (id: string, _: unknown, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const explained = await connected(invocation, async ({ audit }) => valueOf(await audit.explain({ id })), auditorOf);
      invocation.show(explained, explainedText(explained));
    });

const explainedText = ({ record, retraced }: ExplainedRecord): string => {
  const { answer, from, computed, grantsResolved, grants } = retraced;
  const lines = [auditLine(record.event)];
  if (from === undefined || computed === undefined) {
    lines.push(`there is nothing to compute it from${answer.status === 'no_basis' ? ` (${answer.why})` : ''}`);
  } else {
    const verdict = answer.status === 'same' ? 'as recorded' : 'NOT as recorded';
    lines.push(`computed ${madeText(computed)}, ${verdict}`);
    lines.push(
      `at revision ${from.revision}, admitted ${from.admittedAt}, decided ${from.at}${from.mode === 'discover' ? ', to discover' : ''}`,
    );
    lines.push(`${grantsResolved} grants were held${grants.length === 0 ? '' : '; the nearest first:'}`);
    for (const { grant, reason } of grants) {
      const [first] = grant.capabilities;
      const over = first === undefined ? '' : ` ${first.actions.join(',')} ${resourceName(first.resource)}`;
      lines.push(`  ${reason === undefined ? '✓ ' : '✗ '}${grant.id}${over}${reason === undefined ? '' : ` (${reason})`}`);
    }
  }
  return `${lines.map(printable).join('\n')}\n`;
};

export const blameCommand = (terminal: Terminal): Command =>
  new Command('blame')
    .description('Who is answerable for an operation: effect, decision, grant, its parents, their issuers, and the commands.')
    .argument('<operationId>', 'a call id, message id or execution id')
    .action(async (operationId: string, _: unknown, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const blamed = await connected(invocation, async ({ audit }) => valueOf(await audit.blame({ operationId })), auditorOf);
      if (blamed.records.length === 0) throw new CommandFailure(EXIT.refused, 'record_not_found', 'nothing is recorded of this operation');
      invocation.show(blamed, blamedText(blamed));
    });

const blamedText = ({ records, grants, acts }: BlamedOperation): string => {
  const commandOf = (grantId: string, act: string): string => {
    const found: AuditRecord | undefined = acts.find(
      ({ event }) => event.grantId === grantId && (event.action === act || (act === 'grant.issue' && event.action === 'grant.derive')),
    );
    return found?.event.operationId === undefined ? '' : `, command ${found.event.operationId}`;
  };
  const lines = records.toReversed().map(({ event }) => auditLine(event));
  for (const { links } of grants) {
    for (const [depth, { grant, issued, revoked }] of links.entries()) {
      const indent = '  '.repeat(depth + 1);
      lines.push(
        `${indent}grant ${grant.id}: issued by ${principalName(issued.principal)} at ${issued.at}${commandOf(grant.id, 'grant.issue')}`,
      );
      if (revoked !== undefined)
        lines.push(`${indent}  revoked by ${principalName(revoked.principal)} at ${revoked.at}${commandOf(grant.id, 'grant.revoke')}`);
    }
  }
  return `${lines.map(printable).join('\n')}\n`;
};
