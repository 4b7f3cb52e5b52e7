import type { ProtocolError, Result } from '@sharedos/contracts';
import { FILE_REFUSALS, type FileRefusal, fileError } from '../files/file-refusal.ts';

/** Refusals of the repo provider beside those that it has in common with the files provider. */
export const REPO_REFUSALS = {
  repo_not_found: 'there is no repository at this path',
  repo_not_supported: 'the repository is kept in a way that this host does not follow',
  repo_busy: 'another program is changing the repository',
  repo_conflicted: 'a merge or rebase has left this repository in between',
  repo_too_large: 'the repository is larger than this host looks through',
  pathspec_unmatched: 'a path to stage names nothing in the working tree or the index',
  nothing_to_commit: 'nothing is staged',
  git_unavailable: 'the host has no git that it can run',
  git_failed: 'git did not do what it was asked to',
} as const;
export type RepoRefusal = keyof typeof REPO_REFUSALS | FileRefusal;
export type RepoResult<T> = Result<T, RepoRefusal>;

const RETRYABLE: ReadonlySet<string> = new Set(['repo_busy', 'git_unavailable']);

export const repoError = (code: RepoRefusal): ProtocolError =>
  code in FILE_REFUSALS
    ? fileError(code as FileRefusal)
    : { code, message: REPO_REFUSALS[code as keyof typeof REPO_REFUSALS], retryable: RETRYABLE.has(code) };
