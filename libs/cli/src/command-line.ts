import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { type ClientError, type SharedOS, connectSharedOS, BusConnectError } from '@sharedos/client';
import type { Result } from '@sharedos/contracts';
import type { Command } from 'commander';
import { type Context, contextPlace, readContext } from './context-file.ts';
import { CommandFailure, EXIT, usageFailure } from './exit-code.ts';
import { parsePrincipal } from './principal-name.ts';
import { shellWord } from './shell-word.ts';
import { printable } from './table.ts';

/** Where a command line reads and writes, so that it can be run inside another program. */
export interface Terminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Ends what runs until stopped; Ctrl-C when absent. */
  readonly signal?: AbortSignal;
  /** Aborted when nobody reads what is printed any more: what runs until stopped ends then, too. */
  readonly readerGone?: AbortSignal;
  /** What `-` names; standard input when absent. */
  readonly stdin?: AsyncIterable<string | Uint8Array>;
}

export interface GlobalOptions {
  readonly json?: boolean;
  readonly as?: string;
  readonly context?: string;
  readonly timeout?: number;
}

/** What every command is given: its own options, the common ones, and a way to print. */
export interface Invocation {
  readonly terminal: Terminal;
  readonly options: GlobalOptions;
  /** Prints `value` for programs with `--json`, `text` for people without. */
  show(value: unknown, text: string): void;
}

export const invocationOf = (terminal: Terminal, command: Command): Invocation => {
  const options = command.optsWithGlobals<GlobalOptions>();
  return { terminal, options, show: (value, text) => terminal.out(options.json === true ? `${JSON.stringify(value)}\n` : text) };
};

export const contextOf = async ({ terminal, options }: Invocation): Promise<Context> =>
  readContext(await contextPlace(terminal.cwd, options.context ?? terminal.env['SHAREDOS_CONTEXT']));

/**
 * Who a command speaks for: `--as`, or who the context names for this kind of command.
 *
 * @throws CommandFailure when the context has no credentials for it.
 */
export const speaker = (context: Context, as: string | undefined, fallback: string = context.defaultPrincipal) => {
  const name = as ?? fallback;
  const principal = parsePrincipal(name);
  const credentials = context.principals[name];
  if (credentials === undefined)
    throw usageFailure(`the context has no credentials for ${name}; it has ${Object.keys(context.principals).join(', ')}`);
  return { name, principal, ...credentials };
};

/** Connects as a principal that the context has credentials for. */
export const connectAs = async (
  { options }: Pick<Invocation, 'options'>,
  context: Context,
  as: string | undefined,
  fallback?: string,
): Promise<{ readonly sharedos: SharedOS; readonly name: string }> => {
  const { name, principal, user, password } = speaker(context, as, fallback);
  const sharedos = await connectSharedOS({
    servers: context.natsUrl,
    ...(context.caFile === undefined ? {} : { caFile: context.caFile }),
    user,
    password,
    namespaceId: context.namespaceId,
    principal,
    connectTimeoutMs: 5_000,
    ...(options.timeout === undefined ? {} : { requestTimeoutMs: options.timeout }),
  }).catch((error: unknown) => {
    if (error instanceof BusConnectError) throw new CommandFailure(EXIT.unavailable, 'not_connected', error.message);
    throw error;
  });
  return { sharedos, name };
};

/** Runs `use` on a connection as the chosen principal, and closes it whatever happens. */
export const connected = async <T>(
  invocation: Invocation,
  use: (sharedos: SharedOS, name: string) => Promise<T>,
  fallback: (context: Context) => string = (context) => context.defaultPrincipal,
): Promise<T> => {
  const context = await contextOf(invocation);
  const { sharedos, name } = await connectAs(invocation, context, invocation.options.as, fallback(context));
  try {
    return await use(sharedos, name);
  } finally {
    await sharedos.close();
  }
};

/** What to try next, for the codes a newcomer meets first. */
const NEXT: Readonly<Record<string, string>> = {
  turn_queue_full: 'see "sharedos turn list", and cancel or wait for one',
  not_permitted: 'choose another principal with --as',
  grant_not_found: 'see "sharedos grant list"',
  identity_mismatch: 'choose who speaks with --as; a body cannot',
};

/** What to do when nobody knows whether something was carried out: in words, and for programs. */
export interface Again {
  readonly text: string;
  readonly details?: Readonly<Record<string, string>>;
}

/** What only reads, or is the same however often it is done. */
const HARMLESS: Again = { text: 'Asking again changes nothing' };

/**
 * The value, or the end of the command with its exit code and a line that says what to do.
 *
 * @param again For whatever must not be done twice: how to learn whether it was done, or to make exactly the same command again.
 */
export const valueOf = <T>(result: Result<T, ClientError>, again: Again = HARMLESS): T => {
  if (result.ok) return result.value;
  if (result.error.kind === 'unavailable') {
    throw new CommandFailure(
      EXIT.unavailable,
      'unavailable',
      `nobody could find out: ${result.error.reason}. Is "sharedos up" still running? ${again.text}`,
      again.details,
    );
  }
  const { code, message, retryable } = result.error.error;
  const next = NEXT[code] ?? (retryable ? again.text : undefined);
  throw new CommandFailure(EXIT.refused, code, `refused (${code}): ${message}${next === undefined ? '' : `; ${next}`}`);
};

/** Whoever does not know whether a command was carried out makes it again under its command id. */
export const sameCommand = (commandId: string): Again => ({
  text: `Repeat the same command with --command-id ${shellWord(commandId)}: it counts once`,
  details: { commandId },
});

/** A command to paste, spoken by whom this one was. */
export const commandText = ({ options }: Invocation, ...words: readonly string[]): string =>
  ['sharedos', ...words, ...(options.as === undefined ? [] : ['--as', options.as])].map((word) => shellWord(printable(word))).join(' ');

const INPUT_BYTES_MAX = 1024 * 1024;

/** The JSON in a file, or on standard input for `-`. */
export const readJson = async (terminal: Terminal, place: string): Promise<unknown> => {
  const stream = place === '-' ? (terminal.stdin ?? process.stdin) : createReadStream(resolve(terminal.cwd, place));
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of stream) {
      chunks.push(Buffer.from(chunk as Uint8Array));
      bytes += chunks.at(-1)?.byteLength ?? 0;
      if (bytes > INPUT_BYTES_MAX) throw usageFailure(`${place} is larger than ${INPUT_BYTES_MAX} bytes`);
    }
  } catch (error) {
    if (error instanceof CommandFailure) throw error;
    throw usageFailure(`${place} cannot be read: ${(error as Error).message}`);
  }
  return parseJson(Buffer.concat(chunks).toString('utf8'), place);
};

export const parseJson = (text: string, what: string): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageFailure(`${what} is not JSON: ${(error as Error).message}`);
  }
};

/** Resolves at Ctrl-C, when the terminal's own signal says so, or when nobody reads on. */
export const untilStopped = (terminal: Terminal): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.off(name, done);
      resolve();
    };
    if (terminal.readerGone?.aborted === true) return done();
    terminal.readerGone?.addEventListener('abort', done, { once: true });
    if (terminal.signal !== undefined) {
      if (terminal.signal.aborted) return done();
      terminal.signal.addEventListener('abort', done, { once: true });
      return;
    }
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, done);
  });
