import { isAbsolute } from 'node:path';
import { err, ok, timestampOf, type Instant, type Json, type ResourceOperation, type ResourceResult } from '@sharedos/contracts';
import { ContractError, type ResourceProvider } from '@sharedos/kernel';
import type { z } from 'zod';
import { type ConfinementKind, confinementKind, confinementOf } from '../confinement/confinement.ts';
import { ConfinedTree } from './confined-tree.ts';
import { isUnwritten, listFolder, readFile, statOf } from './file-reads.ts';
import { type Refusable, fileError } from './file-refusal.ts';
import { FileWrites } from './file-writes.ts';
import * as schemas from './files-schemas.ts';
import { FILES_NAMESPACE } from './files-tools.ts';
import { OwnerStores } from './owner-store.ts';
import { type Place, placeOf } from './place.ts';
import type { ScanBounds } from './scan.ts';
import type { SnapshotBounds } from './snapshot-make.ts';
import { Snapshots } from './snapshots.ts';
import { TreeJobs } from './tree-jobs.ts';

export interface FilesProviderOptions {
  /** Absolute path of an existing folder of the host; all owners' files are below it. Nobody else should be able to write there. */
  readonly root: string;
  /** Largest file that is read or searched, in bytes: 1..3,000,000, by default 1 MiB. As base64 the answer still fits a tool result. */
  readonly maxReadBytes?: number;
  /** Largest file that is made or appended to, in bytes; by default 16 MiB. */
  readonly maxFileBytes?: number;
  /** Most entries of one listing, at most 1,000, which is the default. */
  readonly maxListEntries?: number;
  /** Bounds of one search; what is not given has its default: 20,000 files, 100,000 entries, 256 MiB, 5,000 ms. */
  readonly search?: Partial<Omit<ScanBounds, 'fileBytesMax'>>;
  /** Bounds of snapshots; by default 50,000 entries and 1 GiB each, and 1,000 of one owner. */
  readonly snapshots?: Partial<SnapshotBounds>;
  readonly confinement?: ConfinementKind;
  readonly now?: () => Instant;
}

const READ_BYTES_MAX = 3_000_000;
const LIST_ENTRIES_MAX = 1_000;
const SEARCH: Omit<ScanBounds, 'fileBytesMax'> = { filesMax: 20_000, entriesMax: 100_000, bytesMax: 256 * 1024 * 1024, timeMs: 5_000 };
const SNAPSHOTS: SnapshotBounds = { entriesMax: 50_000, bytesMax: 1024 * 1024 * 1024, snapshotsMax: 1_000 };
/** How much longer than its own bound a search may take before its thread is ended: one line can hold it up. */
const SEARCH_GRACE_MS = 2_000;

/**
 * Files of a real folder, apart for each (namespace, owner): `root/<namespace>/<kind>/<id>/…`, made on demand by the first write,
 * empty until then. Authority is decided before; this holds the paths inside. How, and what the host must see to: `Confinement`.
 *
 * Names are compared as stored, without case folding or Unicode normalisation. Every refusal is a `failed` result with a code and
 * message of `FILE_REFUSALS`. Any number of processes may have the folder: writes of one owner are in line by a lock of the
 * file system, and each is there as a whole or not at all (`FileWrites`, `Snapshots`). A path never leads into `.git`.
 *
 * @throws ContractError when the options are out of range or confinement is not possible here.
 * @see spec/tools.md §1 and §3
 */
export const filesProvider = (options: FilesProviderOptions): ResourceProvider => {
  const { root, maxReadBytes = 1024 * 1024, maxFileBytes = 16 * 1024 * 1024, maxListEntries = LIST_ENTRIES_MAX, now = Date.now } = options;
  if (!isAbsolute(root)) throw new ContractError('root must be an absolute path');
  within('maxReadBytes', maxReadBytes, READ_BYTES_MAX);
  within('maxFileBytes', maxFileBytes, Number.MAX_SAFE_INTEGER);
  within('maxListEntries', maxListEntries, LIST_ENTRIES_MAX);
  const bounds = { ...SEARCH, ...options.search, fileBytesMax: maxReadBytes };
  const snapshotBounds = { ...SNAPSHOTS, ...options.snapshots };
  for (const [name, bound] of Object.entries({ ...bounds, ...snapshotBounds })) within(name, bound, Number.MAX_SAFE_INTEGER);

  const kind = confinementKind(options.confinement);
  const tree = new ConfinedTree(confinementOf(kind), root);
  const jobs = new TreeJobs(root, kind);
  const stores = new OwnerStores(tree, root, jobs);
  const writes = new FileWrites(tree, stores, jobs, maxFileBytes);
  const snapshots = new Snapshots(tree, stores, jobs, snapshotBounds, now);

  /** Searches give no input that a search of nothing could not answer. */
  const scan = async <T>(place: Place, work: Parameters<TreeJobs['run']>[1], cancel: AbortSignal): Promise<Refusable<T | Json>> => {
    const found = await jobs.run<T>(place, work, { cancel, timeMs: bounds.timeMs + SEARCH_GRACE_MS });
    return isUnwritten(place, found) ? ok({ matches: [], truncated: false }) : found;
  };

  const actions: Readonly<Record<string, Action>> = {
    list: withoutInput((place) => listFolder(tree, place, maxListEntries)),
    stat: withoutInput((place) => statOf(tree, place, [root, ...place.store].join('/'))),
    read: withoutInput((place) => readFile(tree, place, maxReadBytes)),
    search: withInput(schemas.FilesSearchInput, (place, input, cancel) => scan(place, { kind: 'search', input, bounds }, cancel)),
    grep: withInput(schemas.FilesGrepInput, (place, input, cancel) => scan(place, { kind: 'grep', input, bounds }, cancel)),
    create: withInput(schemas.FilesCreateInput, (place, input, cancel) => writes.create(place, input, cancel)),
    replace: withInput(schemas.FilesReplaceInput, (place, input, cancel) => writes.replace(place, input, cancel)),
    append: withInput(schemas.FilesAppendInput, (place, input, cancel) => writes.append(place, input, cancel)),
    delete: withInput(schemas.FilesDeleteInput, (place, input, cancel) => writes.delete(place, input, cancel)),
    'snapshot:create': withInput(schemas.FilesSnapshotCreateInput, (place, input, cancel) => snapshots.create(place, input, cancel)),
    'snapshot:list': withInput(schemas.FilesSnapshotListInput, (place, input) => snapshots.list(place, input)),
    'snapshot:restore': withInput(schemas.FilesSnapshotRestoreInput, (place, input, cancel) => snapshots.restore(place, input, cancel)),
  };

  const perform = async (operation: ResourceOperation, cancel: AbortSignal): Promise<Refusable<unknown>> => {
    if (cancel.aborted) return err('operation_cancelled');
    const place = placeOf(FILES_NAMESPACE, operation);
    if (!place.ok) return place;
    const action = Object.hasOwn(actions, operation.action) ? actions[operation.action] : undefined;
    if (action === undefined) return err('action_not_supported');
    const settled = await stores.settled(place.value, cancel);
    return settled.ok ? action(place.value, operation.input, cancel) : settled;
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

type Action = (place: Place, input: Json | undefined, cancel: AbortSignal) => Promise<Refusable<unknown>>;

const withoutInput =
  (act: (place: Place) => Promise<Refusable<unknown>>): Action =>
  async (place, input) =>
    input === undefined ? act(place) : err('invalid_input');

/** No input at all is the input in which nothing is given. */
const withInput =
  <Input>(schema: z.ZodType<Input>, act: (place: Place, input: Input, cancel: AbortSignal) => Promise<Refusable<unknown>>): Action =>
  async (place, given = {}, cancel) => {
    const input = schema.safeParse(given);
    return input.success ? act(place, input.data, cancel) : err('invalid_input');
  };

const within = (name: string, value: number, max: number): void => {
  if (!Number.isSafeInteger(value) || value < 1 || value > max) throw new ContractError(`${name} must be a whole number in 1..${max}`);
};
