import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { type LockOutcome, WAIT_MS_MAX } from './file-locks.ts';

const ASK_AGAIN_MS = 2;
const ASK_AGAIN_MS_MAX = 20;
const SQLITE_BUSY = 5;

/**
 * A lock over processes and containers that use one file system: an exclusive transaction on an empty SQLite file, which is a
 * POSIX record lock with SQLite's care around it (closing one descriptor of a process does not drop the lock of another). The
 * operating system frees it when the process ends, however it ends, and a stopped process keeps it: there is no lease that could
 * run out under a writer, and so no second writer beside a slow one. It holds over NFS where that has a lock service; where there is
 * none, asking fails, and nothing is written.
 *
 * @returns A way to let go; `busy` when somebody else held it for longer than {@link WAIT_MS_MAX}.
 * @throws What SQLite says when no lock can be had at all.
 */
export const lockStore = async (file: string, cancel: AbortSignal): Promise<(() => void) | Exclude<LockOutcome, 'held'>> => {
  const database = new DatabaseSync(file, { timeout: 0 });
  const deadline = performance.now() + WAIT_MS_MAX;
  for (let waitMs = ASK_AGAIN_MS; ; waitMs = Math.min(waitMs * 2, ASK_AGAIN_MS_MAX)) {
    try {
      database.exec('BEGIN EXCLUSIVE');
      return () => database.close();
    } catch (error) {
      if (!isBusy(error)) {
        database.close();
        throw error;
      }
    }
    const outcome = cancel.aborted ? 'cancelled' : performance.now() > deadline ? 'busy' : undefined;
    if (outcome !== undefined) {
      database.close();
      return outcome;
    }
    // Not in step with others that wait for the same lock.
    await pause(waitMs * (0.5 + Math.random()));
  }
};

const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'errcode' in error && ((error.errcode as number) & 0xff) === SQLITE_BUSY;
