import { join, resolve } from 'node:path';
import { setInterval } from 'node:timers/promises';
import { type Address, type GrantTerms, addressPath, namespaceSubject, principalSubject } from '@sharedos/contracts';
import type { LocalStack, ServerHandle, ServiceProcess } from '@sharedos/testing';
import { ServersMissing } from '@sharedos/testing';
import { Command, Option } from 'commander';
import { type Terminal, invocationOf, untilStopped, valueOf } from '../command-line.ts';
import { type Context, refuseStanding, removeContext, writeContext } from '../context-file.ts';
import { ALICE, AUDITOR, DEMO_NAMESPACE, SCOUT, demoPrincipals, filesFolder, writeSampleFiles } from '../demo-world.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { positiveInteger } from '../numbers.ts';
import { parsePrincipal, principalName } from '../principal-name.ts';
import { connectTo, startSystem } from '../start-system.ts';

interface UpOptions {
  readonly namespace: string;
  readonly data?: string;
  readonly files?: string;
  readonly replicas?: number;
  readonly principal: readonly string[];
}

export const upCommand = (terminal: Terminal): Command =>
  new Command('up')
    .description('Start NATS, Redis and the four services on this machine, and keep them running until Ctrl-C.')
    .option('--namespace <id>', 'the namespace (tenant) to serve', DEMO_NAMESPACE)
    .option('--data <folder>', 'keep the streams here (default: a temporary folder, removed at the end)')
    .option('--files <folder>', 'the root of the files tools (default: inside the data)')
    .option('--principal <kind:id...>', 'further principals that may connect', [])
    .addOption(new Option('--replicas <count>', 'processes of each service').argParser(positiveInteger))
    .addHelpText(
      'after',
      '\nExamples:\n  $ sharedos up\n  $ sharedos up --data ./state --replicas 2\n  $ sharedos up --principal human:carol agent:writer',
    )
    .action(async (options: UpOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const file = resolve(terminal.cwd, invocation.options.context ?? join('.sharedos', 'context.json'));
      await refuseStanding(file);
      await survivingSignals(async () => {
        // Listening from the start: Ctrl-C while things start must leave nothing behind either.
        let isReady = false;
        let isStopping = false;
        const stopped = untilStopped(terminal).then(() => {
          isStopping = true;
          if (!isReady) terminal.err('stopping as soon as what is starting now can be stopped …\n');
        });
        const stack = await started(terminal, options);
        let madeFolders: readonly string[] = [];
        const watch = new AbortController();
        try {
          if (isStopping) return;
          const context = await contextOfStack(stack, options);
          madeFolders = await writeContext(file, context);
          isReady = true;
          invocation.show(
            {
              ready: true,
              context: file,
              natsUrl: stack.natsUrl,
              namespaceId: options.namespace,
              principals: Object.keys(context.principals),
            },
            welcome(stack, options.namespace, file),
          );
          const ended = await Promise.race([
            stopped.then(() => undefined),
            firstToEnd(stack.services()),
            serverToEnd(serversOf(stack), watch.signal),
          ]);
          if (ended !== undefined)
            throw new CommandFailure(EXIT.unavailable, 'service_ended', `${ended.name} ended by itself:\n${ended.output()}`);
        } finally {
          watch.abort();
          terminal.err('stopping …\n');
          await removeContext(file, madeFolders);
          await stack.stop();
          terminal.err('stopped\n');
        }
      });
    });

const started = async (terminal: Terminal, options: UpOptions): Promise<LocalStack> => {
  const { namespace } = options;
  try {
    const stack = await startSystem({
      principals: [
        ...demoPrincipals(namespace),
        ...options.principal.map((name) => ({ namespaceId: namespace, principal: parsePrincipal(name) })),
      ],
      roots: { [namespace]: [ALICE] },
      onProgress: (line) => terminal.err(`${line}\n`),
      ...(options.data === undefined ? {} : { dataDir: resolve(terminal.cwd, options.data) }),
      ...(options.files === undefined ? {} : { filesRoot: resolve(terminal.cwd, options.files) }),
      ...(options.replicas === undefined ? {} : { replicas: options.replicas }),
    });
    await prepare(stack, namespace).catch(async (error: unknown) => {
      await stack.stop();
      throw error;
    });
    return stack;
  } catch (error) {
    if (error instanceof ServersMissing) throw new CommandFailure(EXIT.unavailable, 'servers_missing', error.message);
    if (error instanceof CommandFailure) throw error;
    throw new CommandFailure(
      EXIT.unavailable,
      'not_started',
      `the system did not start: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
};

/** Something to read, an agent that may be run at all, and somebody who may read the records of it. */
const prepare = async (stack: LocalStack, namespaceId: string): Promise<void> => {
  await writeSampleFiles(stack.filesRoot, namespaceId);
  const alice = await connectTo(stack, namespaceId, ALICE, 'sharedos-up');
  try {
    for (const grant of FIRST_GRANTS) {
      // The command id is fixed, so kept data that has the grant already answers the same.
      valueOf(await alice.grants.issue(grant, `sharedos-up.${grant.id}`));
    }
  } finally {
    await alice.close();
  }
};

/** What alice grants before anybody asks: scout may be run for her, and the auditor may read what was recorded. No file yet. */
const FIRST_GRANTS: readonly GrantTerms[] = [
  {
    id: 'run-scout',
    subject: SCOUT,
    capabilities: [{ resource: { namespace: 'sharedos.execution', path: [...addressPath(SCOUT)] }, actions: ['invoke'], scope: 'exact' }],
  },
  {
    id: 'auditor-reads-audit',
    subject: AUDITOR,
    capabilities: [{ resource: { namespace: 'sharedos', path: ['audit'] }, actions: ['read'], scope: 'descendants' }],
  },
];

const contextOfStack = async (stack: LocalStack, options: UpOptions): Promise<Context> => {
  const everybody: readonly Address[] = [
    ...demoPrincipals(options.namespace).map(({ principal }) => principal),
    ...options.principal.map(parsePrincipal),
  ];
  return {
    version: 1,
    natsUrl: stack.natsUrl,
    namespaceId: options.namespace,
    defaultPrincipal: principalName(ALICE),
    auditor: principalName(AUDITOR),
    principals: Object.fromEntries(
      everybody.map((principal) => [principalName(principal), stack.credentials.principal(options.namespace, principal)]),
    ),
    operator: stack.credentials.operator,
    filesRoot: stack.filesRoot,
    sealKeys: stack.sealKeys.map(({ keyId, publicKey }) => `${keyId}:${publicKey}`).join(','),
    pid: process.pid,
  };
};

interface Ended {
  readonly name: string;
  output(): string;
}

const SERVERS_LOOKED_AT_MS = 250;

const serversOf = ({ nats, redis, eventStore }: LocalStack): Readonly<Record<string, ServerHandle>> => ({
  'nats-server': nats,
  'redis-server': redis,
  ...(eventStore?.server.server === undefined ? {} : { [eventStore.server.name]: eventStore.server.server }),
});

/** The server that has ended; none of it comes back by itself, and nothing works without it. */
const serverToEnd = async (
  servers: Readonly<Record<string, Pick<ServerHandle, 'running' | 'output'>>>,
  signal: AbortSignal,
): Promise<Ended | undefined> => {
  for await (const _ of setInterval(SERVERS_LOOKED_AT_MS, undefined, { signal })) {
    const ended = Object.entries(servers).find(([, server]) => !server.running());
    if (ended !== undefined) return { name: ended[0], output: () => ended[1].output() };
  }
  return undefined;
};

const firstToEnd = (services: readonly ServiceProcess[]): Promise<Ended> =>
  Promise.race(services.map((service) => service.exited.then(() => service)));

/** Whoever presses Ctrl-C twice must not leave half of it running: signals are heard, and end nothing by themselves. */
const survivingSignals = async (run: () => Promise<void>): Promise<void> => {
  const hear = (): void => undefined;
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const name of names) process.on(name, hear);
  try {
    await run();
  } finally {
    for (const name of names) process.off(name, hear);
  }
};

const welcome = (stack: LocalStack, namespaceId: string, file: string): string => {
  const redis = stack.redisUrl.replace(/\/\/.*@/, '//');
  return `
SharedOS is up: ${stack.natsUrl} (NATS), ${redis} (Redis)
namespace ${namespaceId}; alice's files are in ${filesFolder(stack.filesRoot, namespaceId, ALICE)}
alice has granted that scout may be run for her, and that the auditor may read the records; no file yet
credentials are in ${file} (yours alone); Ctrl-C stops everything

In another terminal, here:

  npx sharedos audit tail
  npx sharedos turn submit --agent scout --purpose "read notes" --call "files.read notes/plan.md"     # refused: nobody has granted it
  npx sharedos grant issue --to agent:scout --resource files:notes --action read --purpose "read notes" --expires 1h --id scout-reads-notes
  npx sharedos turn submit --agent scout --purpose "read notes" --call "files.read notes/plan.md"
  npx sharedos turn submit --agent scout --purpose "read notes" --call "files.read private/diary.md"  # still refused
  npx sharedos grant revoke scout-reads-notes
  npx sharedos records query --outcome denied

The same with the plain nats command line:

  eval "$(npx sharedos env --as human:alice)"
  nats --inbox-prefix "$SHAREDOS_INBOX" request ${principalSubject('grant.list', namespaceId, ALICE)} -H sharedos-schema:grant.list/1 '{"role":"issuer"}'
  nats subscribe '${principalSubject('turn.result', namespaceId, ALICE)}.>'
  npx sharedos env --as human:auditor   # its variables let nats subscribe '${namespaceSubject('feed.audit', namespaceId)}.>'

`;
};
