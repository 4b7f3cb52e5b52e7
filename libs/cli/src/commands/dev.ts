import { resolve } from 'node:path';
import { startEventStoreDouble } from '@sharedos/eventstoredb-double';
import { Command, Option } from 'commander';
import { type Terminal, invocationOf, untilStopped } from '../command-line.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { positiveInteger } from '../numbers.ts';

interface DoubleCommandOptions {
  readonly port?: number;
  readonly data?: string;
  readonly foreignEvery?: number;
}

export const devCommand = (terminal: Terminal): Command =>
  new Command('dev')
    .description('What is of use while working on SharedOS, and not in production.')
    .addCommand(eventStoreDbCommand(terminal));

const eventStoreDbCommand = (terminal: Terminal): Command =>
  new Command('eventstoredb')
    .description('Run a double of EventStoreDB on the loopback interface until Ctrl-C. It speaks the protocol; it is no database.')
    .addOption(new Option('--port <number>', 'where to listen (default: a free port)').argParser(positiveInteger))
    .option('--data <folder>', 'keep the log here, over restarts and kills (default: in memory alone)')
    .addOption(new Option('--foreign-every <count>', 'write events of somebody else after each so many appends').argParser(positiveInteger))
    .addHelpText(
      'after',
      '\nExamples:\n  $ sharedos dev eventstoredb --port 2113 --data ./events\n  $ SHAREDOS_EVENT_STORE=eventstoredb SHAREDOS_EVENTSTORE_URL="esdb://127.0.0.1:2113?tls=false" sharedos up',
    )
    .action(async (options: DoubleCommandOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const stopped = untilStopped(terminal);
      const double = await startEventStoreDouble({
        ...(options.port === undefined ? {} : { port: options.port }),
        ...(options.data === undefined ? {} : { dataDir: resolve(terminal.cwd, options.data) }),
        ...(options.foreignEvery === undefined ? {} : { foreignEvery: options.foreignEvery }),
      }).catch((error: unknown) => {
        throw new CommandFailure(
          EXIT.unavailable,
          'not_started',
          `the double did not start: ${error instanceof Error ? error.message : String(error)}`,
        );
      });
      try {
        invocation.show({ connectionString: double.connectionString }, `${double.connectionString}\n`);
        await stopped;
      } finally {
        await double.close();
      }
    });
