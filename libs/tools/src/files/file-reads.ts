import { err, ok, timestampOf } from '@sharedos/contracts';
import type { Folder } from '../confinement/confinement.ts';
import type { ConfinedTree } from './confined-tree.ts';
import { textOf, versionOf, withBytes } from './file-content.ts';
import { type Refusable, attempt } from './file-refusal.ts';
import type { FilesListOutput, FilesReadOutput, FilesStatOutput } from './files-schemas.ts';
import { namesIn } from './folder-names.ts';
import { metadataName, readMetadata } from './metadata.ts';
import type { Place } from './place.ts';

/** Entries looked at to find the first ones by name. */
const LIST_SCAN_MAX = 20_000;
/** Entries asked about at once; the thread pool that answers is small and shared. */
const STATS_AT_ONCE = 8;
/** An owner's root before anything was written to it: an empty folder that has never changed. */
const UNWRITTEN_VERSION = 'unwritten';

/** Nothing was ever written for this owner, which reads as an empty root, not as a missing one. */
export const isUnwritten = (place: Place, outcome: Refusable<unknown>): boolean =>
  place.isRoot && !outcome.ok && outcome.error === 'file_not_found';

export const listFolder = async (tree: ConfinedTree, place: Place, entriesMax: number): Promise<Refusable<FilesListOutput>> => {
  const listed = await tree.inFolder([...place.above, place.name], false, async (folder): Promise<Refusable<FilesListOutput>> => {
    const found = await namesIn(folder, LIST_SCAN_MAX);
    return found.ok ? ok(await entriesOf(tree, folder, found.value, entriesMax)) : found;
  });
  return isUnwritten(place, listed) ? ok({ entries: [], truncated: false }) : listed;
};

const entriesOf = async (
  { confinement }: ConfinedTree,
  folder: Folder,
  { names, complete }: { readonly names: readonly string[]; readonly complete: boolean },
  entriesMax: number,
): Promise<FilesListOutput> => {
  const entries: FilesListOutput['entries'] = [];
  for (let from = 0; from < names.length; from += STATS_AT_ONCE) {
    const some = names.slice(from, from + STATS_AT_ONCE);
    const found = await Promise.all(some.map((name) => confinement.stats(folder, name)));
    for (const [index, stats] of found.entries()) {
      // Links, fifos and what vanished meanwhile are left out.
      if (!stats.ok) continue;
      if (entries.length === entriesMax) return { entries, truncated: true };
      const name = some[index] as string;
      entries.push(stats.value.isDirectory() ? { name, type: 'directory' } : { name, type: 'file', size: Number(stats.value.size) });
    }
  }
  return { entries, truncated: !complete };
};

/** @param storeAt A path of the owner's store, which need not be there. */
export const statOf = async (tree: ConfinedTree, place: Place, storeAt: string): Promise<Refusable<FilesStatOutput>> => {
  const found = await tree.inFolder(place.above, false, (parent) => tree.confinement.stats(parent, place.name));
  if (isUnwritten(place, found)) return ok({ type: 'directory', size: 0, modifiedAt: timestampOf(0), version: UNWRITTEN_VERSION });
  if (!found.ok) return found;
  const { value: stats } = found;
  const common = { modifiedAt: timestampOf(Number(stats.mtimeMs)), version: versionOf(stats) };
  if (stats.isDirectory()) return ok({ type: 'directory', size: 0, ...common });
  const metadata = await readMetadata(storeAt, metadataName(place.path, stats));
  if (!metadata.ok) return metadata;
  return ok({ type: 'file', size: Number(stats.size), ...common, ...(metadata.value === undefined ? {} : { metadata: metadata.value }) });
};

export const readFile = async (tree: ConfinedTree, place: Place, bytesMax: number): Promise<Refusable<FilesReadOutput>> => {
  if (place.isRoot) return err('not_a_file');
  return tree.inFolder(place.above, false, (parent) =>
    tree.withFile(parent, place.name, async (file, stats) => {
      if (stats.size > BigInt(bytesMax)) return err('file_too_large');
      return attempt(() =>
        withBytes(file, Number(stats.size), (bytes): FilesReadOutput => {
          const text = textOf(bytes);
          return {
            content: text ?? bytes.toString('base64'),
            encoding: text === undefined ? 'base64' : 'utf8',
            size: bytes.byteLength,
            version: versionOf(stats),
          };
        }),
      );
    }),
  );
};
