import type { SharedOS } from '@sharedos/client';
import { Command, Option } from 'commander';
import { auditLine } from '../audit-line.ts';
import { type Terminal, connected, invocationOf, untilStopped, valueOf } from '../command-line.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { positiveInteger } from '../numbers.ts';

const LOST_MAX_MS = 15_000;

/** Says when nothing can be heard, and rejects when that stays so: whoever watches must not take silence for nothing to see. */
const connectionLoss = (sharedos: SharedOS, terminal: Terminal): { readonly lost: Promise<never>; stop(): void } => {
  const { promise: lost, reject } = Promise.withResolvers<never>();
  let deadline: NodeJS.Timeout | undefined;
  const unwatch = sharedos.watchConnection((connected) => {
    clearTimeout(deadline);
    if (connected) {
      terminal.err('the connection is back; what was recorded meanwhile is in "sharedos records query"\n');
      return;
    }
    terminal.err(`the connection is lost: waiting ${LOST_MAX_MS / 1_000} s for it to come back\n`);
    deadline = setTimeout(
      () =>
        reject(new CommandFailure(EXIT.unavailable, 'not_connected', 'the connection did not come back. Is "sharedos up" still running?')),
      LOST_MAX_MS,
    );
  });
  return {
    lost,
    stop: () => {
      clearTimeout(deadline);
      unwatch();
    },
  };
};

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
        async (sharedos, name) => {
          const { promise: enough, resolve } = Promise.withResolvers<void>();
          let seen = 0;
          const tail = valueOf(
            await sharedos.audit.tail({
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
          const loss = connectionLoss(sharedos, terminal);
          try {
            await Promise.race([enough, untilStopped(terminal), loss.lost]);
          } finally {
            loss.stop();
          }
          await tail.stop();
        },
        (context) => context.auditor ?? context.defaultPrincipal,
      );
    });
  return command;
};
