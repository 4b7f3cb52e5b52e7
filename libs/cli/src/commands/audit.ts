import type { SharedOS } from '@sharedos/client';
import { type AuditEvent, AuditOutcome, AuditType, instantOf, sameAddress } from '@sharedos/contracts';
import { Command, Option } from 'commander';
import { auditLine } from '../audit-line.ts';
import { type Terminal, connected, invocationOf, untilStopped, valueOf } from '../command-line.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { parseSince } from '../duration.ts';
import { naturalNumber, positiveInteger } from '../numbers.ts';
import { parsePrincipal } from '../principal-name.ts';
import { blameCommand, explainCommand, replayCommand } from './audit-replay.ts';
import { exportCommand, keygenCommand, verifyCommand } from './audit-proof.ts';

const LOST_MAX_MS = 15_000;

/** Says when nothing can be heard, and rejects when that stays so: whoever watches must not take silence for nothing to see. */
const connectionLoss = (sharedos: SharedOS, terminal: Terminal): { readonly lost: Promise<never>; stop(): void } => {
  const { promise: lost, reject } = Promise.withResolvers<never>();
  let deadline: NodeJS.Timeout | undefined;
  const unwatch = sharedos.watchConnection((connected) => {
    clearTimeout(deadline);
    if (connected) {
      terminal.err('the connection is back; what was recorded meanwhile is in "sharedos audit tail --since"\n');
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

interface TailOptions {
  readonly count?: number;
  readonly since?: string;
  readonly after?: number;
  readonly follow?: boolean;
  readonly type?: readonly AuditType[];
  readonly outcome?: readonly AuditOutcome[];
  readonly actor?: string;
}

/** Records already printed, the wish for no more of them, and what each must be. */
class Printed {
  readonly enough: Promise<void>;
  readonly #resolve: () => void;
  readonly #wanted: (event: AuditEvent) => boolean;
  readonly #print: (sequence: number, event: AuditEvent) => void;
  #left: number;

  constructor(options: TailOptions, print: (sequence: number, event: AuditEvent) => void) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.enough = promise;
    this.#resolve = resolve;
    this.#left = options.count ?? Infinity;
    this.#print = print;
    const actor = options.actor === undefined ? undefined : parsePrincipal(options.actor);
    const since = options.since === undefined ? -Infinity : (instantOf(parseSince(options.since, Date.now())) ?? 0);
    this.#wanted = (event) =>
      (options.type?.includes(event.type) ?? true) &&
      (options.outcome?.includes(event.outcome) ?? true) &&
      (actor === undefined || sameAddress(actor, event.actor)) &&
      (instantOf(event.at) ?? 0) >= since;
  }

  get isEnough(): boolean {
    return this.#left <= 0;
  }

  take(sequence: number, event: AuditEvent): void {
    if (this.isEnough || !this.#wanted(event)) return;
    this.#left -= 1;
    this.#print(sequence, event);
    if (this.isEnough) this.#resolve();
  }
}

export const auditCommand = (terminal: Terminal): Command => {
  const command = new Command('audit').description('Watch what is decided, and prove what was.');
  command
    .command('tail')
    .description('Audit records as they are made, until Ctrl-C. With --since or --after what was recorded before, too.')
    .addOption(new Option('--count <count>', 'end after so many').argParser(positiveInteger))
    .option('--since <time>', 'begin with what was recorded then: 2026-01-01T12:00:00Z, 15m')
    .addOption(new Option('--after <place>', 'begin after this place').argParser(naturalNumber))
    .option('--follow', 'with --since or --after: go on with what comes')
    .addOption(new Option('--type <type...>', 'only of these kinds').choices(AuditType.options))
    .addOption(new Option('--outcome <outcome...>', 'only what came out so').choices(AuditOutcome.options))
    .option('--actor <kind:id>', 'only of what one principal did')
    .addHelpText(
      'after',
      `
Without --since and --after it is the live feed, which only configured auditors of the namespace hear; with one of them, the
records themselves, complete and in order, for whoever has a grant to read the audit.

Examples:
  $ sharedos audit tail --outcome denied failed
  $ sharedos audit tail --since 15m --follow
  $ sharedos audit tail --json --count 10`,
    )
    .action(async (options: TailOptions, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const json = invocation.options.json === true;
      const printed = new Printed(options, (sequence, event) =>
        terminal.out(json ? `${JSON.stringify({ sequence, event })}\n` : `${auditLine(event)}\n`),
      );
      const isReplay = options.since !== undefined || options.after !== undefined;
      await connected(
        invocation,
        (sharedos, name) =>
          isReplay ? replayed(sharedos, terminal, json, options, printed) : tailed(sharedos, terminal, json, name, printed),
        (context) => context.auditor ?? context.defaultPrincipal,
      );
    });
  command.addCommand(replayCommand(terminal));
  command.addCommand(explainCommand(terminal));
  command.addCommand(blameCommand(terminal));
  command.addCommand(exportCommand(terminal));
  command.addCommand(verifyCommand(terminal));
  command.addCommand(keygenCommand(terminal));
  return command;
};

/** The live feed: nothing is read again, and what does not arrive is named. */
const tailed = async (sharedos: SharedOS, terminal: Terminal, json: boolean, name: string, printed: Printed): Promise<void> => {
  const tail = valueOf(
    await sharedos.audit.tail({
      onRecord: (event, sequence) => printed.take(sequence, event),
      onGap: (gap) => {
        if (json) terminal.out(`${JSON.stringify({ gap })}\n`);
        else
          terminal.err(`records between ${gap.after} and ${gap.before} did not arrive: see "sharedos audit tail --after ${gap.after}"\n`);
      },
    }),
  );
  if (!json) terminal.err(`watching as ${name}, Ctrl-C ends it\n`);
  const loss = connectionLoss(sharedos, terminal);
  try {
    await Promise.race([printed.enough, untilStopped(terminal), loss.lost]);
  } finally {
    loss.stop();
  }
  await tail.stop();
};

/** The records themselves, from a place on. */
const replayed = async (sharedos: SharedOS, terminal: Terminal, json: boolean, options: TailOptions, printed: Printed): Promise<void> => {
  const stopping = new AbortController();
  void untilStopped(terminal).then(() => stopping.abort());
  const records = sharedos.audit.records({ after: options.after ?? 0, follow: options.follow === true, signal: stopping.signal });
  for await (const item of records) {
    const value = valueOf(item);
    if (value.kind === 'record') printed.take(value.sequence, value.event);
    else if (json) terminal.out(`${JSON.stringify({ missed: { after: value.after, upTo: value.upTo } })}\n`);
    else terminal.err(`records up to ${value.upTo} are no longer held by the read model: they are in the stream and in exports\n`);
    if (printed.isEnough) break;
  }
  stopping.abort();
};
