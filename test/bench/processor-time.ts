import { readFile } from 'node:fs/promises';

/** The kernel counts in hundredths of a second on every Linux that Node runs on. */
const TICK_MS = 10;

/**
 * Milliseconds of processor that a process has used since it began, in user and in kernel. Other load on the machine changes
 * it little, so it tells a change of the code where wall time tells the neighbours.
 *
 * @returns `NaN` where there is no `/proc`.
 */
export const processorMs = async (pid: number): Promise<number> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return stat === undefined ? NaN : ticksOf(stat) * TICK_MS;
};

/** User and kernel ticks of one line of `/proc/<pid>/stat`. The name in it may hold spaces and parentheses. */
export const ticksOf = (stat: string): number => {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
};
