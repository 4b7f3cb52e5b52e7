import { type ServiceName } from '@sharedos/contracts';
import { type ManagedProcess, type ProcessExit, startProcess } from './managed-process.ts';

/** A running service of the system, as a process. */
export interface ServiceProcess {
  readonly name: ServiceName;
  readonly instance: string;
  readonly pid: number;
  readonly exited: Promise<ProcessExit>;
  running(): boolean;
  /** The last lines it printed. */
  output(): string;
  /** SIGTERM and its grace; SIGKILL after that. */
  stop(): Promise<ProcessExit>;
  /** Resolves when it is gone. */
  kill(signal?: NodeJS.Signals): Promise<ProcessExit>;
  /** Freezes it (SIGSTOP): it keeps its connections and answers nothing. */
  pause(): void;
  resume(): void;
}

export interface ServicePlan {
  readonly name: ServiceName;
  readonly instance: string;
  /** The program, a path. */
  readonly main: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly onLine?: (line: string) => void;
}

/** Generous: on a busy machine half a minute goes by before a program is even loaded. */
const READY_DEADLINE_MS = 120_000;
const STOP_GRACE_MS = 15_000;

/** Starts a service and waits for its line `{"event":"ready",…}`. @throws Error with what it printed when that does not come. */
export const startServiceProcess = async (plan: ServicePlan): Promise<ServiceProcess> => {
  let isReady = false;
  const label = `${plan.name}/${plan.instance}`;
  const started: ManagedProcess = await startProcess({
    label,
    command: process.execPath,
    args: [plan.main],
    cwd: plan.cwd,
    env: plan.env,
    onLine: (line) => {
      isReady ||= saysReady(line);
      plan.onLine?.(line);
    },
  });
  try {
    await started.ready(() => isReady, READY_DEADLINE_MS);
  } catch (error) {
    await started.kill();
    throw error;
  }
  return {
    name: plan.name,
    instance: plan.instance,
    pid: started.pid,
    exited: started.exited,
    running: started.running,
    output: started.output,
    stop: () => started.stop(STOP_GRACE_MS),
    kill: started.kill,
    pause: started.pause,
    resume: started.resume,
  };
};

const saysReady = (line: string): boolean => {
  if (!line.startsWith('{')) return false;
  try {
    return (JSON.parse(line) as { readonly event?: unknown }).event === 'ready';
  } catch {
    return false;
  }
};
