import { readFileSync, readdirSync } from 'node:fs';
import { JsonObj, ok } from '@sharedos/contracts';
import { z } from 'zod';
import type { TreeFolder } from '../confinement/tree-steps.ts';
import { type Refusable, attemptSync } from './file-refusal.ts';
import { FilesSnapshotOutput } from './files-schemas.ts';

/** Folder of a store with a folder for each snapshot: `header`, `entries`, and in `pack` the contents that no earlier one has. */
export const SNAPSHOTS = 'snapshots';

/** One thing in a snapshot. `path` begins at what the snapshot is of, and is empty for that itself. */
export const SnapshotEntry = z.union([
  z.strictObject({ path: z.array(z.string()), type: z.literal('directory') }),
  z.strictObject({
    path: z.array(z.string()),
    type: z.literal('file'),
    mode: z.int(),
    size: z.int(),
    hash: z.string(),
    /** The snapshot whose pack has the content, and where in it. */
    pack: z.string(),
    offset: z.int(),
    /** Which form of the file this was: a later snapshot that finds the same need not read it. */
    form: z.string(),
    metadata: JsonObj.optional(),
  }),
]);
export type SnapshotEntry = z.infer<typeof SnapshotEntry>;
export type FileEntry = Extract<SnapshotEntry, { type: 'file' }>;

export const SnapshotHeader = z.strictObject({
  version: z.literal(1),
  /** By the system's clock, in milliseconds: files that were changed just before may change again without showing it. */
  readAtMs: z.number(),
  snapshot: FilesSnapshotOutput,
});
export type SnapshotHeader = z.infer<typeof SnapshotHeader>;

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Only what could be the name of a snapshot is looked for. */
export const readHeader = (store: TreeFolder, id: string): Refusable<SnapshotHeader | undefined> => {
  if (!ID.test(id)) return ok(undefined);
  const text = attemptSync(() => readFileSync(`${store.at}/${SNAPSHOTS}/${id}/header`, 'utf8'));
  if (!text.ok) return text.error === 'file_not_found' ? ok(undefined) : text;
  return ok(SnapshotHeader.parse(JSON.parse(text.value)));
};

/** All snapshots of one owner, the latest first. */
export const readHeaders = (store: TreeFolder): Refusable<readonly SnapshotHeader[]> => {
  const ids = attemptSync(() => readdirSync(`${store.at}/${SNAPSHOTS}`));
  if (!ids.ok) return ids.error === 'file_not_found' ? ok([]) : ids;
  const headers: SnapshotHeader[] = [];
  for (const id of ids.value) {
    const header = readHeader(store, id);
    if (!header.ok) return header;
    if (header.value !== undefined) headers.push(header.value);
  }
  return ok(headers.sort((a, b) => b.readAtMs - a.readAtMs));
};

/** One entry a line, so that a long list is never one value. */
export const readEntries = (store: TreeFolder, id: string): Refusable<readonly SnapshotEntry[]> =>
  attemptSync(() =>
    readFileSync(`${store.at}/${SNAPSHOTS}/${id}/entries`, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      // Written by us alone, in a folder of ours alone; what it leads to is checked by its hash.
      .map((line) => JSON.parse(line) as SnapshotEntry),
  );
