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

/** What the provider is given: the arguments without `path`. A tool with nothing else gets no input at all. */
export const FilesSearchInput = z.strictObject({ query: bounded(z.string().trim(), 1, 8192), limit: z.int().min(1).max(100).optional() });
export const FilesCreateInput = z.strictObject({ content: Json, metadata: JsonObj.optional() });
export const FilesAppendInput = z.strictObject({
  content: Json,
  expectedVersion: FileVersion.optional(),
  metadata: JsonObj.optional(),
});
export type FilesSearchInput = z.infer<typeof FilesSearchInput>;
export type FilesCreateInput = z.infer<typeof FilesCreateInput>;
export type FilesAppendInput = z.infer<typeof FilesAppendInput>;

export const FilesListArguments = z.strictObject({ path: RootedPath });
export const FilesStatArguments = z.strictObject({ path: RootedPath });
export const FilesReadArguments = z.strictObject({ path: RootedPath });
export const FilesSearchArguments = FilesSearchInput.extend({ path: RootedPath });
export const FilesCreateArguments = FilesCreateInput.extend({ path: FilePath });
export const FilesAppendArguments = FilesAppendInput.extend({ path: FilePath });

const Bytes = z.int().min(0).meta({ description: 'Size in bytes; 0 for a folder.' });
const EntryType = z.enum(['file', 'directory']);

/** Entries in code-unit order of name. `truncated`: there are more. */
export const FilesListOutput = z.strictObject({
  entries: bounded(z.array(z.strictObject({ name: Seg, type: EntryType, size: Bytes.optional() })), 0, 1_000),
  truncated: z.boolean(),
});
export const FilesStatOutput = z.strictObject({ type: EntryType, size: Bytes, modifiedAt: Ts, version: FileVersion });
/** `utf8` when the bytes are UTF-8 text without NUL, and then they are the bytes exactly; else `base64`. */
export const FilesReadOutput = z.strictObject({
  content: z.string(),
  encoding: z.enum(['utf8', 'base64']),
  size: Bytes,
  version: FileVersion,
});
/** `path` is the whole path from the root of the namespace; `line` counts from 1. `truncated`: not everything was looked at. */
export const FilesSearchOutput = z.strictObject({
  matches: bounded(z.array(z.strictObject({ path: FilePath, line: z.int().min(1), text: bounded(z.string(), 0, 512) })), 0, 100),
  truncated: z.boolean(),
});
export const FilesWriteOutput = z.strictObject({ size: Bytes, version: FileVersion });

export type FilesListOutput = z.infer<typeof FilesListOutput>;
export type FilesStatOutput = z.infer<typeof FilesStatOutput>;
export type FilesReadOutput = z.infer<typeof FilesReadOutput>;
export type FilesSearchOutput = z.infer<typeof FilesSearchOutput>;
export type FilesWriteOutput = z.infer<typeof FilesWriteOutput>;
