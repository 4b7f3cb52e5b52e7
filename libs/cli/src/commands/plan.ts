import { Command } from 'commander';
import { type Terminal, invocationOf } from '../command-line.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { applyGrants, changesOf, planned } from '../grants-file/apply-grants.ts';
import { GrantsFile } from '../grants-file/grants-file.ts';
import { readYaml } from '../grants-file/read-yaml.ts';
import { planJson, planText, stepLine } from '../grants-file/show-plan.ts';
import { withSpeakers } from '../speakers.ts';

const FILE = ['-f, --file <grants.yaml>', 'the grants as a file says them'] as const;

const FORMAT = `
The file:
  version: 1
  name: team                      # marks what this file issues
  namespace: demo                 # optional: refused for another
  issuer: human:alice             # optional: whoever speaks
  manage: own                     # own: revoke what left the file; all: and whatever else the issuer issued, but for approvals
  grants:
    - id: scout-reads-notes       # a name that stays when the grant changes
      to: agent:scout
      allow: [{ resource: "files:notes", actions: [read], scope: descendants }]
      purposes: [read notes]      # optional, as are: from, expires (times), max-uses, depth, metadata
    - id: bob-reads-ideas
      to: human:bob
      parent: scout-reads-notes   # passed on by whoever holds the parent; without it, over the issuer's own resources
      allow: [{ resource: "files:notes/ideas", actions: [read] }]

A grant never changes. An entry whose content changed is issued anew, as <id>-<hash>, and the grant before it is revoked; uses counted
on the old one are not counted on the new one, and what hung below it is passed on again.`;

export const planCommand = (terminal: Terminal): Command =>
  new Command('plan')
    .description('Show what would have to be issued and revoked so that the namespace holds what a file says. Changes nothing.')
    .requiredOption(...FILE)
    .option('--check', 'exit 1 when anything would change')
    .addHelpText('after', `\nExamples:\n  $ sharedos plan -f grants.yaml\n  $ sharedos plan -f grants.yaml --check --json\n${FORMAT}`)
    .action(async ({ file, check }: { readonly file: string; readonly check?: boolean }, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const grants = await readYaml(terminal, file, GrantsFile);
      const plan = await withSpeakers(invocation, (speakers) => planned(grants, speakers));
      invocation.show(planJson(plan), planText(plan, Date.now()));
      const changes = changesOf(plan).length;
      if (check === true && changes > 0)
        throw new CommandFailure(
          EXIT.refused,
          'would_change',
          `${changes} ${changes === 1 ? 'change' : 'changes'} to make: see "sharedos apply -f ${file}"`,
        );
    });

export const applyCommand = (terminal: Terminal): Command =>
  new Command('apply')
    .description('Issue and revoke grants so that the namespace holds what a file says. Applying it again changes nothing.')
    .requiredOption(...FILE)
    .addHelpText(
      'after',
      `
Examples:
  $ sharedos apply -f grants.yaml

A run that was cut off is finished by the next one: the ids of its commands follow from what they do, and each counts once.
${FORMAT}`,
    )
    .action(async ({ file }: { readonly file: string }, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const grants = await readYaml(terminal, file, GrantsFile);
      const plan = await withSpeakers(invocation, (speakers) =>
        applyGrants(grants, speakers, (step, done, of) => terminal.err(`${done}/${of} ${stepLine(step, Date.now())}\n`)),
      );
      const changes = changesOf(plan).length;
      const kept = plan.steps.length - changes;
      invocation.show(
        planJson(plan),
        changes === 0 ? `no change: ${kept} kept\n` : `done: ${changes} ${changes === 1 ? 'change' : 'changes'}, ${kept} kept\n`,
      );
    });
