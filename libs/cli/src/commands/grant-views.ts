import type { SharedOS } from '@sharedos/client';
import { type CapabilityGrant, type Explanation, Revision, type WhoPage } from '@sharedos/contracts';
import { type Command, Option } from 'commander';
import { type Terminal, connected, invocationOf, valueOf } from '../command-line.ts';
import { parseTimestamp } from '../duration.ts';
import { CommandFailure, EXIT, usageFailure } from '../exit-code.ts';
import { boundsOf, capabilitiesOf, stateOf } from '../grant-words.ts';
import { naturalNumber, positiveInteger } from '../numbers.ts';
import { parsePrincipal, principalName } from '../principal-name.ts';
import { parseResource } from '../resource-name.ts';
import { printable, table } from '../table.ts';

const revisionOf = (text: string): Revision => {
  const parsed = Revision.safeParse(text);
  if (parsed.success) return parsed.data;
  throw usageFailure(`"${text}" is no revision: take one from an answer, a turn or a record`);
};

interface Node {
  readonly depth: number;
  readonly grant: CapabilityGrant;
}

export const treeCommand = (command: Command, terminal: Terminal): void => {
  command
    .command('tree')
    .argument('<grant>', 'its id')
    .description('A grant that you issued or hold, and everything that was derived from it.')
    .addOption(new Option('--depth <links>', 'so far down (default: all of it)').argParser(naturalNumber))
    .addOption(new Option('--limit <count>', 'at most so many grants').argParser(positiveInteger).default(1_000))
    .addHelpText('after', '\nExample:\n  $ sharedos grant tree scout-reads-notes')
    .action(async (grantId: string, { depth, limit }: { readonly depth?: number; readonly limit: number }, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const found = await connected(invocation, (sharedos) => wholeTree(sharedos, grantId, depth, limit));
      invocation.show(found, `${treeText(found.nodes)}${found.complete ? '' : `more: --limit ${limit * 2}\n`}`);
    });
};

const TREE_PAGE = 500;

const wholeTree = async (
  { grants }: SharedOS,
  grantId: string,
  depth: number | undefined,
  limit: number,
): Promise<{ readonly nodes: readonly Node[]; readonly complete: boolean; readonly revision: Revision }> => {
  const nodes: Node[] = [];
  let after: string[] | undefined;
  for (;;) {
    const page = valueOf(
      await grants.tree({
        grantId,
        limit: Math.min(TREE_PAGE, limit - nodes.length),
        ...(depth === undefined ? {} : { depth }),
        ...(after === undefined ? {} : { after }),
      }),
    );
    nodes.push(...page.nodes);
    after = page.next;
    if (after === undefined || nodes.length >= limit) return { nodes, complete: after === undefined, revision: page.revision };
  }
};

/** Each grant under the one that it passes on. */
export const treeText = (nodes: readonly Node[]): string => {
  const now = Date.now();
  // Whether another grant of the same depth follows before one that is higher up.
  const isLast = (index: number): boolean => {
    const depth = nodes[index]?.depth ?? 0;
    const next = nodes.slice(index + 1).find((node) => node.depth <= depth);
    return next === undefined || next.depth < depth;
  };
  const open: boolean[] = [];
  return nodes
    .map(({ depth, grant }, index) => {
      open[depth] = !isLast(index);
      const rails = Array.from({ length: Math.max(0, depth - 1) }, (_, level) => (open[level + 1] === true ? '│  ' : '   ')).join('');
      const branch = depth === 0 ? '' : open[depth] === true ? '├─ ' : '└─ ';
      const bounds = boundsOf(grant);
      const state = stateOf(grant, now);
      return `${rails}${branch}${printable(
        `${grant.id}  ${principalName(grant.issuer)} → ${principalName(grant.subject)}  ${capabilitiesOf(grant)}${bounds === 'none' ? '' : `  ${bounds}`}${state === 'live' ? '' : `  ${state}`}`,
      )}\n`;
    })
    .join('');
};

interface ExplainOptions {
  readonly actor: string;
  readonly to: string;
  readonly resource: string;
  readonly purpose: string;
  readonly for?: string;
  readonly owner?: string;
  readonly at?: string;
  readonly revision?: Revision;
}

export const explainCommand = (command: Command, terminal: Terminal): void => {
  command
    .command('explain')
    .description('Why something is allowed or denied, now or at a revision, with what each grant that does not allow it lacks.')
    .requiredOption('--actor <kind:id>', 'who would do it')
    .requiredOption('--to <action>', 'what')
    .requiredOption('--resource <namespace:path>', 'to which resource')
    .requiredOption('--purpose <text>', 'what for')
    .option('--for <kind:id>', 'whose grants are exercised (default: your own)')
    .option('--owner <kind:id>', 'whose resource it is (default: whose grants are exercised)')
    .option('--at <timestamp>', 'when (default: now)', parseTimestamp)
    .option('--revision <revision>', 'as authority stood there', revisionOf)
    .addHelpText(
      'after',
      `
Examples:
  $ sharedos grant explain --actor agent:scout --to read --resource files:notes/plan.md --purpose "read notes"

Exit codes: 0 allowed · 1 denied · 3 unavailable`,
    )
    .action(async (options: ExplainOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const { actor, to, resource, purpose, at, revision } = options;
      const explained = await connected(invocation, async ({ grants, principal }) => {
        const authority = options.for === undefined ? principal : parsePrincipal(options.for);
        const owner = options.owner === undefined ? authority : parsePrincipal(options.owner);
        return valueOf(
          await grants.explain({
            actor: parsePrincipal(actor),
            authority,
            owner,
            purpose,
            request: { resource: { ...parseResource(resource), owner }, action: to },
            ...(at === undefined ? {} : { at }),
            ...(revision === undefined ? {} : { revision }),
          }),
        );
      });
      invocation.show(explained, explanationText(explained));
      if (!explained.decision.allowed) throw denied(explained);
    });
};

export const whoCommand = (command: Command, terminal: Terminal): void => {
  command
    .command('who')
    .description('Who could do something to a resource of yours, under whose authority, and by which grant.')
    .requiredOption('--to <action>', 'what')
    .requiredOption('--resource <namespace:path>', 'to which resource')
    .option('--owner <kind:id>', 'whose resource it is (default: your own)')
    .option('--purpose <text>', 'what for (default: for any purpose)')
    .option('--revision <revision>', 'as authority stood there', revisionOf)
    .addHelpText('after', '\nExample:\n  $ sharedos grant who --to read --resource files:notes/plan.md')
    .action(
      async (
        options: {
          readonly to: string;
          readonly resource: string;
          readonly owner?: string;
          readonly purpose?: string;
          readonly revision?: Revision;
        },
        self: Command,
      ) => {
        const invocation = invocationOf(terminal, self);
        const { to, purpose, revision } = options;
        const resource = {
          ...parseResource(options.resource),
          ...(options.owner === undefined ? {} : { owner: parsePrincipal(options.owner) }),
        };
        const holders = await connected(invocation, async ({ grants }) => {
          const found: WhoPage['holders'] = [];
          for (let after: WhoPage['next']; ;) {
            const page = valueOf(
              await grants.who({
                action: to,
                resource,
                ...(purpose === undefined ? {} : { purpose }),
                ...(revision === undefined ? {} : { revision }),
                ...(after === undefined ? {} : { after }),
              }),
            );
            found.push(...page.holders);
            if (page.next === undefined) return found;
            after = page.next;
          }
        });
        const rows = holders.map(({ subject, authority, grantId }) => [principalName(subject), principalName(authority), grantId]);
        invocation.show({ holders }, rows.length === 0 ? 'nobody\n' : table(['WHO', 'FOR', 'BY GRANT'], rows));
      },
    );
};

/** What a grant lacks, by the code that the rules give. */
const LACKS: Readonly<Record<string, string>> = {
  capability: 'does not cover this action on this resource',
  purpose: 'is for other purposes',
  window: 'does not hold at this time, or was revoked',
  exhausted: 'has no use left',
  delegation: 'was passed on by a chain that does not hold any more',
  subject: 'is given to somebody else',
  issuer: 'is given by somebody else',
  namespace: 'is of another namespace',
  verifier: 'was rejected by the host’s own check',
};

const explanationText = ({ decision, unavailable, grantsResolved, rejections, omitted, usage, revision }: Explanation): string => {
  const why = decision.allowed ? `allowed by ${decision.matchedGrantId ?? ''}` : `denied (${decision.reasonCode})`;
  const looked =
    unavailable === undefined
      ? `${grantsResolved} ${grantsResolved === 1 ? 'grant' : 'grants'} looked at`
      : `authority could not be held: ${unavailable}`;
  const rows = rejections.map(({ grantId, reason }) => [
    grantId,
    LACKS[reason] ?? reason,
    usage[grantId] === undefined ? undefined : `${usage[grantId]} used`,
  ]);
  const more = omitted === 0 ? '' : `and ${omitted} more\n`;
  const listed = rows.length === 0 ? '' : `${table(['GRANT', 'DOES NOT ALLOW IT: IT', 'USES'], rows)}${more}`;
  return `${printable(why)}\n${decision.allowed ? '' : `${looked}\n`}${listed}at ${revision}\n`;
};

const denied = ({ decision, unavailable }: Explanation): CommandFailure =>
  unavailable === undefined
    ? new CommandFailure(EXIT.refused, decision.reasonCode, `denied (${decision.reasonCode})`)
    : new CommandFailure(EXIT.unavailable, decision.reasonCode, `authority could not be held (${unavailable})`);
