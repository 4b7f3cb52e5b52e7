import { Json, JsonObj, Path, Seg, Ts, bounded } from '@sharedos/contracts';
import { z } from 'zod';

/** Opaque version of a file: no outer whitespace (refused, not trimmed), 1..256 code points. */
export const FileVersion = z
  .string()
  .refine((version) => version === version.trim(), 'must not have outer whitespace')
  .refine((version) => version !== '' && [...version.slice(0, 513)].length <= 256, 'must be 1..256 code points')
  .meta({ minLength: 1, maxLength: 256 });

/** A path that may be the root, and one that may not. */
const RootedPath = Path;
const FilePath = bounded(z.array(Seg), 1, 64);
const Limit = z.int().min(1).max(100);
const ContextLines = z.int().min(0).max(100).default(0);

/** What the provider is given: the arguments without `path`. A tool with nothing else gets no input at all. */
export const FilesSearchInput = z.strictObject({ query: bounded(z.string().trim(), 1, 8192), limit: Limit.optional() });
export const FilesGrepInput = z.strictObject({
  pattern: bounded(z.string(), 1, 8192),
  mode: z.enum(['literal', 'regex']).default('literal'),
  caseSensitive: z.boolean().default(false),
  contextBefore: ContextLines,
  contextAfter: ContextLines,
});
export const FilesCreateInput = z.strictObject({ content: Json, metadata: JsonObj.optional() });
export const FilesReplaceInput = z.strictObject({ content: Json, expectedVersion: FileVersion.optional() });
export const FilesAppendInput = z.strictObject({
  content: Json,
  expectedVersion: FileVersion.optional(),
  metadata: JsonObj.optional(),
});
export const FilesDeleteInput = z.strictObject({ expectedVersion: FileVersion.optional(), recursive: z.boolean().default(false) });
export const FilesSnapshotCreateInput = z.strictObject({ label: bounded(z.string().trim(), 1, 256).optional() });
export const FilesSnapshotListInput = z.strictObject({ limit: Limit.optional() });
export const FilesSnapshotRestoreInput = z.strictObject({
  snapshotId: bounded(z.string().trim(), 1, 256),
  expectedVersion: FileVersion.optional(),
});
export type FilesSearchInput = z.infer<typeof FilesSearchInput>;
export type FilesGrepInput = z.infer<typeof FilesGrepInput>;
export type FilesCreateInput = z.infer<typeof FilesCreateInput>;
export type FilesReplaceInput = z.infer<typeof FilesReplaceInput>;
export type FilesAppendInput = z.infer<typeof FilesAppendInput>;
export type FilesDeleteInput = z.infer<typeof FilesDeleteInput>;
export type FilesSnapshotCreateInput = z.infer<typeof FilesSnapshotCreateInput>;
export type FilesSnapshotListInput = z.infer<typeof FilesSnapshotListInput>;
export type FilesSnapshotRestoreInput = z.infer<typeof FilesSnapshotRestoreInput>;

export const FilesListArguments = z.strictObject({ path: RootedPath });
export const FilesStatArguments = z.strictObject({ path: RootedPath });
export const FilesReadArguments = z.strictObject({ path: RootedPath });
export const FilesSearchArguments = FilesSearchInput.extend({ path: RootedPath });
export const FilesGrepArguments = FilesGrepInput.extend({ path: RootedPath });
export const FilesCreateArguments = FilesCreateInput.extend({ path: FilePath });
export const FilesReplaceArguments = FilesReplaceInput.extend({ path: FilePath });
export const FilesAppendArguments = FilesAppendInput.extend({ path: FilePath });
export const FilesDeleteArguments = FilesDeleteInput.extend({ path: FilePath });
export const FilesSnapshotCreateArguments = FilesSnapshotCreateInput.extend({ path: RootedPath });
export const FilesSnapshotListArguments = FilesSnapshotListInput.extend({ path: RootedPath });
export const FilesSnapshotRestoreArguments = FilesSnapshotRestoreInput.extend({ path: FilePath });

const Bytes = z.int().min(0).meta({ description: 'Size in bytes; 0 for a folder.' });
const Count = z.int().min(0);
const EntryType = z.enum(['file', 'directory']);
const LineNumber = z.int().min(1);
const LineText = bounded(z.string(), 0, 512);

/** Entries in code-unit order of name. `truncated`: there are more. */
export const FilesListOutput = z.strictObject({
  entries: bounded(z.array(z.strictObject({ name: Seg, type: EntryType, size: Bytes.optional() })), 0, 1_000),
  truncated: z.boolean(),
});
/** `metadata` as it was given when the file was written; a file that was changed from outside since has none. */
export const FilesStatOutput = z.strictObject({
  type: EntryType,
  size: Bytes,
  modifiedAt: Ts,
  version: FileVersion,
  metadata: JsonObj.optional(),
});
/** `utf8` when the bytes are UTF-8 text without NUL, and then they are the bytes exactly; else `base64`. */
export const FilesReadOutput = z.strictObject({
  content: z.string(),
  encoding: z.enum(['utf8', 'base64']),
  size: Bytes,
  version: FileVersion,
});
/**
 * The best files first, by `score` and then by path; each with its best line, counted from 1, unless only its name fits. `path` is
 * the whole path from the root of the namespace. `truncated`: more files fit, or not everything was looked at.
 */
export const FilesSearchOutput = z.strictObject({
  matches: bounded(
    z.array(z.strictObject({ path: FilePath, score: z.number().min(0), line: LineNumber.optional(), text: LineText.optional() })),
    0,
    100,
  ),
  truncated: z.boolean(),
});
/** Lines in order of path and number, each with the lines around it that were asked for. `truncated` as of a search. */
export const FilesGrepOutput = z.strictObject({
  matches: bounded(
    z.array(
      z.strictObject({
        path: FilePath,
        line: LineNumber,
        text: LineText,
        before: bounded(z.array(LineText), 0, 100),
        after: bounded(z.array(LineText), 0, 100),
      }),
    ),
    0,
    1_000,
  ),
  truncated: z.boolean(),
});
export const FilesWriteOutput = z.strictObject({ size: Bytes, version: FileVersion });
/** How many files and folders are gone, the one asked for included. */
export const FilesDeleteOutput = z.strictObject({ files: Count, folders: Count });
/** `path` is what the snapshot is of; `bytes` what its files hold together. */
export const FilesSnapshotOutput = z.strictObject({
  snapshotId: bounded(z.string(), 1, 256),
  path: Path,
  label: bounded(z.string(), 1, 256).optional(),
  createdAt: Ts,
  files: Count,
  bytes: Count,
});
/** The latest first. `truncated`: there are more. */
export const FilesSnapshotListOutput = z.strictObject({
  snapshots: bounded(z.array(FilesSnapshotOutput), 0, 100),
  truncated: z.boolean(),
});
/** What is there now; `version` of the path that was restored. */
export const FilesSnapshotRestoreOutput = z.strictObject({ files: Count, bytes: Count, version: FileVersion });

export type FilesListOutput = z.infer<typeof FilesListOutput>;
export type FilesStatOutput = z.infer<typeof FilesStatOutput>;
export type FilesReadOutput = z.infer<typeof FilesReadOutput>;
export type FilesSearchOutput = z.infer<typeof FilesSearchOutput>;
export type FilesGrepOutput = z.infer<typeof FilesGrepOutput>;
export type FilesWriteOutput = z.infer<typeof FilesWriteOutput>;
export type FilesDeleteOutput = z.infer<typeof FilesDeleteOutput>;
export type FilesSnapshotOutput = z.infer<typeof FilesSnapshotOutput>;
export type FilesSnapshotListOutput = z.infer<typeof FilesSnapshotListOutput>;
export type FilesSnapshotRestoreOutput = z.infer<typeof FilesSnapshotRestoreOutput>;
