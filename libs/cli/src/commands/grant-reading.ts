import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { CapabilityGrant } from '@sharedos/contracts';
import { type Command, Option } from 'commander';
import { type Terminal, connected, invocationOf, valueOf } from '../command-line.ts';
import { usageFailure } from '../exit-code.ts';
import { boundsOf, capabilitiesOf, stateOf } from '../grant-words.ts';
import { exportGrants } from '../grants-file/export-grants.ts';
import { positiveInteger } from '../numbers.ts';
import { principalName } from '../principal-name.ts';
import { grantsOf } from '../speakers.ts';
import { printable, table } from '../table.ts';

export const listCommand = (command: Command, terminal: Terminal): void => {
  command
    .command('list')
    .description('Grants that you issued, or with --held those that you hold.')
    .option('--held', 'those whose subject you are')
    .addOption(new Option('--limit <count>', 'at most so many').argParser(positiveInteger))
    .option('--after <id>', 'continue after this grant')
    .addHelpText('after', '\nExamples:\n  $ sharedos grant list\n  $ sharedos grant list --held --as agent:scout --json')
    .action(async (options: { readonly held?: boolean; readonly limit?: number; readonly after?: string }, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const { limit, after } = options;
      const query = {
        role: options.held === true ? ('subject' as const) : ('issuer' as const),
        ...(limit === undefined ? {} : { limit }),
        ...(after === undefined ? {} : { after }),
      };
      const found = await connected(invocation, async ({ grants }) => valueOf(await grants.list(query)));
      const now = Date.now();
      const rows = found.grants.map((grant) => [
        grant.id,
        principalName(grant.issuer),
        principalName(grant.subject),
        capabilitiesOf(grant),
        boundsOf(grant),
        stateOf(grant, now),
      ]);
      const more = found.next === undefined ? '' : `more: --after ${found.next}\n`;
      invocation.show(
        found,
        rows.length === 0 ? 'no grants\n' : `${table(['GRANT', 'FROM', 'TO', 'MAY', 'BOUNDS', 'STATE'], rows)}${more}`,
      );
    });
};

export const showCommand = (command: Command, terminal: Terminal): void => {
  command
    .command('show')
    .argument('<grant>', 'its id')
    .description('One grant that you issued or hold, in full.')
    .addHelpText('after', '\nExample:\n  $ sharedos grant show notes-for-scout')
    .action(async (grantId: string, _: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const found = await connected(invocation, async ({ grants }) => valueOf(await grants.get(grantId)));
      invocation.show(found, inFull(found.grant));
    });
};

const inFull = (grant: CapabilityGrant): string => {
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['grant', grant.id],
    ['state', stateOf(grant, Date.now())],
    ['from', principalName(grant.issuer)],
    ['to', principalName(grant.subject)],
    ['may', capabilitiesOf(grant)],
    [
      'of',
      [
        ...new Set(grant.capabilities.map(({ resource: { owner } }) => (owner === undefined ? 'whoever owns it' : principalName(owner)))),
      ].join(', '),
    ],
    ['bounds', boundsOf(grant)],
    ['issued', grant.issuedAt],
    ['revoked', grant.revokedAt],
    ['passes on', grant.parentGrantId],
    ['metadata', grant.metadata === undefined ? undefined : JSON.stringify(grant.metadata)],
  ];
  return facts.map(([name, value]) => (value === undefined ? '' : `${name.padEnd(10)}${printable(value)}\n`)).join('');
};

export const exportCommand = (command: Command, terminal: Terminal): void => {
  command
    .command('export')
    .description('Write what you have issued and not revoked as a file that "sharedos plan" reads as no change.')
    .option('--name <name>', 'the name of the file, which marks what it issues', 'grants')
    .option('-o, --out <file>', 'where to write it (default: standard output)')
    .addHelpText('after', '\nExamples:\n  $ sharedos grant export > grants.yaml\n  $ sharedos plan -f grants.yaml')
    .action(async ({ name, out }: { readonly name: string; readonly out?: string }, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const { text, count } = await connected(invocation, async (sharedos) => {
        const { namespaceId, principal: issuer } = sharedos;
        const grants = await grantsOf(sharedos, 'issuer');
        return {
          text: exportGrants(grants, { name, namespaceId, issuer }),
          count: grants.filter(({ revokedAt }) => revokedAt === undefined).length,
        };
      });
      if (out === undefined) return invocation.show({ yaml: text, grants: count }, text);
      await writeFile(resolve(terminal.cwd, out), text).catch((error: Error) => {
        throw usageFailure(`${out} cannot be written: ${error.message}`);
      });
      invocation.show({ file: out, grants: count }, `wrote ${count} grants to ${out}\n`);
    });
};
