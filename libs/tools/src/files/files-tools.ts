import type { Instant } from '@sharedos/contracts';
import * as schemas from './files-schemas.ts';
import { type ResourcePlane, resourceTools } from '../resource-tool.ts';
import type { ResourceProvider, ToolHandler } from '@sharedos/kernel';

export const FILES_NAMESPACE = 'files';

const READ = { readWrite: 'read', annotations: { readOnly: true } } as const;
/** A write that takes nothing away: published as not read-only, without a word on destruction. */
const WRITE = { readWrite: 'write' } as const;
const DESTROY = { readWrite: 'write', annotations: { destructive: true } } as const;

/** A further tool is a row here and a schema beside the others. @see spec/tools.md §1 */
export const FILES_PLANE: ResourcePlane = {
  namespace: FILES_NAMESPACE,
  rows: {
    list: {
      ...READ,
      action: 'list',
      description: 'List the files and folders directly inside a folder, sorted by name. The empty path is the root.',
      arguments: schemas.FilesListArguments,
      output: schemas.FilesListOutput,
    },
    stat: {
      ...READ,
      action: 'stat',
      description: 'Say whether a path is a file or a folder, with size in bytes, time of last change and version.',
      arguments: schemas.FilesStatArguments,
      output: schemas.FilesStatOutput,
    },
    read: {
      ...READ,
      action: 'read',
      description: 'Read a whole file: as text where it is UTF-8 text, as base64 otherwise.',
      arguments: schemas.FilesReadArguments,
      output: schemas.FilesReadOutput,
    },
    search: {
      ...READ,
      action: 'search',
      description:
        'Find the files at or below a path whose name or text holds every word of the query, letter case ignored. The best come first, each with its best line.',
      arguments: schemas.FilesSearchArguments,
      output: schemas.FilesSearchOutput,
    },
    grep: {
      ...READ,
      action: 'grep',
      description:
        'List the lines that hold a pattern, literal text or an RE2 regular expression, in all text files at or below a path, with lines around them.',
      arguments: schemas.FilesGrepArguments,
      output: schemas.FilesGrepOutput,
    },
    create: {
      ...WRITE,
      action: 'create',
      description:
        'Create a file that does not exist yet, with the folders above it. A string is written as text, {"encoding": "base64", "content": …} as bytes, other content as JSON.',
      arguments: schemas.FilesCreateArguments,
      output: schemas.FilesWriteOutput,
    },
    replace: {
      ...DESTROY,
      action: 'replace',
      description:
        'Replace the whole content of an existing file, optionally only if it still has the expected version. Content as of create.',
      arguments: schemas.FilesReplaceArguments,
      output: schemas.FilesWriteOutput,
    },
    append: {
      ...WRITE,
      action: 'append',
      description: 'Add content to the end of an existing file, optionally only if it still has the expected version.',
      arguments: schemas.FilesAppendArguments,
      output: schemas.FilesWriteOutput,
    },
    delete: {
      ...DESTROY,
      action: 'delete',
      description: 'Delete a file or an empty folder, or with recursive a folder and everything in it.',
      arguments: schemas.FilesDeleteArguments,
      output: schemas.FilesDeleteOutput,
    },
    'snapshot.create': {
      ...WRITE,
      action: 'snapshot:create',
      description: 'Keep a file, or a folder with everything in it, as it is now, under an id by which it can be restored.',
      arguments: schemas.FilesSnapshotCreateArguments,
      output: schemas.FilesSnapshotOutput,
    },
    'snapshot.list': {
      ...READ,
      action: 'snapshot:list',
      description: 'List the snapshots of a path and of what lies below it, the latest first.',
      arguments: schemas.FilesSnapshotListArguments,
      output: schemas.FilesSnapshotListOutput,
    },
    'snapshot.restore': {
      ...DESTROY,
      action: 'snapshot:restore',
      description: 'Make a path again what it was in a snapshot of it or of a folder above. What was written there since is lost.',
      arguments: schemas.FilesSnapshotRestoreArguments,
      output: schemas.FilesSnapshotRestoreOutput,
    },
  },
};

/**
 * The files tools over one provider of resource namespace `files`.
 *
 * @throws ContractError for a provider of another namespace.
 */
export const filesTools = (provider: ResourceProvider, now?: () => Instant): readonly ToolHandler[] =>
  resourceTools(FILES_PLANE, provider, now);
