import type { Instant } from '@sharedos/contracts';
import {
  FilesAppendArguments,
  FilesCreateArguments,
  FilesListArguments,
  FilesListOutput,
  FilesReadArguments,
  FilesReadOutput,
  FilesSearchArguments,
  FilesSearchOutput,
  FilesStatArguments,
  FilesStatOutput,
  FilesWriteOutput,
} from './files-schemas.ts';
import { type ResourcePlane, resourceTools } from './resource-tool.ts';
import type { ResourceProvider, ToolHandler } from '@sharedos/kernel';

export const FILES_NAMESPACE = 'files';

const READ = { readWrite: 'read', annotations: { readOnly: true } } as const;
/** A write that takes nothing away: published as not read-only, without a word on destruction. */
const WRITE = { readWrite: 'write' } as const;

/** The table of spec/tools.md §1: a further tool is a row here and a schema beside the others. */
export const FILES_PLANE: ResourcePlane = {
  namespace: FILES_NAMESPACE,
  rows: {
    list: {
      ...READ,
      action: 'list',
      description: 'List the files and folders directly inside a folder, sorted by name. The empty path is the root.',
      arguments: FilesListArguments,
      output: FilesListOutput,
    },
    stat: {
      ...READ,
      action: 'stat',
      description: 'Say whether a path is a file or a folder, with size in bytes, time of last change and version.',
      arguments: FilesStatArguments,
      output: FilesStatOutput,
    },
    read: {
      ...READ,
      action: 'read',
      description: 'Read a whole file: as text where it is UTF-8 text, as base64 otherwise.',
      arguments: FilesReadArguments,
      output: FilesReadOutput,
    },
    search: {
      ...READ,
      action: 'search',
      description: 'Find lines that contain the query, in all text files at or below a path. Literal text, letter case ignored.',
      arguments: FilesSearchArguments,
      output: FilesSearchOutput,
    },
    create: {
      ...WRITE,
      action: 'create',
      description: 'Create a file that does not exist yet, with the folders above it. A string is written as text, other content as JSON.',
      arguments: FilesCreateArguments,
      output: FilesWriteOutput,
    },
    append: {
      ...WRITE,
      action: 'append',
      description: 'Add content to the end of an existing file, optionally only if it still has the expected version.',
      arguments: FilesAppendArguments,
      output: FilesWriteOutput,
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
