import { isAbsolute } from 'node:path';
import {
  type AccessContext,
  type Instant,
  type Json,
  type ResourceOperation,
  type ResourceResult,
  err,
  ok,
  timestampOf,
} from '@sharedos/contracts';
import { ContractError, type ResourceProvider } from '@sharedos/kernel';
import type { z } from 'zod';
import { type ConfinementKind, confinementKind, confinementOf } from '../confinement/confinement.ts';
import { ConfinedTree } from '../files/confined-tree.ts';
import { readBytes } from '../files/file-content.ts';
import { FileLocks } from '../files/file-locks.ts';
import { attempt } from '../files/file-refusal.ts';
import { type Place, placeOf } from '../files/place.ts';
import { TreeJobs } from '../files/tree-jobs.ts';
import { GitFolder, type Head } from './git-folder.ts';
import { commitOf, identity, isWithin, named, stagedIn } from './git-text.ts';
import { type Change, type WorkChange, changesAgainst, notIgnored, readIndex } from './repo-index.ts';
import { type RepoResult, repoError } from './repo-refusal.ts';
import * as schemas from './repo-schemas.ts';
import { REPO_NAMESPACE } from './repo-tools.ts';
import type { WorkTree } from './work-tree.ts';
import { Workspace } from './workspace.ts';

export interface RepoProviderOptions {
  /** Absolute path of an existing folder of the host, laid out as that of the files provider: it may be the same. */
  readonly root: string;
  readonly confinement?: ConfinementKind;
  readonly now?: () => Instant;
}

const PATCH_MAX = 1024 * 1024;
const LOG_MAX = 100;
const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';

interface Repo {
  readonly place: Place;
  readonly git: GitFolder;
  readonly head: Head;
  readonly context: AccessContext;
  readonly cancel: AbortSignal;
}

/**
 * The Git repositories in a real folder, apart for each (namespace, owner) as files are, over the `git` of the host. Authority is
 * decided before; this holds what git may read and run: see `runGit` and `GitFolder`.
 *
 * Content is taken byte for byte: no filter, line end or encoding of an attribute file applies. Not followed, and refused: `.git` files
 * and linked working trees, borrowed objects, SHA-256 repositories, refs kept in tables. No reflog is written.
 *
 * @throws ContractError when `root` is not absolute or confinement is not possible here.
 * @see spec/tools.md §2 and §3
 */
export const repoProvider = ({ root, confinement, now = Date.now }: RepoProviderOptions): ResourceProvider => {
  if (!isAbsolute(root)) throw new ContractError('root must be an absolute path');
  const kind = confinementKind(confinement);
  const tree = new ConfinedTree(confinementOf(kind), root);
  const jobs = new TreeJobs(root, kind);
  const writers = new FileLocks();

  const workTreeOf = async ({ place, cancel }: Repo): Promise<RepoResult<WorkTree>> => {
    const found = await jobs.run<WorkTree>(place, { kind: 'work-tree' }, { cancel });
    return !found.ok && found.error === 'file_too_large' ? err('repo_too_large') : found;
  };

  /** The content of a file of the working tree, as it is now. */
  const contentOf = ({ place }: Repo, path: string): Promise<RepoResult<Buffer>> => {
    const names = path.split('/');
    return tree.inFolder([...place.above, place.name, ...names.slice(0, -1)], false, (folder) =>
      tree.withFile(folder, names.at(-1) ?? '', (file, stats) => attempt(() => readBytes(file, Number(stats.size)))),
    );
  };

  const status = async (repo: Repo): Promise<RepoResult<schemas.RepoStatusOutput>> =>
    Workspace.with(repo.git, repo.cancel, async (workspace) => {
      const [index, work] = [await readIndex(workspace), await workTreeOf(repo)];
      if (!index.ok) return index;
      if (!work.ok) return work;
      const args = [
        'diff-index',
        '--cached',
        '--raw',
        '-z',
        '--no-renames',
        '--no-abbrev',
        '--no-ext-diff',
        repo.head.commit ?? EMPTY_TREE,
      ];
      const raw = await workspace.text(args);
      if (!raw.ok) return raw;
      const changes = changesAgainst(index.value, work.value);
      const untracked = changes.filter(({ change }) => change === 'added').map(({ path }) => path);
      const fresh = await notIgnored(workspace, work.value, untracked);
      if (!fresh.ok) return fresh;
      let truncated = false;
      const first = <T>(list: readonly T[]): T[] => {
        truncated ||= list.length > schemas.LISTS_MAX;
        return list.slice(0, schemas.LISTS_MAX);
      };
      const paths = (list: readonly string[]): string[][] => first(list).map((path) => path.split('/'));
      const listed = (list: readonly { readonly path: string; readonly change: Change }[]) =>
        first(list).map(({ path, change }) => ({ path: path.split('/'), change }));
      const lists = {
        staged: listed(stagedIn(raw.value)),
        unstaged: listed(changes.filter(({ change }) => change !== 'added')),
        untracked: paths(fresh.value),
        conflicted: paths(index.value.conflicted),
        links: paths(work.value.links),
      };
      return ok({ ...named(repo.head), ...(repo.head.commit === undefined ? {} : { head: repo.head.commit }), ...lists, truncated });
    });

  const diff = async (repo: Repo, { staged, pathspec }: schemas.RepoDiffInput): Promise<RepoResult<schemas.RepoDiffOutput>> =>
    Workspace.with(repo.git, repo.cancel, async (workspace) => {
      const base = staged ? ok(repo.head.commit ?? EMPTY_TREE) : await workspace.writeTree();
      if (!base.ok) return base;
      if (!staged) {
        const applied = await applyWorkTree(repo, workspace, pathspec);
        if (!applied.ok) return applied;
      }
      const fixed = ['diff-index', '--cached', '-p', '--no-ext-diff', '--no-textconv', '--no-color', '--no-renames', '--submodule=short'];
      const only = (pathspec ?? []).map((path) => path.join('/'));
      const patch = await workspace.run([...fixed, base.value, '--', ...only], { outputMax: PATCH_MAX, cut: true });
      if (!patch.ok) return patch;
      return ok({ patch: patch.value.subarray(0, PATCH_MAX).toString('utf8'), truncated: patch.value.length > PATCH_MAX });
    });

  /** Makes the copy of the index what the working tree is, for all that is in it. */
  const applyWorkTree = async (
    repo: Repo,
    workspace: Workspace,
    pathspec?: readonly (readonly string[])[],
  ): Promise<RepoResult<unknown>> => {
    const [index, work] = [await readIndex(workspace), await workTreeOf(repo)];
    if (!index.ok) return index;
    if (!work.ok) return work;
    const within = pathspec?.map((path) => path.join('/'));
    const changes = changesAgainst(index.value, work.value).filter(
      ({ path, change }) => change !== 'added' && (within === undefined || within.some((spec) => isWithin(path, spec))),
    );
    return applyChanges(repo, workspace, changes);
  };

  const applyChanges = async (repo: Repo, workspace: Workspace, changes: readonly WorkChange[]): Promise<RepoResult<unknown>> => {
    const entries: { path: string; mode?: string; hash?: string }[] = [];
    for (const { path, mode } of changes) {
      if (repo.cancel.aborted) return err('operation_cancelled');
      if (mode === undefined) {
        entries.push({ path });
        continue;
      }
      const content = await contentOf(repo, path);
      if (!content.ok) return content;
      entries.push({ path, mode, hash: await workspace.addBlob(content.value) });
    }
    return entries.length === 0 ? ok(undefined) : workspace.updateIndex(entries);
  };

  const log = async (repo: Repo, { maxCount = LOG_MAX }: schemas.RepoLogInput): Promise<RepoResult<schemas.RepoLogOutput>> => {
    const { commit } = repo.head;
    if (commit === undefined) return ok({ commits: [], truncated: false });
    return Workspace.with(repo.git, repo.cancel, async (workspace) => {
      const fixed = ['log', '-z', '--no-color', '--no-decorate', '--no-notes', '--no-show-signature', '--no-mailmap', '--no-ext-diff'];
      const listed = await workspace.text([...fixed, '--format=%H%n%P%n%an%n%ae%n%at%n%ct%n%B', '-n', String(maxCount + 1), commit, '--']);
      if (!listed.ok) return listed;
      const commits = listed.value
        .split('\0')
        .filter((record) => record !== '')
        .map(commitOf);
      return ok({ commits: commits.slice(0, maxCount), truncated: commits.length > maxCount });
    });
  };

  const stage = async (repo: Repo, { pathspec }: schemas.RepoStageInput): Promise<RepoResult<schemas.RepoStageOutput>> =>
    Workspace.with(repo.git, repo.cancel, async (workspace) => {
      const [index, work] = [await readIndex(workspace), await workTreeOf(repo)];
      if (!index.ok) return index;
      if (!work.ok) return work;
      const all = changesAgainst({ ...index.value, conflicted: [] }, work.value);
      const fresh = await notIgnored(
        workspace,
        work.value,
        all.filter(({ change }) => change === 'added').map(({ path }) => path),
      );
      if (!fresh.ok) return fresh;
      const known = new Set([...fresh.value, ...index.value.entries.keys(), ...index.value.conflicted]);
      for (const spec of pathspec.map((path) => path.join('/'))) {
        if (work.value.links.some((link) => isWithin(link, spec) || isWithin(spec, link))) return err('path_not_confined');
        if (![...known].some((path) => isWithin(path, spec))) return err('pathspec_unmatched');
      }
      const specs = pathspec.map((path) => path.join('/'));
      const wanted = all.filter(({ path }) => known.has(path) && specs.some((spec) => isWithin(path, spec)));
      const applied = await applyChanges(repo, workspace, wanted);
      if (!applied.ok) return applied;
      const removed = wanted.filter(({ change }) => change === 'deleted').length;
      const outcome = ok({ updated: wanted.length - removed, removed });
      if (wanted.length === 0) return outcome;
      const added = await repo.git.addObjects(workspace.newObjects);
      const replaced = added.ok ? await repo.git.replaceIndex(workspace.index, await workspace.readIndex()) : added;
      return replaced.ok ? outcome : replaced;
    });

  const commit = async (repo: Repo, { message }: schemas.RepoCommitInput): Promise<RepoResult<schemas.RepoCommitOutput>> => {
    if (await repo.git.isInBetween()) return err('repo_conflicted');
    return Workspace.with(repo.git, repo.cancel, async (workspace) => {
      const written = await workspace.writeTree();
      if (!written.ok) return written;
      const parent = repo.head.commit;
      const before = parent === undefined ? ok(EMPTY_TREE) : await workspace.text(['rev-parse', '--verify', `${parent}^{tree}`]);
      if (!before.ok) return before;
      if (before.value.trim() === written.value) return err('nothing_to_commit');
      const args = ['commit-tree', written.value, ...(parent === undefined ? [] : ['-p', parent]), '-F', '-'];
      const made = await workspace.text(args, { input: `${message}\n`, env: identity(repo.context, now()) });
      if (!made.ok) return made;
      const id = made.value.trim();
      const added = await repo.git.addObjects(workspace.newObjects);
      if (!added.ok) return added;
      if (repo.cancel.aborted) return err('operation_cancelled');
      const moved = await repo.git.moveHead(repo.head, id);
      return moved.ok ? ok({ commit: id, ...named(repo.head) }) : moved;
    });
  };

  /** Writers of one repository are in line inside this process, so that they do not find Git's own lock taken by each other. */
  const inLine =
    <Input, Output>(write: (repo: Repo, input: Input) => Promise<RepoResult<Output>>) =>
    async (repo: Repo, input: Input): Promise<RepoResult<Output>> => {
      const key = [...repo.place.above, repo.place.name].join('/');
      const turn = await writers.acquire(key, repo.cancel);
      if (turn !== 'held') return err(turn === 'busy' ? 'repo_busy' : 'operation_cancelled');
      try {
        // What is checked out may have moved while this one waited.
        const head = await repo.git.head();
        return head.ok ? await write({ ...repo, head: head.value }, input) : head;
      } finally {
        writers.release(key);
      }
    };

  const actions: Readonly<Record<string, Action>> = {
    status: async (repo, input) => (input === undefined ? status(repo) : err('invalid_input')),
    diff: withInput(schemas.RepoDiffInput, diff),
    log: withInput(schemas.RepoLogInput, log),
    stage: withInput(schemas.RepoStageInput, inLine(stage)),
    commit: withInput(schemas.RepoCommitInput, inLine(commit)),
  };

  const perform = async (operation: ResourceOperation, cancel: AbortSignal): Promise<RepoResult<unknown>> => {
    if (cancel.aborted) return err('operation_cancelled');
    const place = placeOf(REPO_NAMESPACE, operation);
    if (!place.ok) return place;
    const action = Object.hasOwn(actions, operation.action) ? actions[operation.action] : undefined;
    if (action === undefined) return err('action_not_supported');
    const git = new GitFolder(tree, [...place.value.above, place.value.name]);
    const checked = await git.check();
    if (!checked.ok) return checked;
    const head = await git.head();
    return head.ok ? action({ place: place.value, git, head: head.value, context: operation.context, cancel }, operation.input) : head;
  };

  return {
    namespace: REPO_NAMESPACE,
    invoke: async (operation, cancel): Promise<ResourceResult> => {
      const outcome = await perform(operation, cancel);
      const answered = { operationId: operation.operationId, completedAt: timestampOf(now()) };
      return outcome.ok
        ? { status: 'succeeded', ...answered, output: outcome.value as Json }
        : { status: 'failed', ...answered, error: repoError(outcome.error) };
    },
  };
};

type Action = (repo: Repo, input: Json | undefined) => Promise<RepoResult<unknown>>;

const withInput =
  <Input>(schema: z.ZodType<Input>, act: (repo: Repo, input: Input) => Promise<RepoResult<unknown>>): Action =>
  async (repo, given = {}) => {
    const input = schema.safeParse(given);
    return input.success ? act(repo, input.data) : err('invalid_input');
  };
