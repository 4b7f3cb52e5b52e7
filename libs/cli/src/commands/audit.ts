import { Command, Option } from 'commander';
import { auditLine } from '../audit-line.ts';
import { type Terminal, connected, invocationOf, untilStopped, valueOf } from '../command-line.ts';
import { positiveInteger } from '../numbers.ts';

export const auditCommand = (terminal: Terminal): Command => {
  const command = new Command('audit').description('Watch what is decided.');
  command
    .command('tail')
    .description('Audit records as they are made, until Ctrl-C. Only configured auditors of the namespace may.')
    .addOption(new Option('--count <count>', 'end after so many').argParser(positiveInteger))
    .addHelpText('after', '\nExamples:\n  $ sharedos audit tail\n  $ sharedos audit tail --json --count 10')
    .action(async (options: { readonly count?: number }, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const json = invocation.options.json === true;
      await connected(
        invocation,
        async ({ audit }, name) => {
          const { promise: enough, resolve } = Promise.withResolvers<void>();
          let seen = 0;
          const tail = valueOf(
            await audit.tail({
              onRecord: (event, sequence) => {
                if (options.count !== undefined && seen >= options.count) return;
                seen += 1;
                terminal.out(json ? `${JSON.stringify({ sequence, event })}\n` : `${auditLine(event)}\n`);
                if (seen === options.count) resolve();
              },
              onGap: (gap) => {
                if (json) terminal.out(`${JSON.stringify({ gap })}\n`);
                else
                  terminal.err(
                    `records between ${gap.after} and ${gap.before} did not arrive: see "sharedos records query --after ${gap.after}"\n`,
                  );
              },
            }),
          );
          if (!json) terminal.err(`watching as ${name}, Ctrl-C ends it\n`);
          await Promise.race([enough, untilStopped(terminal)]);
          await tail.stop();
        },
        (context) => context.auditor ?? context.defaultPrincipal,
      );
    });
  return command;
};
