import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { guardFolder, releaseFolder } from './watchdog.ts';

/** A temporary folder for its owner alone. It goes with `remove`, or with this process, however this process ends. */
export interface PrivateFolder {
  readonly path: string;
  remove(): Promise<void>;
}

export const privateFolder = async (): Promise<PrivateFolder> => {
  const path = await mkdtemp(join(tmpdir(), 'sharedos-'));
  guardFolder(path);
  return {
    path,
    remove: async () => {
      await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
      await releaseFolder(path);
    },
  };
};
