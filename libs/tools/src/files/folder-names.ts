import { type Dirent, readdirSync } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { Seg, byCodeUnit } from '@sharedos/contracts';
import type { Folder } from '../confinement/confinement.ts';
import type { TreeFolder } from '../confinement/tree-steps.ts';
import { isFileName } from './file-name.ts';
import { type Refusable, attempt, attemptSync } from './file-refusal.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** Names as the bytes they are: one that is not UTF-8 would alias another once decoded. */
const BYTES = 'buffer' as BufferEncoding;

/**
 * The names in a folder that a resource path can spell, in code-unit order. Others are left out: no grant could name them.
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
    for await (const entry of await opendir(folder.at, { encoding: BYTES })) {
      if (seen >= max) return { names: names.sort(byCodeUnit), complete: false };
      seen += 1;
      const name = spelled(entry.name as unknown as Uint8Array);
      if (name !== undefined) names.push(name);
    }
    return { names: names.sort(byCodeUnit), complete: true };
  });

/** One entry of a folder, as the folder tells it: what is opened later is looked at again. */
export interface NamedEntry {
  readonly name: string;
  readonly isFolder: boolean;
  readonly isFile: boolean;
}

/** The same for the thread that walks trees, with what kind of thing each name is. */
export const entriesIn = (folder: TreeFolder): Refusable<readonly NamedEntry[]> => {
  const found = attemptSync(() => readdirSync(folder.at, { withFileTypes: true, encoding: BYTES }) as unknown as Dirent<Buffer>[]);
  if (!found.ok) return found;
  const entries: NamedEntry[] = [];
  for (const entry of found.value) {
    const name = spelled(entry.name);
    if (name !== undefined) entries.push({ name, isFolder: entry.isDirectory(), isFile: entry.isFile() });
  }
  return { ok: true, value: entries.sort((a, b) => byCodeUnit(a.name, b.name)) };
};

const spelled = (bytes: Uint8Array): string | undefined => {
  try {
    const name = utf8.decode(bytes);
    return Seg.safeParse(name).success && isFileName(name) ? name : undefined;
  } catch {
    return undefined;
  }
};
