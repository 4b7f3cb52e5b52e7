import type { ExecutionControl, Reply } from '@sharedos/contracts';
import type { Ports } from './ports.ts';

/** Answers another executor, or stops a turn for it: only the process that claimed a turn can do either. */
export const controlExecution =
  ({ running }: Ports) =>
  async ({ turnId, ask }: ExecutionControl): Promise<Reply<{ running: boolean }>> => ({
    ok: true,
    value: { running: ask === 'cancel' ? running.cancel(turnId) : running.has(turnId) },
  });
