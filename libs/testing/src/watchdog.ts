import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/**
 * Removes what this process leaves behind even when it is killed with SIGKILL: a second process holds the other end of a pipe,
 * and when the pipe closes it kills what was being guarded. It runs only while there is something to guard.
 */
interface Watchdog {
  readonly child: ChildProcess;
  readonly guarded: Set<string>;
}
let running: Watchdog | undefined;

const PROGRAM = fileURLToPath(new URL('./watchdog-process.ts', import.meta.url));

const guard = (target: string): void => {
  running ??= startWatchdog();
  running.guarded.add(target);
  running.child.stdin?.write(`+${target}\n`);
};

/** Ends guarding; resolves when the watchdog itself is gone, if this was the last. */
const release = async (target: string): Promise<void> => {
  const watchdog = running;
  if (watchdog === undefined || !watchdog.guarded.delete(target)) return;
  watchdog.child.stdin?.write(`-${target}\n`);
  if (watchdog.guarded.size > 0) return;
  running = undefined;
  const { child } = watchdog;
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.ref();
  const gone = once(child, 'exit');
  child.stdin?.end();
  await gone;
};

export const guardProcess = (pid: number): void => guard(`process ${pid}`);
export const releaseProcess = (pid: number): Promise<void> => release(`process ${pid}`);
/** The folder is removed when this process ends without having released it. */
export const guardFolder = (folder: string): void => guard(`folder ${folder}`);
export const releaseFolder = (folder: string): Promise<void> => release(`folder ${folder}`);

const startWatchdog = (): Watchdog => {
  // Detached: Ctrl-C in a terminal reaches this process and not the watchdog, which must outlive it.
  const child = spawn(process.execPath, [PROGRAM], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  child.on('error', () => undefined);
  child.stdin?.on('error', () => undefined);
  child.unref();
  (child.stdin as unknown as { unref?: () => void } | null)?.unref?.();
  return { child, guarded: new Set() };
};
