import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { SharedOS } from '@sharedos/client';
import { type CapabilityGrant, type Revision, sameAddress } from '@sharedos/contracts';
import { type Command, Option } from 'commander';
import { type Invocation, type Terminal, connected, invocationOf, untilStopped, valueOf } from '../command-line.ts';
import { usageFailure } from '../exit-code.ts';
import { boundsOf, capabilitiesOf, described, stateOf } from '../grant-words.ts';
import { exportGrants, forFile } from '../grants-file/export-grants.ts';
import { positiveInteger } from '../numbers.ts';
import { parsePrincipal, principalName } from '../principal-name.ts';
import { grantsOf } from '../speakers.ts';
import { printable, table } from '../table.ts';

interface ListOptions {
  readonly held?: boolean;
  readonly state?: 'live' | 'ended';
  readonly to?: string;
  readonly from?: string;
  readonly limit?: number;
  readonly after?: string;
  readonly watch?: boolean;
}

export const listCommand = (command: Command, terminal: Terminal): void => {
  command
    .command('list')
    .description('Grants that you issued, or with --held those that you hold.')
    .option('--held', 'those whose subject you are')
    .addOption(new Option('--state <state>', 'those that are neither revoked nor expired, or those that are').choices(['live', 'ended']))
    .option('--to <kind:id>', 'those given to somebody')
    .option('--from <kind:id>', 'those given by somebody')
    .addOption(new Option('--limit <count>', 'at most so many').argParser(positiveInteger))
    .option('--after <id>', 'continue after this grant')
    .option('--watch', 'then show each that is issued or revoked, until Ctrl-C; with --json one document a line')
    .addHelpText(
      'after',
      '\nExamples:\n  $ sharedos grant list --state live\n  $ sharedos grant list --held --as agent:scout --json\n  $ sharedos grant list --watch',
    )
    .action(async (options: ListOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const { limit, after, state, to, from } = options;
      const role = options.held === true ? ('subject' as const) : ('issuer' as const);
      const query = {
        role,
        ...(state === undefined ? {} : { state }),
        ...(to === undefined ? {} : { subject: parsePrincipal(to) }),
        ...(from === undefined ? {} : { issuer: parsePrincipal(from) }),
        ...(limit === undefined ? {} : { limit }),
        ...(after === undefined ? {} : { after }),
      };
      await connected(invocation, async (sharedos) => {
        const found = valueOf(await sharedos.grants.list(query));
        const more = found.next === undefined ? '' : `more: --after ${found.next}\n`;
        invocation.show(found, found.grants.length === 0 ? 'no grants\n' : `${grantTable(found.grants)}${more}`);
        if (options.watch !== true) return;
        await watchChanges(invocation, sharedos, found.revision, (grant) => sameAddress(grant[role], sharedos.principal));
      });
    });
};

const grantTable = (grants: readonly CapabilityGrant[]): string => {
  const now = Date.now();
  return table(
    ['GRANT', 'FROM', 'TO', 'MAY', 'BOUNDS', 'STATE'],
    grants.map((grant) => [
      grant.id,
      principalName(grant.issuer),
      principalName(grant.subject),
      capabilitiesOf(grant),
      boundsOf(grant),
      stateOf(grant, now),
    ]),
  );
};

/** Shows what changes from a revision on, until it is stopped. */
const watchChanges = async (
  invocation: Invocation,
  { grants }: SharedOS,
  from: Revision,
  concerns: (grant: CapabilityGrant) => boolean,
): Promise<void> => {
  const { terminal } = invocation;
  const stopped = untilStopped(terminal).then(() => 'stopped' as const);
  if (invocation.options.json !== true) terminal.err('watching for changes; Ctrl-C to end\n');
  for (let after = from; ;) {
    const page = await Promise.race([grants.watch({ after }), stopped]);
    if (page === 'stopped') return;
    const { grants: changed, revision } = valueOf(page);
    for (const grant of changed.filter(concerns))
      invocation.show({ grant, revision }, `${stateOf(grant, Date.now()).padEnd(8)} ${described(grant)}\n`);
    after = revision;
  }
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
          count: forFile(grants, issuer).length,
        };
      });
      if (out === undefined) return invocation.show({ yaml: text, grants: count }, text);
      await writeFile(resolve(terminal.cwd, out), text).catch((error: Error) => {
        throw usageFailure(`${out} cannot be written: ${error.message}`);
      });
      invocation.show({ file: out, grants: count }, `wrote ${count} grants to ${out}\n`);
    });
};
