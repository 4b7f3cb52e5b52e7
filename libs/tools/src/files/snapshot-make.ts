import { createHash } from 'node:crypto';
import {
  type BigIntStats,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { type JsonObj, err, ok } from '@sharedos/contracts';
import type { TreeFolder, TreeSteps } from '../confinement/tree-steps.ts';
import { readBytesSync } from './file-content.ts';
import { type Refusable, attemptSync } from './file-refusal.ts';
import type { FilesSnapshotOutput } from './files-schemas.ts';
import { entriesIn } from './folder-names.ts';
import { METADATA, metadataName } from './metadata.ts';
import { type FileEntry, SNAPSHOTS, type SnapshotEntry, type SnapshotHeader, readEntries, readHeaders } from './snapshot-records.ts';

export interface SnapshotBounds {
  /** Files and folders of one snapshot. */
  readonly entriesMax: number;
  /** Bytes of the files of one snapshot together. */
  readonly bytesMax: number;
  /** Snapshots of one owner. */
  readonly snapshotsMax: number;
}

export interface SnapshotOf {
  readonly id: string;
  readonly path: readonly string[];
  readonly label?: string;
  readonly createdAt: string;
}

/** A file changed so shortly before a snapshot that it may have changed again within one tick of the file system's clock. */
const UNSETTLED_MS = 2_000;
type Stored = Pick<FileEntry, 'hash' | 'pack' | 'offset' | 'size'>;

/**
 * Keeps a place as it is. Contents are kept once, by their hash, all new ones of a snapshot in one file; a file that is still the form
 * that the latest snapshot read is not read again. So the first snapshot of a tree costs a copy of it, and a later one a look
 * at each file and a copy of what changed. Contents are copied and never shared by hard links, because a program
 * outside that changes a file in place would change the snapshot with it.
 */
export const makeSnapshot = (
  steps: TreeSteps,
  parent: TreeFolder,
  name: string,
  store: TreeFolder,
  of: SnapshotOf,
  bounds: SnapshotBounds,
): Refusable<FilesSnapshotOutput> => {
  const headers = readHeaders(store);
  if (!headers.ok) return headers;
  if (headers.value.length >= bounds.snapshotsMax) return err('snapshot_limit');
  const made = attemptSync(() => new SnapshotMaker(steps, store, of, bounds, headers.value[0]));
  if (!made.ok) return made;
  const maker = made.value;
  try {
    const visited = maker.visit(parent, name, []);
    return visited.ok ? maker.keep() : visited;
  } finally {
    maker.close();
  }
};

class SnapshotMaker {
  readonly #steps: TreeSteps;
  readonly #store: TreeFolder;
  readonly #of: SnapshotOf;
  readonly #bounds: SnapshotBounds;
  readonly #at: string;
  readonly #pack: number;
  readonly #readAtMs = Date.now();
  readonly #byForm = new Map<string, Stored>();
  readonly #byHash = new Map<string, Stored>();
  readonly #withMetadata: ReadonlySet<string>;
  readonly #entries: SnapshotEntry[] = [];
  #packed = 0;
  #bytes = 0;

  constructor(steps: TreeSteps, store: TreeFolder, of: SnapshotOf, bounds: SnapshotBounds, latest: SnapshotHeader | undefined) {
    this.#steps = steps;
    this.#store = store;
    this.#of = of;
    this.#bounds = bounds;
    this.#at = `${store.at}/tmp/${of.id}`;
    mkdirSync(this.#at, { mode: 0o700 });
    this.#pack = openSync(`${this.#at}/pack`, 'wx', 0o600);
    const names = attemptSync(() => readdirSync(`${store.at}/${METADATA}`));
    this.#withMetadata = new Set(names.ok ? names.value : []);
    if (latest !== undefined) this.#know(latest);
  }

  #know(latest: SnapshotHeader): void {
    const entries = readEntries(this.#store, latest.snapshot.snapshotId);
    if (!entries.ok) return;
    for (const entry of entries.value) {
      if (entry.type !== 'file') continue;
      this.#byHash.set(entry.hash, entry);
      const changedAtMs = Number(entry.form.split('.')[2]) / 1_000_000;
      if (changedAtMs < latest.readAtMs - UNSETTLED_MS) this.#byForm.set(entry.form, entry);
    }
  }

  visit(parent: TreeFolder, name: string, path: readonly string[]): Refusable<void> {
    const found = this.#steps.stats(parent, name);
    if (!found.ok) return found;
    return found.value.isDirectory() ? this.#folder(parent, name, path) : this.#file(parent, name, path);
  }

  #folder(parent: TreeFolder, name: string, path: readonly string[]): Refusable<void> {
    const folder = this.#steps.folder(parent, name);
    if (!folder.ok) return folder;
    try {
      const listed = entriesIn(folder.value);
      if (!listed.ok) return listed;
      if (!this.#add({ path: [...path], type: 'directory' })) return err('snapshot_limit');
      for (const entry of listed.value) {
        const below = [...path, entry.name];
        const done = entry.isFolder
          ? this.#folder(folder.value, entry.name, below)
          : entry.isFile
            ? this.#file(folder.value, entry.name, below)
            : ok(undefined);
        // What vanished meanwhile is not there; a link was never a file of a path's.
        if (!done.ok && done.error !== 'file_not_found' && done.error !== 'path_not_confined') return done;
      }
      return ok(undefined);
    } finally {
      folder.value.close();
    }
  }

  #file(parent: TreeFolder, name: string, path: readonly string[]): Refusable<void> {
    const opened = this.#steps.file(parent, name);
    if (!opened.ok) return opened;
    const { fd, stats } = opened.value;
    try {
      const form = formOf(stats);
      const stored = this.#byForm.get(form);
      const kept = stored === undefined ? this.#keepBytes(fd, stats) : ok(stored);
      if (!kept.ok) return kept;
      const { hash, pack, offset, size } = kept.value;
      this.#bytes += size;
      const metadata = this.#metadata(path, stats);
      const entry: FileEntry = {
        path: [...path],
        type: 'file',
        mode: Number(stats.mode & 0o777n),
        size,
        hash,
        pack,
        offset,
        form,
        ...metadata,
      };
      return this.#bytes <= this.#bounds.bytesMax && this.#add(entry) ? ok(undefined) : err('snapshot_limit');
    } finally {
      closeSync(fd);
    }
  }

  #keepBytes(fd: number, stats: BigIntStats): Refusable<Stored> {
    if (this.#bytes + Number(stats.size) > this.#bounds.bytesMax) return err('snapshot_limit');
    return attemptSync(() => {
      const bytes = readBytesSync(fd, Number(stats.size));
      const hash = createHash('sha256').update(bytes).digest('hex');
      const known = this.#byHash.get(hash);
      if (known !== undefined) return known;
      for (let written = 0; written < bytes.length;) written += writeSync(this.#pack, bytes, written);
      const stored = { hash, pack: this.#of.id, offset: this.#packed, size: bytes.length };
      this.#packed += bytes.length;
      this.#byHash.set(hash, stored);
      return stored;
    });
  }

  #metadata(path: readonly string[], stats: BigIntStats): { readonly metadata?: JsonObj } {
    const name = metadataName([...this.#of.path, ...path], stats);
    if (!this.#withMetadata.has(name)) return {};
    const text = attemptSync(() => readFileSync(`${this.#store.at}/${METADATA}/${name}`, 'utf8'));
    return text.ok ? { metadata: JSON.parse(text.value) as JsonObj } : {};
  }

  #add(entry: SnapshotEntry): boolean {
    this.#entries.push(entry);
    return this.#entries.length <= this.#bounds.entriesMax;
  }

  /** All of it is on disk before the one rename that makes it a snapshot. */
  keep(): Refusable<FilesSnapshotOutput> {
    const { id, path, label, createdAt } = this.#of;
    const files = this.#entries.filter(({ type }) => type === 'file').length;
    const snapshot = { snapshotId: id, path: [...path], ...(label === undefined ? {} : { label }), createdAt, files, bytes: this.#bytes };
    return attemptSync(() => {
      fsyncSync(this.#pack);
      const header: SnapshotHeader = { version: 1, readAtMs: this.#readAtMs, snapshot };
      writeFileSync(`${this.#at}/entries`, this.#entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''), {
        flush: true,
        mode: 0o600,
      });
      writeFileSync(`${this.#at}/header`, JSON.stringify(header), { flush: true, mode: 0o600 });
      syncFolderAt(this.#at);
      mkdirSync(`${this.#store.at}/${SNAPSHOTS}`, { recursive: true, mode: 0o700 });
      renameSync(this.#at, `${this.#store.at}/${SNAPSHOTS}/${id}`);
      syncFolderAt(`${this.#store.at}/${SNAPSHOTS}`);
      return snapshot;
    });
  }

  close(): void {
    closeSync(this.#pack);
  }
}

const formOf = ({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string => [ino, size, ctimeNs, mtimeNs].join('.');

export const syncFolderAt = (at: string): void => {
  const fd = openSync(`${at}/.`, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
};
