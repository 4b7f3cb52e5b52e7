import { createHash } from 'node:crypto';
import { closeSync, fstatSync, fsyncSync, futimesSync, mkdirSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { err, ok } from '@sharedos/contracts';
import type { TreeFolder } from '../confinement/tree-steps.ts';
import { type Refusable, attemptSync } from './file-refusal.ts';
import { METADATA, metadataName } from './metadata.ts';
import { syncFolderAt } from './snapshot-make.ts';
import { type FileEntry, SNAPSHOTS, readEntries, readHeader } from './snapshot-records.ts';
import { nextStamp } from './stamp.ts';
import { FRESH } from './swap.ts';

export interface Restored {
  readonly files: number;
  readonly bytes: number;
}

/**
 * Makes, beside the tree, what `path` was in a snapshot, ready to be put in its place. A snapshot restores what it is of and
 * everything below; of anything else there is no such snapshot, whoever knows its id.
 */
export const buildRestored = (store: TreeFolder, id: string, path: readonly string[]): Refusable<Restored> => {
  const header = readHeader(store, id);
  if (!header.ok) return header;
  const of = header.value?.snapshot.path;
  if (of === undefined || !of.every((segment, index) => segment === path[index])) return err('snapshot_not_found');
  const entries = readEntries(store, id);
  if (!entries.ok) return entries;
  const below = path.slice(of.length);
  const wanted = entries.value.filter((entry) => below.every((segment, index) => segment === entry.path[index]));
  if (wanted.length === 0) return err('file_not_found');
  const packs = new Packs(store);
  let bytes = 0;
  let files = 0;
  const folders: string[] = [];
  try {
    // A folder comes before what is in it, as it was walked.
    for (const entry of wanted) {
      const inside = entry.path.slice(below.length);
      const at = [`${store.at}/${FRESH}`, ...inside].join('/');
      if (entry.type === 'directory') {
        const made = attemptSync(() => mkdirSync(at, { mode: 0o750 }));
        if (!made.ok) return made;
        folders.push(at);
        continue;
      }
      const written = writeEntry(store, packs, entry, at, [...path, ...inside]);
      if (!written.ok) return written;
      files += 1;
      bytes += entry.size;
    }
    return attemptSync(() => {
      folders.forEach(syncFolderAt);
      return { files, bytes };
    });
  } finally {
    packs.close();
  }
};

const writeEntry = (store: TreeFolder, packs: Packs, entry: FileEntry, at: string, path: readonly string[]): Refusable<void> => {
  const content = packs.read(entry);
  if (!content.ok) return content;
  return attemptSync(() => {
    const fd = openSync(at, 'wx', entry.mode);
    try {
      for (let written = 0; written < content.value.length;) written += writeSync(fd, content.value, written);
      const stamp = nextStamp();
      futimesSync(fd, stamp, stamp);
      fsyncSync(fd);
      if (entry.metadata === undefined) return;
      mkdirSync(`${store.at}/${METADATA}`, { recursive: true, mode: 0o700 });
      const name = metadataName(path, fstatSync(fd, { bigint: true }));
      writeFileSync(`${store.at}/${METADATA}/${name}`, JSON.stringify(entry.metadata), { flush: true, mode: 0o600 });
    } finally {
      closeSync(fd);
    }
  });
};

/** The packs that one restore reads from, each opened once. */
class Packs {
  readonly #store: TreeFolder;
  readonly #open = new Map<string, number>();

  constructor(store: TreeFolder) {
    this.#store = store;
  }

  read({ pack, offset, size, hash }: FileEntry): Refusable<Buffer> {
    const bytes = attemptSync(() => {
      const fd = this.#open.get(pack) ?? openSync(`${this.#store.at}/${SNAPSHOTS}/${pack}/pack`, 'r');
      this.#open.set(pack, fd);
      const content = Buffer.allocUnsafe(size);
      let filled = 0;
      while (filled < size) {
        const read = readSync(fd, content, filled, size - filled, offset + filled);
        if (read === 0) break;
        filled += read;
      }
      return content.subarray(0, filled);
    });
    if (!bytes.ok) return err('snapshot_damaged');
    const same = createHash('sha256').update(bytes.value).digest('hex') === hash;
    return same ? ok(bytes.value) : err('snapshot_damaged');
  }

  close(): void {
    for (const fd of this.#open.values()) closeSync(fd);
  }
}
