import type { Instant } from '@sharedos/contracts';
import type { ResourceProvider, ToolHandler } from '@sharedos/kernel';
import { type ResourcePlane, resourceTools } from '../resource-tool.ts';
import * as schemas from './repo-schemas.ts';

export const REPO_NAMESPACE = 'repo';

const READ = { readWrite: 'read', annotations: { readOnly: true } } as const;
const WRITE = { readWrite: 'write' } as const;

/** Five tools and no more: whatever else Git can do stays with whoever may run commands on the host. @see spec/tools.md §2 */
export const REPO_PLANE: ResourcePlane = {
  namespace: REPO_NAMESPACE,
  rows: {
    status: {
      ...READ,
      action: 'status',
      description: 'Say what is staged, changed and new in a Git repository, and which branch and commit are checked out.',
      arguments: schemas.RepoStatusArguments,
      output: schemas.RepoStatusOutput,
    },
    diff: {
      ...READ,
      action: 'diff',
      description: 'Show as a patch what is changed and not staged, or with staged what the next commit would record.',
      arguments: schemas.RepoDiffArguments,
      output: schemas.RepoDiffOutput,
    },
    log: {
      ...READ,
      action: 'log',
      description: 'List the commits that lead to what is checked out, the latest first.',
      arguments: schemas.RepoLogArguments,
      output: schemas.RepoLogOutput,
    },
    stage: {
      ...WRITE,
      action: 'stage',
      description: 'Put files and folders of the working tree, as they are now, into what the next commit records.',
      arguments: schemas.RepoStageArguments,
      output: schemas.RepoStageOutput,
    },
    commit: {
      ...WRITE,
      action: 'commit',
      description: 'Record what is staged as a commit by whoever acts, with a message of one line.',
      arguments: schemas.RepoCommitArguments,
      output: schemas.RepoCommitOutput,
    },
  },
};

/**
 * The repo tools over one provider of resource namespace `repo`.
 *
 * @throws ContractError for a provider of another namespace.
 */
export const repoTools = (provider: ResourceProvider, now?: () => Instant): readonly ToolHandler[] =>
  resourceTools(REPO_PLANE, provider, now);
