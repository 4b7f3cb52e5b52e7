import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { type Timers, systemTimers } from '../timers.ts';

export interface HarnessCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment: nothing of ours is inherited, for it holds our own secrets. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

export interface HarnessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A command line tool that runs for one turn, with whatever it starts. */
export interface HarnessProcess {
  readonly output: Readable;
  /** Settles when it has ended; never rejects. */
  readonly exited: Promise<HarnessExit>;
  /** Writes to its input. One that does not read any more is not an error: its ending says so. */
  write(text: string): void;
  endInput(): void;
  /** Asks it to end, once, and kills all of it when it has not within the grace. Resolves when it is gone. */
  stop(graceMs: number): Promise<void>;
}

/** Starts it. What it prints for people is thrown away: it may hold anything. @throws what the system says when it cannot be started. */
export const startHarness = async ({ command, args, env, cwd }: HarnessCommand, timers: Timers = systemTimers): Promise<HarnessProcess> => {
  // A group of its own, so that what it starts can be ended with it.
  const child = spawn(command, args, { cwd, env: { ...env }, detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
  await once(child, 'spawn');
  const group = -(child.pid as number);
  const signalGroup = (signal: NodeJS.Signals): void => {
    try {
      process.kill(group, signal);
    } catch {
      // Nobody of it is left.
    }
  };
  child.on('error', () => undefined);
  child.stdin.on('error', () => undefined);
  const exited = new Promise<HarnessExit>((resolve) => {
    child.once('exit', (code, signal) => {
      // Whoever it left behind would hold its output open, and could go on with what the turn knew.
      signalGroup('SIGKILL');
      resolve({ code, signal });
    });
  });
  let stopping: Promise<void> | undefined;
  return {
    output: child.stdout,
    exited,
    write: (text) => void child.stdin.write(text),
    endInput: () => void child.stdin.end(),
    stop: (graceMs) => {
      stopping ??= (async () => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        signalGroup('SIGTERM');
        const cancel = timers.after(graceMs, () => signalGroup('SIGKILL'));
        await exited;
        cancel();
      })();
      return stopping;
    },
  };
};
