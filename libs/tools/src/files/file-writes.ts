import { randomUUID } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, open, rename, rmdir, unlink } from 'node:fs/promises';
import { type JsonObj, err, ok } from '@sharedos/contracts';
import type { Folder } from '../confinement/confinement.ts';
import { type ConfinedTree, syncFolder } from './confined-tree.ts';
import { bytesOf, readBytes, versionOf } from './file-content.ts';
import { type Refusable, attempt } from './file-refusal.ts';
import type {
  FilesAppendInput,
  FilesCreateInput,
  FilesDeleteInput,
  FilesDeleteOutput,
  FilesReplaceInput,
  FilesWriteOutput,
} from './files-schemas.ts';
import { dropMetadata, metadataName, metadataText, readMetadata, writeMetadata } from './metadata.ts';
import type { OwnerStores } from './owner-store.ts';
import type { Place } from './place.ts';
import { nextStamp } from './stamp.ts';
import type { TreeJobs } from './tree-jobs.ts';

const FILE_MODE = 0o640;

/** The new form of one file. */
interface NewForm {
  readonly parts: readonly Uint8Array[];
  readonly mode: number;
  /** JSON text of its metadata. */
  readonly metadata: string | undefined;
}

/**
 * The writes of one file. Each makes the whole new form beside the tree, brings it to the disk, and renames it into place: who
 * reads, and who comes back after a crash or a power cut, finds the old form or the new one. Versions are compared and the rename
 * is made under the lock of the owner's store, so all that write through a store are in line; a program of the host that
 * changes the same file in the same moment without the store is not.
 */
export class FileWrites {
  readonly #tree: ConfinedTree;
  readonly #stores: OwnerStores;
  readonly #jobs: TreeJobs;
  readonly #maxFileBytes: number;

  constructor(tree: ConfinedTree, stores: OwnerStores, jobs: TreeJobs, maxFileBytes: number) {
    this.#tree = tree;
    this.#stores = stores;
    this.#jobs = jobs;
    this.#maxFileBytes = maxFileBytes;
  }

  async create(place: Place, input: FilesCreateInput, cancel: AbortSignal): Promise<Refusable<FilesWriteOutput>> {
    const written = this.#written(place, input);
    if (!written.ok) return written;
    const { bytes, metadata } = written.value;
    return this.#stores.locked(place, cancel, (store) =>
      this.#tree.inFolder(place.above, true, async (parent) => {
        const found = await this.#tree.confinement.stats(parent, place.name);
        // A link is refused as one, whether it leads somewhere or not.
        if (found.ok || found.error === 'not_a_file') return err('file_exists');
        if (found.error !== 'file_not_found') return found;
        if (cancel.aborted) return err('operation_cancelled');
        return this.#publish(store, parent, place, { parts: [bytes], mode: FILE_MODE, metadata });
      }),
    );
  }

  async replace(place: Place, input: FilesReplaceInput, cancel: AbortSignal): Promise<Refusable<FilesWriteOutput>> {
    const written = this.#written(place, input);
    if (!written.ok) return written;
    return this.#change(place, input, cancel, async (_file, stats, kept) =>
      ok({ parts: [written.value.bytes], mode: Number(stats.mode & 0o777n), metadata: kept }),
    );
  }

  async append(place: Place, input: FilesAppendInput, cancel: AbortSignal): Promise<Refusable<FilesWriteOutput>> {
    const written = this.#written(place, input);
    if (!written.ok) return written;
    const { bytes, metadata } = written.value;
    return this.#change(place, input, cancel, async (file, stats, kept) => {
      if (Number(stats.size) + bytes.byteLength > this.#maxFileBytes) return err('file_too_large');
      const before = await attempt(() => readBytes(file, Number(stats.size)));
      if (!before.ok) return before;
      return ok({ parts: [before.value, bytes], mode: Number(stats.mode & 0o777n), metadata: metadata ?? kept });
    });
  }

  async delete(place: Place, input: FilesDeleteInput, cancel: AbortSignal): Promise<Refusable<FilesDeleteOutput>> {
    if (place.isRoot) return err('not_a_file');
    return this.#stores.locked(place, cancel, (store) =>
      this.#tree.inFolder(place.above, false, async (parent) => {
        const found = await this.#tree.confinement.stats(parent, place.name);
        if (!found.ok) return found;
        if (isOther(input, found.value)) return err('version_mismatch');
        if (!found.value.isDirectory()) return this.#remove(store, parent, place, found.value, cancel);
        const counted = await this.#jobs.count(place);
        if (!counted.ok) return counted;
        if (cancel.aborted) return err('operation_cancelled');
        const at = `${parent.at}/${place.name}`;
        // Out of sight in one step, and then taken apart.
        const gone = await attempt(() => (input.recursive ? rename(at, `${store.at}/tmp/${randomUUID()}`) : rmdir(at)));
        if (!gone.ok) return gone;
        const kept = await syncFolder(parent);
        const swept = kept.ok && input.recursive ? await this.#jobs.sweep(place) : kept;
        return swept.ok ? ok(counted.value) : swept;
      }),
    );
  }

  async #remove(
    store: Folder,
    parent: Folder,
    place: Place,
    stats: BigIntStats,
    cancel: AbortSignal,
  ): Promise<Refusable<FilesDeleteOutput>> {
    if (cancel.aborted) return err('operation_cancelled');
    const gone = await attempt(() => unlink(`${parent.at}/${place.name}`));
    if (!gone.ok) return gone;
    await dropMetadata(store.at, metadataName(place.path, stats));
    const kept = await syncFolder(parent);
    return kept.ok ? ok({ files: 1, folders: 0 }) : kept;
  }

  /** Changes a file that is there, if it has the version expected. */
  #change(
    place: Place,
    input: { readonly expectedVersion?: string | undefined },
    cancel: AbortSignal,
    next: (file: FileHandle, stats: BigIntStats, metadata: string | undefined) => Promise<Refusable<NewForm>>,
  ): Promise<Refusable<FilesWriteOutput>> {
    return this.#stores.locked(place, cancel, (store) =>
      this.#tree.inFolder(place.above, false, (parent) =>
        this.#tree.withFile(parent, place.name, async (file, stats) => {
          if (isOther(input, stats)) return err('version_mismatch');
          const old = metadataName(place.path, stats);
          const metadata = await readMetadata(store.at, old);
          if (!metadata.ok) return metadata;
          const form = await next(file, stats, metadata.value === undefined ? undefined : JSON.stringify(metadata.value));
          if (!form.ok) return form;
          if (cancel.aborted) return err('operation_cancelled');
          const published = await this.#publish(store, parent, place, form.value);
          if (published.ok && metadata.value !== undefined) await dropMetadata(store.at, old);
          return published;
        }),
      ),
    );
  }

  /** The one way in which a file comes to its place. */
  async #publish(store: Folder, parent: Folder, place: Place, { parts, mode, metadata }: NewForm): Promise<Refusable<FilesWriteOutput>> {
    const made = `${store.at}/tmp/${randomUUID()}`;
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0);
    const file = await attempt(() => open(made, flags, mode));
    if (!file.ok) return file;
    try {
      const written = await attempt(async () => {
        for (const part of parts) await writeAll(file.value, part);
        const stamp = nextStamp();
        await file.value.utimes(stamp, stamp);
        await file.value.sync();
        return file.value.stat({ bigint: true });
      });
      if (!written.ok) return written;
      if (metadata !== undefined) {
        const noted = await writeMetadata(store.at, metadataName(place.path, written.value), metadata);
        if (!noted.ok) return noted;
      }
      const confirmed = await this.#tree.confinement.confirm(parent);
      if (!confirmed.ok) return confirmed;
      const moved = await attempt(() => rename(made, `${parent.at}/${place.name}`));
      // A folder that came to be there meanwhile.
      if (!moved.ok) return moved;
      const kept = await syncFolder(parent);
      if (!kept.ok) return kept;
      const stats = await attempt(() => file.value.stat({ bigint: true }));
      return stats.ok ? ok({ size: Number(stats.value.size), version: versionOf(stats.value) }) : stats;
    } finally {
      await file.value.close();
      // There only when it did not come to its place.
      await attempt(() => unlink(made));
    }
  }

  #written(
    place: Place,
    { content, metadata }: { readonly content: FilesCreateInput['content']; readonly metadata?: JsonObj | undefined },
  ): Refusable<{ readonly bytes: Buffer; readonly metadata: string | undefined }> {
    if (place.isRoot) return err('not_a_file');
    const bytes = bytesOf(content);
    if (bytes === undefined) return err('content_refused');
    if (bytes.byteLength > this.#maxFileBytes) return err('file_too_large');
    const text = metadata === undefined ? undefined : metadataText(metadata);
    return metadata !== undefined && text === undefined ? err('metadata_too_large') : ok({ bytes, metadata: text });
  }
}

const isOther = ({ expectedVersion }: { readonly expectedVersion?: string | undefined }, stats: BigIntStats): boolean =>
  expectedVersion !== undefined && expectedVersion !== versionOf(stats);

const writeAll = async (file: FileHandle, bytes: Uint8Array): Promise<void> => {
  for (let written = 0; written < bytes.byteLength;) written += (await file.write(bytes, written)).bytesWritten;
};
