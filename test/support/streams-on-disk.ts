import { readFile, readdir } from 'node:fs/promises';
import { join, sep } from 'node:path';

/**
 * Every byte that a broker keeps of each stream, by the stream's name: bodies, headers and subjects, what was taken out and not yet
 * overwritten among them. Nothing that a reader's rights, a filter or a schema would leave out is left out.
 */
export const streamsOnDisk = async (dataDir: string): Promise<ReadonlyMap<string, string>> => {
  const root = join(dataDir, 'jetstream');
  const found = new Map<string, string>();
  for (const entry of await readdir(root, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const place = join(entry.parentPath, entry.name);
    const parts = place.slice(root.length + 1).split(sep);
    const name = parts[parts.indexOf('streams') + 1];
    if (name === undefined || !parts.includes('streams')) continue;
    found.set(name, (found.get(name) ?? '') + (await readFile(place, 'latin1')));
  }
  return found;
};
