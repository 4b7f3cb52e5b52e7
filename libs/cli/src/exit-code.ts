/** What the shell learns. */
export const EXIT = {
  ok: 0,
  /** A rule said no, or a turn or one of its scripted calls did not succeed. */
  refused: 1,
  /** The command line or the files it names are wrong. */
  usage: 2,
  /** Nobody could find out: not started, not reached, no answer in time. */
  unavailable: 3,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command with one line that says what to do next. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  readonly exitCode: ExitCode;
  /** A stable code for programs that read `--json`. */
  readonly code: string;
  /** For programs: what the message names. */
  readonly details: Readonly<Record<string, string>> | undefined;

  constructor(exitCode: ExitCode, code: string, message: string, details?: Readonly<Record<string, string>>) {
    super(message);
    this.exitCode = exitCode;
    this.code = code;
    this.details = details;
  }
}

/** Code and text of a refusal, once each: many a text ends with its code. */
export const saying = ({ code, message }: { readonly code: string; readonly message: string }): string =>
  message.includes(code) ? `(${code}).` : `(${code}): ${message}`;

export const usageFailure = (message: string): CommandFailure => new CommandFailure(EXIT.usage, 'usage', message);
