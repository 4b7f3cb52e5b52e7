import { spawn } from 'node:child_process';

export interface ShellOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Shown to people while it runs; kept for the error when absent. */
  readonly isShown?: boolean;
  /** Given to its standard input. */
  readonly input?: NodeJS.ReadableStream;
}

/** Runs a program. @returns What it printed. @throws Error with that when it fails. */
export const shell = (command: string, args: readonly string[], options: ShellOptions = {}): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, [...args], {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: [
        options.input === undefined ? 'ignore' : 'pipe',
        options.isShown === true ? 'inherit' : 'pipe',
        options.isShown === true ? 'inherit' : 'pipe',
      ],
    });
    let said = '';
    child.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
    child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
    if (child.stdin !== null) options.input?.pipe(child.stdin);
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0
        ? resolve(said)
        : reject(new Error(`${command} ${args.slice(0, 3).join(' ')} …: ended with ${code}\n${said.slice(-4_000)}`)),
    );
  });

/** Whether a program ends well. */
export const succeeds = (command: string, args: readonly string[], options: ShellOptions = {}): Promise<boolean> =>
  shell(command, args, options).then(
    () => true,
    () => false,
  );
