import { type ProtocolError, type Result, err, ok } from '@sharedos/contracts';

/** Every refusal of the files provider, with the one message it carries: never a host path, a name or a system's own text. */
export const FILE_REFUSALS = {
  file_not_found: 'there is no such file or folder',
  file_exists: 'there already is something at this path',
  not_a_file: 'this is not a regular file',
  not_a_directory: 'a part of the path is not a folder',
  file_too_large: 'the file is, or would become, larger than this host takes',
  path_refused: 'this path cannot name a file here',
  path_not_confined: 'the path leads through a link',
  version_mismatch: 'the file has another version by now',
  content_refused: 'the content is neither text nor base64 that could be written',
  metadata_too_large: 'the metadata is larger than this host keeps beside a file',
  folder_not_empty: 'the folder holds something; say recursive to delete it all',
  holds_repository: 'a repository lies in this folder, and its history is not a matter of files',
  pattern_refused: 'this is no regular expression that this host runs',
  search_timed_out: 'the search took longer than this host gives it',
  snapshot_not_found: 'there is no such snapshot of this path',
  snapshot_limit: 'the snapshot would be larger, or one more, than this host keeps',
  snapshot_damaged: 'the snapshot cannot be read back as it was made',
  invalid_input: 'the input does not fit the action',
  action_not_supported: 'the files of this host do not know this action',
  operation_cancelled: 'cancelled before anything was written',
  file_busy: 'too many others are writing here',
  file_not_accessible: 'the host has no right to do this',
  files_unavailable: 'the files cannot be reached now',
} as const;
export type FileRefusal = keyof typeof FILE_REFUSALS;
export type Refusable<T> = Result<T, FileRefusal>;

/** Those that another try may turn into a success without any change by the caller. */
const RETRYABLE: ReadonlySet<FileRefusal> = new Set(['file_busy', 'search_timed_out', 'files_unavailable']);

export const fileError = (code: FileRefusal): ProtocolError => ({ code, message: FILE_REFUSALS[code], retryable: RETRYABLE.has(code) });

/** Runs one call to the file system, turning its error into a refusal. An error without a code is a defect and goes on. */
export const attemptSync = <T>(call: () => T): Refusable<T> => {
  try {
    return ok(call());
  } catch (error) {
    return err(refusalOf(error));
  }
};

/** The same for a call that is waited for. */
export const attempt = async <T>(call: () => Promise<T>): Promise<Refusable<T>> => {
  try {
    return ok(await call());
  } catch (error) {
    return err(refusalOf(error));
  }
};

const refusalOf = (error: unknown): FileRefusal => {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case undefined:
      throw error;
    case 'ENOENT':
      return 'file_not_found';
    case 'ENOTDIR':
      return 'not_a_directory';
    case 'EISDIR':
      return 'not_a_file';
    case 'EEXIST':
      return 'file_exists';
    case 'ENOTEMPTY':
      return 'folder_not_empty';
    case 'ELOOP':
      return 'path_not_confined';
    case 'ENAMETOOLONG':
    case 'EILSEQ':
    case 'EINVAL':
      return 'path_refused';
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return 'file_not_accessible';
    default:
      return 'files_unavailable';
  }
};
