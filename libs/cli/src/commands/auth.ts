import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { serviceInboxPrefix, OPERATOR } from '@sharedos/bus';
import { inboxPrefix } from '@sharedos/contracts';
import { Command, Option } from 'commander';
import { readAuth } from '../auth/auth-file.ts';
import { type AuthUser, type Changed, addPrincipal, addTenant, finishRotation, revoke, rotate, userOf } from '../auth/change-auth.ts';
import { initAuth } from '../auth/init-auth.ts';
import { secretsOf, seedFile } from '../auth/keys.ts';
import { type Invocation, type Terminal, invocationOf } from '../command-line.ts';
import { CommandFailure, EXIT, usageFailure } from '../exit-code.ts';
import { positiveInteger } from '../numbers.ts';
import { parsePrincipal, principalName } from '../principal-name.ts';
import { printable, table } from '../table.ts';

interface Place {
  readonly dir: string;
  readonly reload?: string;
}

const DIR = new Option('--dir <folder>', 'where the keys and the configuration of the broker are').default('auth');
const RELOAD = new Option(
  '--reload <pid>',
  'have the broker of this process id, or of the file that holds it, read its configuration again',
);

export const authCommand = (terminal: Terminal): Command => {
  const command = new Command('auth').description(
    'Keys of services and principals, and the configuration of the broker that is made from them.',
  );
  const folderOf = ({ dir }: Place): string => resolve(terminal.cwd, dir);

  command
    .command('init')
    .description('Make all keys, secrets and certificates of a new system, and the configuration of its broker.')
    .addOption(DIR)
    .option('--host <name...>', 'names and addresses by which the broker is reached', ['localhost', '127.0.0.1', 'nats'])
    .addOption(new Option('--port <port>', 'where the broker listens').default(4222).argParser(positiveInteger))
    .option('--store <folder>', 'where the broker keeps its streams', '/data/jetstream')
    .option('--secrets <folder>', 'where the broker sees the secrets (default: where they are)')
    .option('--redis <host>', 'where the authorizers reach Redis', 'redis:6379')
    .option('--cluster <names...>', 'names of the servers of a cluster, by which they reach each other', [])
    .addHelpText('after', '\nExample:\n  $ sharedos auth init --dir auth --host nats.example.org')
    .action(
      async (
        options: Place & {
          readonly host: readonly string[];
          readonly port: number;
          readonly store: string;
          readonly secrets?: string;
          readonly redis: string;
          readonly cluster: readonly string[];
        },
        self: Command,
      ) => {
        const folder = folderOf(options);
        const files = await initAuth(folder, {
          hosts: [...new Set([...options.host, ...options.cluster])],
          port: options.port,
          storeDir: options.store,
          secretsDir: options.secrets ?? secretsOf(folder),
          cluster: [...options.cluster],
          redisHost: options.redis,
          today: new Date().toISOString().slice(0, 10),
        });
        shown(invocationOf(terminal, self), folder, { files }, 'made');
      },
    );

  const tenant = command.command('tenant').description('Namespaces.');
  tenant
    .command('add')
    .argument('<namespace>', 'the namespace (tenant)')
    .description('Let a namespace have principals.')
    .addOption(DIR)
    .option('--root <kind:id...>', 'who manages it without a grant', [])
    .addHelpText('after', '\nExample:\n  $ sharedos auth tenant add acme --root human:alice')
    .action(async (namespaceId: string, options: Place & { readonly root: readonly string[] }, self: Command) => {
      const folder = folderOf(options);
      const changed = await addTenant(folder, namespaceId, options.root.map(parsePrincipal));
      shown(
        invocationOf(terminal, self),
        folder,
        changed,
        `${namespaceId} is a tenant; the services learn of its roots at their next start`,
      );
    });

  const principal = command.command('principal').description('Who may connect from outside.');
  principal
    .command('add')
    .argument('<namespace>', 'its namespace')
    .argument('<kind:id>', 'the principal')
    .description('Make a key for a principal, and let the broker take it.')
    .addOption(DIR)
    .option('--auditor', 'it hears the live feed of its namespace', false)
    .addOption(RELOAD)
    .addHelpText('after', '\nExample:\n  $ sharedos auth principal add acme human:alice --reload /run/nats.pid')
    .action(async (namespaceId: string, name: string, options: Place & { readonly auditor: boolean }, self: Command) => {
      const folder = folderOf(options);
      const changed = await addPrincipal(folder, { namespaceId, principal: parsePrincipal(name), auditor: options.auditor });
      await reloaded(terminal, options);
      shown(invocationOf(terminal, self), folder, changed, `${name} of ${namespaceId} may connect`);
    });

  command
    .command('rotate')
    .argument('<user...>', 'a service, "provisioner", "operator", or <namespace> <kind:id>')
    .description('Give a user a new key. The old one works until --finish.')
    .addOption(DIR)
    .option('--finish', 'take the old key', false)
    .addOption(RELOAD)
    .addHelpText('after', '\nExample:\n  $ sharedos auth rotate authorizer\n  $ sharedos auth rotate authorizer --finish')
    .action(async (words: readonly string[], options: Place & { readonly finish: boolean }, self: Command) => {
      const folder = folderOf(options);
      const user = userIn(words);
      const changed = await (options.finish ? finishRotation : rotate)(folder, user);
      await reloaded(terminal, options);
      const said = options.finish
        ? `the old key of ${userOf(user)} is worth nothing`
        : `${userOf(user)} has a new key, and the old one works until --finish`;
      shown(invocationOf(terminal, self), folder, changed, said);
    });

  command
    .command('revoke')
    .argument('<namespace>', 'its namespace')
    .argument('<kind:id>', 'the principal')
    .description('Take all keys of a principal. The broker ends its connections as it reads its configuration again.')
    .addOption(DIR)
    .addOption(RELOAD)
    .addHelpText('after', '\nExample:\n  $ sharedos auth revoke acme agent:scout --reload /run/nats.pid')
    .action(async (namespaceId: string, name: string, options: Place, self: Command) => {
      const folder = folderOf(options);
      const changed = await revoke(folder, { namespaceId, principal: parsePrincipal(name) });
      await reloaded(terminal, options);
      shown(invocationOf(terminal, self), folder, changed, `no key of ${name} of ${namespaceId} is worth anything`);
    });

  command
    .command('list')
    .description('Who may connect, and with how many keys.')
    .addOption(DIR)
    .addHelpText('after', '\nExample:\n  $ sharedos auth list')
    .action(async (options: Place, self: Command) => {
      const { users, principals } = await readAuth(folderOf(options));
      const rows = [
        ...Object.entries(users).map(([name, keys]) => ({ namespaceId: undefined, name, keys: keys.length, auditor: false })),
        ...principals.map((one) => ({
          namespaceId: one.namespaceId,
          name: principalName(one.principal),
          keys: one.keys.length,
          auditor: one.auditor,
        })),
      ];
      invocationOf(terminal, self).show(
        { users: rows },
        table(
          ['NAMESPACE', 'USER', 'KEYS', 'AUDITOR'],
          rows.map((row) => [row.namespaceId, row.name, row.keys, row.auditor ? 'yes' : undefined]),
        ),
      );
    });

  command
    .command('context')
    .argument('<namespace>', 'the namespace')
    .argument('<kind:id...>', 'principals whose seeds are here; the first one speaks')
    .description('A context file for this command: it holds seeds, so keep it as you keep them.')
    .addOption(DIR)
    .requiredOption('--url <url>', 'where the broker is reached: tls://host:port')
    .addHelpText('after', '\nExample:\n  $ (umask 077; sharedos auth context acme human:alice --url tls://localhost:4222 > context.json)')
    .action(async (namespaceId: string, names: readonly string[], options: Place & { readonly url: string }) => {
      const folder = folderOf(options);
      const seed = async (user: string): Promise<string> => {
        const text = await readFile(seedFile(folder, user), 'utf8').catch(() => undefined);
        if (text === undefined) throw new CommandFailure(EXIT.refused, 'no_seed', `the seed of ${user} is not in ${secretsOf(folder)}`);
        return text.trim();
      };
      const credentials = await Promise.all(
        names.map(async (name) => {
          const address = parsePrincipal(name);
          const user = userOf({ namespaceId, principal: address });
          return [name, { user, password: await seed(user), inboxPrefix: inboxPrefix(namespaceId, address) }] as const;
        }),
      );
      const context = {
        version: 1,
        natsUrl: options.url,
        caFile: resolve(secretsOf(folder), 'ca.pem'),
        namespaceId,
        defaultPrincipal: names[0],
        principals: Object.fromEntries(credentials),
        operator: { user: OPERATOR, password: await seed(OPERATOR), inboxPrefix: serviceInboxPrefix(OPERATOR) },
      };
      terminal.out(`${JSON.stringify(context, null, 2)}\n`);
    });
  return command;
};

const userIn = (words: readonly string[]): AuthUser => {
  const [first = '', second] = words;
  if (words.length > 2) throw usageFailure('name one user: a service, or a namespace and a principal');
  return second === undefined ? { name: first } : { namespaceId: first, principal: parsePrincipal(second) };
};

const shown = (invocation: Invocation, folder: string, { files, seed }: Changed, said: string): void =>
  invocation.show(
    { folder, files, ...(seed === undefined ? {} : { seed }) },
    `${printable(said)}\n${seed === undefined ? '' : `seed: ${printable(seed)}\n`}for the broker, in ${printable(folder)}: ${files.join(', ')}\n`,
  );

/** The broker reads its configuration again, and ends the connections of whoever is in it no more. */
const reloaded = async (terminal: Terminal, { reload }: Place): Promise<void> => {
  if (reload === undefined) return terminal.err('the broker does not know it yet: nats-server --signal reload=<pid>\n');
  const pid = /^\d+$/.test(reload)
    ? Number(reload)
    : Number((await readFile(resolve(terminal.cwd, reload), 'utf8').catch(() => '')).trim() || NaN);
  if (!Number.isSafeInteger(pid) || pid < 2) throw usageFailure(`${reload} is no process id, and no file that holds one`);
  try {
    process.kill(pid, 'SIGHUP');
  } catch {
    throw new CommandFailure(
      EXIT.unavailable,
      'not_reloaded',
      `the change is written, and process ${pid} could not be told: reload the broker by hand`,
    );
  }
};
