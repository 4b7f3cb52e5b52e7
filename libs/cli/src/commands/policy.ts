import {
  type DailyWindow,
  type PolicyDocument,
  PolicyDocument as PolicyDocuments,
  type PolicyState,
  RULES_LANGUAGE,
} from '@sharedos/contracts';
import { Command, Option } from 'commander';
import { randomUUID } from 'node:crypto';
import { type Terminal, connected, invocationOf, sameCommand, valueOf } from '../command-line.ts';
import { usageFailure } from '../exit-code.ts';
import { PolicyFile, documentOf } from '../grants-file/policy-file.ts';
import { readYaml } from '../grants-file/read-yaml.ts';
import { naturalNumber } from '../numbers.ts';
import { principalName } from '../principal-name.ts';
import { stopName } from '../stop-name.ts';
import { table } from '../table.ts';

interface SetOptions {
  readonly file: string;
  readonly expectedVersion?: number;
  readonly commandId?: string;
}

export const policyCommand = (terminal: Terminal): Command => {
  const command = new Command('policy').description('The ceiling over what grants allow: rules that only forbid, and what is stopped.');

  command
    .command('get')
    .description('The policy of the namespace, and what is stopped.')
    .addHelpText('after', '\nExample:\n  $ sharedos policy get')
    .action(async (_: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const found = await connected(invocation, async ({ policy }) => valueOf(await policy.get()));
      invocation.show(found, policyText(found.policy));
    });

  command
    .command('set')
    .description('Replace the rules by those of a file. What is stopped stays stopped.')
    .requiredOption('-f, --file <policy.yaml>', 'the rules')
    .addOption(new Option('--expected-version <n>', 'refuse it when the policy has another version by now').argParser(naturalNumber))
    .option('--command-id <id>', 'makes a repetition the same command, which counts once (default: a new one)')
    .addHelpText(
      'after',
      `
Example:
  $ sharedos policy set -f policy.yaml

The file:
  version: 1
  rules:
    - id: nothing-is-deleted
      forbid:                       # what meets all that is said here; what is left out does not matter
        namespaces: [files]
        path: archive               # it, and all below it
        actions: [delete, replace]
        actors: [agent:scout]
        purposes: [tidy up]
        daily: { from: "22:00", to: "06:00" }   # in UTC
      reason: the archive is kept
    - id: no-scout
      freeze: agent:scout           # forbids it everything; "freeze: everybody" forbids everybody everything`,
    )
    .action(async ({ file, expectedVersion, commandId = randomUUID() }: SetOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const read = await readYaml(terminal, file, PolicyFile);
      const document = PolicyDocuments.safeParse(documentOf(read.value));
      if (!document.success) throw usageFailure(`${file} is no policy: ${document.error.issues[0]?.message ?? 'wrong'}`);
      const options = { commandId, ...(expectedVersion === undefined ? {} : { expectedVersion }) };
      const set = await connected(invocation, async ({ policy }) =>
        valueOf(await policy.set(document.data, options), sameCommand(commandId)),
      );
      invocation.show({ ...set, commandId }, policyText(set.policy));
    });
  return command;
};

const rulesOf = (document: PolicyDocument) => (document.language === RULES_LANGUAGE && 'rules' in document ? document.rules : []);

const policyText = ({ document, stops, version }: PolicyState): string => {
  const rules = rulesOf(document).map((rule) => [
    rule.id,
    rule.effect,
    ...(rule.effect === 'freeze'
      ? [rule.actor === undefined ? 'everybody' : principalName(rule.actor), 'anything', undefined]
      : [
          rule.actors === undefined ? 'everybody' : rule.actors.map(principalName).join(', '),
          [
            rule.actions?.join(',') ?? 'anything',
            rule.namespaces?.join(','),
            rule.path === undefined ? undefined : `below ${rule.path.join('/')}`,
          ]
            .filter((part) => part !== undefined)
            .join(' '),
          [rule.purposes?.map((purpose) => JSON.stringify(purpose)).join(', '), daily(rule.daily)]
            .filter((part) => part !== undefined)
            .join(' '),
        ]),
    rule.reason,
  ]);
  const foreign = 'source' in document ? `written in ${document.language}\n` : '';
  const listed =
    rules.length === 0 ? (foreign === '' ? 'no rules\n' : '') : table(['RULE', 'EFFECT', 'WHO', 'WHAT', 'WHEN', 'REASON'], rules);
  const stopped =
    stops.length === 0
      ? ''
      : table(
          ['STOPPED', 'SINCE', 'BY', 'REASON'],
          stops.map(({ target, at, by, reason }) => [stopName(target), at, principalName(by), reason]),
        );
  return `${foreign}${listed}${stopped}version ${version}\n`;
};

const daily = (window: DailyWindow | undefined): string | undefined =>
  window === undefined ? undefined : `${window.from}–${window.to} UTC`;
