import { Command } from 'commander';
import { type Terminal, contextOf, invocationOf, speaker } from '../command-line.ts';
import { quoted } from '../shell-word.ts';

export const envCommand = (terminal: Terminal): Command =>
  new Command('env')
    .description('Variables for the plain nats command line, to be evaluated by a shell. They hold a password.')
    .addHelpText(
      'after',
      '\nExample:\n  $ eval "$(sharedos env --as human:alice)"\n  $ nats --inbox-prefix "$SHAREDOS_INBOX" request sharedos.v1.demo.grant.list.human.alice \'{"role":"issuer"}\' -H sharedos-schema:grant.list/1',
    )
    .action(async (_: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const context = await contextOf(invocation);
      const { user, password, inboxPrefix } = speaker(context, invocation.options.as);
      const variables = { NATS_URL: context.natsUrl, NATS_USER: user, NATS_PASSWORD: password, SHAREDOS_INBOX: inboxPrefix };
      invocation.show(
        variables,
        Object.entries(variables)
          .map(([name, value]) => `export ${name}=${quoted(value)}\n`)
          .join(''),
      );
    });
