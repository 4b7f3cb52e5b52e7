import { opendir } from 'node:fs/promises';
import { Seg, byCodeUnit } from '@sharedos/contracts';
import type { Folder } from './confinement.ts';
import { type Refusable, attempt } from './file-refusal.ts';
import { isFileName } from './file-name.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The names in a folder that a resource path can spell, in code-unit order. Others are left out: no grant could name them, and
 * a name that is not UTF-8 would alias another once decoded.
 *
 * @param max Most entries to look at; `complete` is false when there were more.
 */
export const namesIn = (
  folder: Folder,
  max: number,
): Promise<Refusable<{ readonly names: readonly string[]; readonly complete: boolean }>> =>
  attempt(async () => {
    const names: string[] = [];
    let seen = 0;
    // Leaving the loop closes the folder's stream, also on `break`.
    for await (const entry of await opendir(folder.at, { encoding: 'buffer' as BufferEncoding })) {
      if (seen >= max) return { names: names.sort(byCodeUnit), complete: false };
      seen += 1;
      const name = decoded(entry.name as unknown as Uint8Array);
      if (name !== undefined && Seg.safeParse(name).success && isFileName(name)) names.push(name);
    }
    return { names: names.sort(byCodeUnit), complete: true };
  });

const decoded = (name: Uint8Array): string | undefined => {
  try {
    return utf8.decode(name);
  } catch {
    return undefined;
  }
};
