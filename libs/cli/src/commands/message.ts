import { type Json, hashOf, timestampOf } from '@sharedos/contracts';
import { randomUUID } from 'node:crypto';
import { Command, Option } from 'commander';
import { type Terminal, connected, invocationOf, parseJson, valueOf } from '../command-line.ts';
import { parseTimestamp } from '../duration.ts';
import { CommandFailure, EXIT, saying } from '../exit-code.ts';
import { naturalNumber, positiveInteger } from '../numbers.ts';
import { parsePrincipal, principalName } from '../principal-name.ts';
import { shellWord } from '../shell-word.ts';
import { printable, table } from '../table.ts';
import { routeCommand } from './message-route.ts';

interface SendOptions {
  readonly to: string;
  readonly purpose: string;
  readonly id?: string;
  readonly at?: string;
  readonly replyTo?: string;
  readonly authority?: string;
  readonly owner?: string;
}

export const messageCommand = (terminal: Terminal): Command => {
  const command = new Command('message').description('Send messages to principals, and read your inbox.');

  command
    .command('send')
    .argument('<payload>', 'text, or JSON when it begins with { or [')
    .description('Send one message. It needs a grant to send to that inbox.')
    .requiredOption('--to <kind:id>', 'the recipient')
    .requiredOption('--purpose <text>', 'what it is for')
    .option('--id <id>', 'its id (default: a new one)')
    .option('--at <timestamp>', 'when it was written (default: now)', parseTimestamp)
    .option('--reply-to <id>', 'the message it answers')
    .option('--authority <kind:id>', 'whose grant is used (default: your own)')
    .option('--owner <kind:id>', 'whose resource the inbox is taken to be (default: your own)')
    .addHelpText(
      'after',
      '\nExample:\n  $ sharedos message send "the garden needs stones" --to human:bob --purpose "ask for help"\n\nWhat is the same: a message with the same --id and --at, from the same principal, with everything else unchanged, is delivered once\nand answered as it was the first time. The same --id with anything else is refused.',
    )
    .action(async (payload: string, options: SendOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const { id = randomUUID(), at = timestampOf(Date.now()) } = options;
      const message = {
        id,
        createdAt: at,
        // Of the id and the time, so that a repetition is the same message to the letter.
        traceId: hashOf(['message', id, at]).slice(0, 32),
        receiver: parsePrincipal(options.to),
        purpose: options.purpose,
        payload: /^[{[]/.test(payload) ? (parseJson(payload, 'the payload') as Json) : payload,
        ...(options.replyTo === undefined ? {} : { replyTo: options.replyTo }),
        ...(options.authority === undefined ? {} : { authority: parsePrincipal(options.authority) }),
        ...(options.owner === undefined ? {} : { owner: parsePrincipal(options.owner) }),
      };
      const again = {
        text: `Repeat the same command with --id ${shellWord(id)} --at ${at}: it is delivered once`,
        details: { messageId: id, at },
      };
      const delivery = await connected(invocation, async ({ messages }) => valueOf(await messages.send(message), again));
      if (delivery.status === 'denied' || delivery.status === 'failed') {
        const { code } = delivery.error;
        const exitCode = delivery.status === 'denied' ? EXIT.refused : EXIT.unavailable;
        throw new CommandFailure(exitCode, code, `${printable(id)} was not sent ${saying(delivery.error)}`);
      }
      invocation.show(delivery, `${delivery.status} ${printable(delivery.messageId)}\n`);
    });

  command
    .command('inbox')
    .description('Messages waiting for you, oldest first.')
    .addOption(new Option('--limit <count>', 'at most so many').argParser(positiveInteger))
    .addOption(new Option('--after <place>', 'only later ones').argParser(naturalNumber))
    .addHelpText('after', '\nExample:\n  $ sharedos message inbox --as human:bob')
    .action(async (options: { readonly limit?: number; readonly after?: number }, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const query = {
        ...(options.limit === undefined ? {} : { limit: options.limit }),
        ...(options.after === undefined ? {} : { after: options.after }),
      };
      const messages = await connected(invocation, async (sharedos) => valueOf(await sharedos.messages.inbox(query)));
      const rows = messages.map(({ sequence, message }) => [
        sequence,
        principalName(message.sender),
        message.purpose,
        JSON.stringify(message.payload).slice(0, 60),
        message.createdAt,
      ]);
      invocation.show({ messages }, rows.length === 0 ? 'no messages\n' : table(['PLACE', 'FROM', 'PURPOSE', 'PAYLOAD', 'AT'], rows));
    });

  command
    .command('status')
    .argument('<id>', 'of a message that you sent')
    .description('What became of a message: parked, dispatched, delivered, or why it did not arrive.')
    .addHelpText('after', '\nExample:\n  $ sharedos message status 7d1f0c5e')
    .action(async (id: string, _: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const status = await connected(invocation, async ({ messages }) => valueOf(await messages.status(id)));
      const { state, at, code, until } = status;
      const more = [...(code === undefined ? [] : [`(${printable(code)})`]), ...(until === undefined ? [] : [`until ${until}`])];
      invocation.show(status, `${[state, 'since', at, ...more].join(' ')}\n`);
    });

  command.addCommand(routeCommand(terminal));

  command
    .command('ack')
    .argument('<place>', 'as the inbox shows it', positiveInteger)
    .description('Take a message out of your inbox for good.')
    .addHelpText('after', '\nExample:\n  $ sharedos message ack 6 --as human:bob')
    .action(async (sequence: number, _: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const acknowledged = await connected(invocation, async ({ messages }) => valueOf(await messages.ack(sequence)));
      invocation.show({ sequence, acknowledged }, acknowledged ? `taken out ${sequence}\n` : `${sequence} was not there any more\n`);
    });
  return command;
};
