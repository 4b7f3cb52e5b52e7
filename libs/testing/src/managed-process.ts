import { type ChildProcess, spawn } from 'node:child_process';
import { DeadlinePassed } from './wait-for.ts';
import { guardProcess, releaseProcess } from './watchdog.ts';

export interface ManagedProcessOptions {
  /** How it is called in messages. */
  readonly label: string;
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the child; nothing of ours is added. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Every line the child prints, on either stream, as it comes. */
  readonly onLine?: (line: string) => void;
}

export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A child process that does not outlive this one, whatever happens to this one. */
export interface ManagedProcess {
  readonly label: string;
  readonly pid: number;
  /** Settles when the process has ended; never rejects. */
  readonly exited: Promise<ProcessExit>;
  running(): boolean;
  /** The last lines printed, both streams together. */
  output(): string;
  /** Waits until `probe` answers true. @throws Error with the output when the process ends first or the deadline passes. */
  ready(probe: () => boolean | Promise<boolean>, deadlineMs: number): Promise<void>;
  /** Asks it to end (SIGTERM), and ends it (SIGKILL) when it has not within the grace. */
  stop(graceMs?: number): Promise<ProcessExit>;
  /** Ends it at once, or with another signal; resolves when it is gone. */
  kill(signal?: NodeJS.Signals): Promise<ProcessExit>;
  /** Freezes it: it keeps its sockets and answers nothing. The signal takes a moment to arrive, so wait for the silence. */
  pause(): void;
  resume(): void;
}

const OUTPUT_LINES_MAX = 400;
const LINE_LENGTH_MAX = 4_000;
const STOP_GRACE_MS = 10_000;
const PROBE_MS = 20;

export const startProcess = async (options: ManagedProcessOptions): Promise<ManagedProcess> => {
  const { label } = options;
  // A group of its own: Ctrl-C in a terminal must not end the parts in no order, and a kill reaches what the child started.
  const child = spawn(options.command, options.args, {
    cwd: options.cwd,
    env: { ...options.env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) => reject(new Error(`${label} cannot be started: ${error.message}`)));
  });
  const pid = child.pid as number;
  guardProcess(pid);

  const lines: string[] = [];
  const keep = (line: string): void => {
    lines.push(line.slice(0, LINE_LENGTH_MAX));
    if (lines.length > OUTPUT_LINES_MAX) lines.splice(0, lines.length - OUTPUT_LINES_MAX);
    options.onLine?.(line);
  };
  for (const stream of [child.stdout, child.stderr]) onLines(stream, keep);

  let exit: ProcessExit | undefined;
  const exited = new Promise<ProcessExit>((resolve) => {
    // `close` comes after the last line was read; `exit` alone may lose it.
    child.once('close', (code, signal) => {
      exit = { code, signal };
      void releaseProcess(pid).then(() => resolve(exit as ProcessExit));
    });
  });
  const running = (): boolean => exit === undefined && child.exitCode === null && child.signalCode === null;
  const signalGroup = (signal: NodeJS.Signals): void => {
    if (!running()) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // It ended between the question and the signal.
    }
  };
  const output = (): string => lines.join('\n');

  return {
    label,
    pid,
    exited,
    running,
    output,
    ready: async (probe, deadlineMs) => {
      const deadline = performance.now() + deadlineMs;
      while (!(await probe())) {
        if (!running()) throw new Error(`${label} ended before it was ready:\n${output()}`);
        if (performance.now() >= deadline) throw new DeadlinePassed(`${label} was not ready within ${deadlineMs} ms:\n${output()}`);
        await new Promise((resolve) => setTimeout(resolve, PROBE_MS));
      }
    },
    stop: async (graceMs = STOP_GRACE_MS) => {
      signalGroup('SIGCONT');
      signalGroup('SIGTERM');
      const timer = setTimeout(() => signalGroup('SIGKILL'), graceMs);
      try {
        return await exited;
      } finally {
        clearTimeout(timer);
      }
    },
    kill: async (signal = 'SIGKILL') => {
      signalGroup(signal);
      return exited;
    },
    pause: () => signalGroup('SIGSTOP'),
    resume: () => signalGroup('SIGCONT'),
  };
};

const onLines = (stream: ChildProcess['stdout'], keep: (line: string) => void): void => {
  if (stream === null) return;
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    const parts = (rest + chunk).split('\n');
    rest = (parts.pop() ?? '').slice(0, LINE_LENGTH_MAX);
    for (const part of parts) keep(part);
  });
  stream.on('end', () => {
    if (rest !== '') keep(rest);
  });
};
