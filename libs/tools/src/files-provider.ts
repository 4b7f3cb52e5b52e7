import { type BigIntStats, constants } from 'node:fs';
import { lstat, mkdir, open, unlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { Path, err, ok, timestampOf, type Instant, type Json, type ResourceOperation, type ResourceResult } from '@sharedos/contracts';
import { type ConfinementKind, type Folder, confinementOf } from './confinement.ts';
import { appendBytes, bytesOf, readBytes, textOf, versionOf } from './file-content.ts';
import { FileLocks } from './file-locks.ts';
import { isFileName } from './file-name.ts';
import { type FileRefusal, type Refusable, attempt, fileError } from './file-refusal.ts';
import {
  FilesAppendInput,
  FilesCreateInput,
  FilesSearchInput,
  type FilesListOutput,
  type FilesReadOutput,
  type FilesSearchOutput,
  type FilesStatOutput,
  type FilesWriteOutput,
} from './files-schemas.ts';
import { type SearchBounds, searchBelow } from './files-search.ts';
import { FILES_NAMESPACE } from './files-tools.ts';
import { namesIn } from './folder-names.ts';
import { ownerFolder } from './owner-folder.ts';
import { ContractError } from '@sharedos/kernel';
import type { ResourceProvider } from '@sharedos/kernel';

export interface FilesProviderOptions {
  /** Absolute path of an existing folder of the host; all owners' files are below it. Nobody else should be able to write there. */
  readonly root: string;
  /** Largest file that is read, in bytes: 1..3,000,000, by default 1 MiB. As base64 the answer still fits a tool result. */
  readonly maxReadBytes?: number;
  /** Largest file that is made or appended to, in bytes; by default 16 MiB. */
  readonly maxFileBytes?: number;
  /** Most entries of one listing, at most 1,000, which is the default. */
  readonly maxListEntries?: number;
  /** Bounds of one search; what is not given has its default: 2,000 files, 20,000 entries, 32 MiB, 2,000 ms. */
  readonly search?: Partial<Omit<SearchBounds, 'matchesMax' | 'fileBytesMax'>>;
  readonly confinement?: ConfinementKind;
  readonly now?: () => Instant;
}

const READ_BYTES_MAX = 3_000_000;
const LIST_ENTRIES_MAX = 1_000;
/** Entries looked at to find the first ones by name. */
const LIST_SCAN_MAX = 20_000;
/** Entries asked about at once; the thread pool that answers is small and shared. */
const STATS_AT_ONCE = 8;
const MATCHES_MAX = 100;
const SEARCH: Omit<SearchBounds, 'matchesMax' | 'fileBytesMax'> = {
  filesMax: 2_000,
  entriesMax: 20_000,
  bytesMax: 32 * 1024 * 1024,
  timeMs: 2_000,
};

// Where a system lacks O_NOFOLLOW it is undefined, which adds no bit; O_EXCL alone already refuses a link.
const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = constants;
const FOLDER_MODE = 0o750;
const FILE_MODE = 0o640;

/** An owner's root before anything was written to it: an empty folder that has never changed. */
const UNWRITTEN_VERSION = 'unwritten';

/**
 * Files of a real folder, apart for each (namespace, owner): `root/<namespace>/<kind>/<id>/…`, made on demand by the first write,
 * empty until then. Authority is decided before; this holds the paths inside. How, and what the host must see to: `Confinement`.
 *
 * Names are compared as stored, without case folding or Unicode normalisation. Every refusal is a `failed` result with a code
 * and message of `FILE_REFUSALS`. Writes of one file are in line inside this process, so `expectedVersion` is checked and the
 * append made in one step against all that go through this provider; other processes are seen by version, not locked out.
 * Not promised: that a reader never sees a part of a file being created, and that a write outlives a power cut (no fsync).
 *
 * @throws ContractError when the options are out of range or confinement is not possible here.
 * @see spec/tools.md §3
 */
export const filesProvider = (options: FilesProviderOptions): ResourceProvider => {
  const { root, maxReadBytes = 1024 * 1024, maxFileBytes = 16 * 1024 * 1024, maxListEntries = LIST_ENTRIES_MAX, now = Date.now } = options;
  if (!isAbsolute(root)) throw new ContractError('root must be an absolute path');
  within('maxReadBytes', maxReadBytes, READ_BYTES_MAX);
  within('maxFileBytes', maxFileBytes, Number.MAX_SAFE_INTEGER);
  within('maxListEntries', maxListEntries, LIST_ENTRIES_MAX);
  const searchBounds = { ...SEARCH, ...options.search };
  for (const [name, bound] of Object.entries(searchBounds)) within(`search.${name}`, bound, Number.MAX_SAFE_INTEGER);
  const confinement = confinementOf(options.confinement);
  const locks = new FileLocks();

  /** Walks to the folder that holds the place, one step at a time, and hands it over open. */
  const inParent = async <T>(place: Place, make: boolean, use: (parent: Folder) => Promise<Refusable<T>>): Promise<Refusable<T>> => {
    const start = await confinement.root(root);
    if (!start.ok) return start;
    let folder = start.value;
    try {
      for (const name of place.above) {
        let next = await confinement.folder(folder, name);
        if (make && !next.ok && next.error === 'file_not_found') {
          const made = await makeFolder(folder, name);
          if (!made.ok) return made;
          next = await confinement.folder(folder, name);
        }
        if (!next.ok) return next;
        await folder.close();
        folder = next.value;
      }
      return await use(folder);
    } finally {
      await folder.close();
    }
  };

  const makeFolder = async (parent: Folder, name: string): Promise<Refusable<void>> => {
    const made = await attempt(() => mkdir(`${parent.at}/${name}`, FOLDER_MODE));
    // Someone else was first: the step that follows looks at what is there, as at anything else.
    return made.ok || made.error === 'file_exists' ? confinement.confirm(parent) : made;
  };

  const withFile = <T>(
    place: Place,
    flags: number,
    use: (file: FileHandle, stats: BigIntStats) => Promise<Refusable<T>>,
  ): Promise<Refusable<T>> =>
    inParent(place, false, async (parent) => {
      const file = await confinement.file(parent, place.name, flags);
      if (!file.ok) return file;
      try {
        const stats = await attempt(() => file.value.stat({ bigint: true }));
        return stats.ok ? await use(file.value, stats.value) : stats;
      } finally {
        await file.value.close();
      }
    });

  const inLine = async <T>(place: Place, cancel: AbortSignal, write: () => Promise<Refusable<T>>): Promise<Refusable<T>> => {
    // Links are refused and names compared as stored, so a path is one file's name; it is known before the file is there.
    const key = JSON.stringify([...place.above, place.name]);
    const lock = await locks.acquire(key, cancel);
    if (lock !== 'held') return err(lock === 'busy' ? 'file_busy' : 'operation_cancelled');
    try {
      return await write();
    } finally {
      locks.release(key);
    }
  };

  const list = async (place: Place): Promise<Refusable<FilesListOutput>> => {
    const listed = await inParent(place, false, async (parent): Promise<Refusable<FilesListOutput>> => {
      const folder = await confinement.folder(parent, place.name);
      if (!folder.ok) return folder;
      try {
        const found = await namesIn(folder.value, LIST_SCAN_MAX);
        return found.ok ? ok(await entriesOf(folder.value, found.value.names, found.value.complete)) : found;
      } finally {
        await folder.value.close();
      }
    });
    return isUnwritten(place, listed) ? ok({ entries: [], truncated: false }) : listed;
  };

  const entriesOf = async (folder: Folder, names: readonly string[], complete: boolean): Promise<FilesListOutput> => {
    const entries: FilesListOutput['entries'] = [];
    for (let from = 0; from < names.length; from += STATS_AT_ONCE) {
      const some = names.slice(from, from + STATS_AT_ONCE);
      const found = await Promise.all(some.map((name) => confinement.stats(folder, name)));
      for (const [index, stats] of found.entries()) {
        // Links, fifos and what vanished meanwhile are left out.
        if (!stats.ok) continue;
        if (entries.length === maxListEntries) return { entries, truncated: true };
        const name = some[index] as string;
        entries.push(stats.value.isDirectory() ? { name, type: 'directory' } : { name, type: 'file', size: Number(stats.value.size) });
      }
    }
    return { entries, truncated: !complete };
  };

  const stat = async (place: Place): Promise<Refusable<FilesStatOutput>> => {
    const found = await inParent(place, false, (parent) => confinement.stats(parent, place.name));
    if (isUnwritten(place, found)) return ok({ type: 'directory', size: 0, modifiedAt: timestampOf(0), version: UNWRITTEN_VERSION });
    if (!found.ok) return found;
    const isFolder = found.value.isDirectory();
    return ok({
      type: isFolder ? 'directory' : 'file',
      size: isFolder ? 0 : Number(found.value.size),
      modifiedAt: timestampOf(Number(found.value.mtimeMs)),
      version: versionOf(found.value),
    });
  };

  const read = async (place: Place): Promise<Refusable<FilesReadOutput>> => {
    if (place.isRoot) return err('not_a_file');
    return withFile(place, O_RDONLY, async (file, stats) => {
      if (stats.size > BigInt(maxReadBytes)) return err('file_too_large');
      const bytes = await attempt(() => readBytes(file, Number(stats.size)));
      if (!bytes.ok) return bytes;
      const text = textOf(bytes.value);
      return ok({
        content: text ?? bytes.value.toString('base64'),
        encoding: text === undefined ? 'base64' : 'utf8',
        size: bytes.value.byteLength,
        version: versionOf(stats),
      });
    });
  };

  const search = async (place: Place, input: FilesSearchInput, cancel: AbortSignal): Promise<Refusable<FilesSearchOutput>> => {
    const bounds = { ...searchBounds, matchesMax: input.limit ?? MATCHES_MAX, fileBytesMax: maxReadBytes };
    const found = await inParent(place, false, (parent) =>
      searchBelow(confinement, { parent, name: place.name, path: place.path }, input.query, bounds, now, cancel),
    );
    return isUnwritten(place, found) ? ok({ matches: [], truncated: false }) : found;
  };

  const create = async (place: Place, input: FilesCreateInput, cancel: AbortSignal): Promise<Refusable<FilesWriteOutput>> => {
    const bytes = writable(place, input);
    if (!bytes.ok) return bytes;
    if (bytes.value.byteLength > maxFileBytes) return err('file_too_large');
    return inLine(place, cancel, () =>
      inParent(place, true, async (parent) => {
        if (cancel.aborted) return err('operation_cancelled');
        const at = `${parent.at}/${place.name}`;
        const file = await attempt(() => open(at, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, FILE_MODE));
        if (!file.ok) return file.error === 'file_exists' ? err(await occupied(parent, place.name)) : file;
        try {
          const written = await attempt(async () => {
            await appendBytes(file.value, bytes.value, 0);
            return file.value.stat({ bigint: true });
          });
          const confirmed = written.ok ? await confinement.confirm(parent) : written;
          if (written.ok && confirmed.ok) return ok({ size: Number(written.value.size), version: versionOf(written.value) });
          await removeOwn(at, file.value);
          return err(confirmed.ok ? 'files_unavailable' : confirmed.error);
        } finally {
          await file.value.close();
        }
      }),
    );
  };

  /** What to say of a name that is taken: a link is refused as one, whether it leads somewhere or not. */
  const occupied = async (parent: Folder, name: string): Promise<FileRefusal> => {
    const found = await confinement.stats(parent, name);
    return !found.ok && found.error === 'path_not_confined' ? found.error : 'file_exists';
  };

  const append = async (place: Place, input: FilesAppendInput, cancel: AbortSignal): Promise<Refusable<FilesWriteOutput>> => {
    const bytes = writable(place, input);
    if (!bytes.ok) return bytes;
    return inLine(place, cancel, () =>
      withFile(place, O_WRONLY | O_APPEND, async (file, stats) => {
        if (input.expectedVersion !== undefined && input.expectedVersion !== versionOf(stats)) return err('version_mismatch');
        if (Number(stats.size) + bytes.value.byteLength > maxFileBytes) return err('file_too_large');
        if (cancel.aborted) return err('operation_cancelled');
        const written = await attempt(async () => {
          await appendBytes(file, bytes.value, Number(stats.size));
          return file.stat({ bigint: true });
        });
        return written.ok ? ok({ size: Number(written.value.size), version: versionOf(written.value) }) : written;
      }),
    );
  };

  const perform = async (operation: ResourceOperation, cancel: AbortSignal): Promise<Refusable<unknown>> => {
    if (cancel.aborted) return err('operation_cancelled');
    const place = placeOf(operation);
    if (!place.ok) return place;
    switch (operation.action) {
      case 'list':
        return operation.input === undefined ? list(place.value) : err('invalid_input');
      case 'stat':
        return operation.input === undefined ? stat(place.value) : err('invalid_input');
      case 'read':
        return operation.input === undefined ? read(place.value) : err('invalid_input');
      case 'search': {
        const input = FilesSearchInput.safeParse(operation.input);
        return input.success ? search(place.value, input.data, cancel) : err('invalid_input');
      }
      case 'create': {
        const input = FilesCreateInput.safeParse(operation.input);
        return input.success ? create(place.value, input.data, cancel) : err('invalid_input');
      }
      case 'append': {
        const input = FilesAppendInput.safeParse(operation.input);
        return input.success ? append(place.value, input.data, cancel) : err('invalid_input');
      }
      default:
        return err('action_not_supported');
    }
  };

  return {
    namespace: FILES_NAMESPACE,
    invoke: async (operation, cancel): Promise<ResourceResult> => {
      const outcome = await perform(operation, cancel);
      const answered = { operationId: operation.operationId, completedAt: timestampOf(now()) };
      return outcome.ok
        ? { status: 'succeeded', ...answered, output: outcome.value as Json }
        : { status: 'failed', ...answered, error: fileError(outcome.error) };
    },
  };
};

const within = (name: string, value: number, max: number): void => {
  if (!Number.isSafeInteger(value) || value < 1 || value > max) throw new ContractError(`${name} must be a whole number in 1..${max}`);
};

/** Where an operation points: `name` inside the folder that `above` leads to from the provider's root. */
interface Place {
  readonly path: readonly string[];
  readonly above: readonly string[];
  readonly name: string;
  /** The owner's root itself. */
  readonly isRoot: boolean;
}

/** Checks all of a path before any of it is touched. Operations also arrive from other callers than the tools. */
const placeOf = ({ context, resource }: ResourceOperation): Refusable<Place> => {
  const path = Path.safeParse(resource.path);
  if (resource.namespace !== FILES_NAMESPACE || !path.success) return err('path_refused');
  const owner = resource.owner ?? context.owner;
  // An id with a lone surrogate has no name of its own, and would share one with others.
  if (!Object.values(owner).every((text) => text.isWellFormed()) || !context.namespaceId.isWellFormed()) return err('path_refused');
  if (!path.data.every((segment) => isFileName(segment))) return err('path_refused');
  const [namespaceFolder, kindFolder, idFolder] = ownerFolder(context.namespaceId, owner);
  const above = [namespaceFolder, kindFolder, idFolder, ...path.data];
  const name = above.pop() as string;
  return ok({ path: path.data, above, name, isRoot: path.data.length === 0 });
};

/** Nothing was ever written for this owner, which reads as an empty root, not as a missing one. */
const isUnwritten = (place: Place, outcome: Refusable<unknown>): boolean =>
  place.isRoot && !outcome.ok && outcome.error === 'file_not_found';

const writable = (place: Place, input: { readonly content: Json; readonly metadata?: unknown }): Refusable<Buffer> => {
  if (place.isRoot) return err('not_a_file');
  // Taking metadata and losing it would be a lie; a plain file has nowhere to keep it.
  if (input.metadata !== undefined) return err('metadata_not_supported');
  const bytes = bytesOf(input.content);
  return bytes === undefined ? err('content_refused') : ok(bytes);
};

/** Takes back a file that was made but could not be filled, as long as the name still is that file's. */
const removeOwn = async (at: string, file: FileHandle): Promise<void> => {
  await attempt(async () => {
    const [own, named] = await Promise.all([file.stat({ bigint: true }), lstat(at, { bigint: true })]);
    if (own.ino === named.ino && own.dev === named.dev) await unlink(at);
  });
};
