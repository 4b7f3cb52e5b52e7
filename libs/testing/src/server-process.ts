import { type ManagedProcess, startProcess } from './managed-process.ts';

/** How to start one server, and how to tell that it serves. Asked again for each start. */
export interface ServerPlan {
  readonly label: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly isServing: () => Promise<boolean>;
}

/** A server of the stack, to be stopped, killed and frozen by tests of faults. It always comes back on the same port. */
export interface ServerHandle {
  readonly pid: number;
  running(): boolean;
  output(): string;
  stop(): Promise<void>;
  /** SIGKILL: no goodbye, nothing written. */
  kill(): Promise<void>;
  /** Starts it again, stopping it first when it runs; resolves when it serves. */
  restart(): Promise<void>;
  pause(): void;
  resume(): void;
}

const READY_DEADLINE_MS = 20_000;
const STOP_GRACE_MS = 5_000;

export const startServer = async (plan: ServerPlan): Promise<ServerHandle> => {
  const start = async (): Promise<ManagedProcess> => {
    const started = await startProcess({
      label: plan.label,
      command: plan.command,
      args: plan.args,
      cwd: plan.cwd,
      env: { PATH: process.env['PATH'] ?? '' },
    });
    try {
      await started.ready(plan.isServing, READY_DEADLINE_MS);
    } catch (error) {
      await started.kill();
      throw error;
    }
    return started;
  };
  let current = await start();
  return {
    get pid() {
      return current.pid;
    },
    running: () => current.running(),
    output: () => current.output(),
    stop: async () => {
      await current.stop(STOP_GRACE_MS);
    },
    kill: async () => {
      await current.kill();
    },
    restart: async () => {
      await current.stop(STOP_GRACE_MS);
      current = await start();
    },
    pause: () => current.pause(),
    resume: () => current.resume(),
  };
};
