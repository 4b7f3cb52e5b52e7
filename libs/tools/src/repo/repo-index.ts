import { ok } from '@sharedos/contracts';
import type { RepoResult } from './repo-refusal.ts';
import type { WorkTree } from './work-tree.ts';
import type { Workspace } from './workspace.ts';

export type Change = 'added' | 'modified' | 'deleted';

export interface IndexEntry {
  readonly path: string;
  readonly mode: string;
  readonly hash: string;
  /** Left out of the working tree on purpose. */
  readonly isSparse: boolean;
}

export interface Index {
  readonly entries: ReadonlyMap<string, IndexEntry>;
  /** Paths that a merge left open. */
  readonly conflicted: readonly string[];
}

const LINE = /^(\S) (\d{6}) ([0-9a-f]{40}) (\d)\t(.+)$/s;
const SUBMODULE = '160000';
const LINK = '120000';

export const readIndex = async (workspace: Workspace): Promise<RepoResult<Index>> => {
  const listed = await workspace.text(['ls-files', '-s', '-v', '-z']);
  if (!listed.ok) return listed;
  const entries = new Map<string, IndexEntry>();
  const conflicted = new Set<string>();
  for (const line of listed.value.split('\0')) {
    const [, tag, mode = '', hash = '', stage, path = ''] = LINE.exec(line) ?? [];
    if (stage === '0') entries.set(path, { path, mode, hash, isSparse: tag?.toUpperCase() === 'S' });
    else if (stage !== undefined) conflicted.add(path);
  }
  return ok({ entries, conflicted: [...conflicted] });
};

export interface WorkChange {
  readonly path: string;
  readonly change: Change;
  /** As it is in the working tree; absent for what is gone. */
  readonly mode?: string;
  readonly hash?: string;
}

/** What the working tree has otherwise than the index: `added` is in no index. Links and submodules are left as they are. */
export const changesAgainst = ({ entries, conflicted }: Index, { files, links }: WorkTree): readonly WorkChange[] => {
  const open = new Set(conflicted);
  const changes: WorkChange[] = [];
  const there = new Set(links);
  for (const { path, mode, hash } of files) {
    there.add(path);
    const known = entries.get(path);
    if (open.has(path) || (known !== undefined && known.mode === mode && known.hash === hash)) continue;
    changes.push({ path, change: known === undefined ? 'added' : 'modified', mode, hash });
  }
  for (const { path, mode, isSparse } of entries.values())
    if (!there.has(path) && !isSparse && mode !== SUBMODULE && mode !== LINK) changes.push({ path, change: 'deleted' });
  return changes;
};

/** Of paths that are in no index, those that the repository's ignore files do not name. */
export const notIgnored = async (
  workspace: Workspace,
  { ignores }: WorkTree,
  paths: readonly string[],
): Promise<RepoResult<readonly string[]>> => {
  if (paths.length === 0) return ok([]);
  for (const { path, text } of ignores) await workspace.place(path, text);
  // It says with its exit code whether anything is ignored; a path that certainly is makes that a yes.
  await workspace.place('.gitignore', `${ignores.find(({ path }) => path === '.gitignore')?.text ?? ''}\n/${IGNORED}\n`);
  // It alone takes no literal paths; behind a dot and a slash none begins like anything special.
  const input = [...paths, IGNORED].map((path) => `./${path}\0`).join('');
  const found = await workspace.text(['check-ignore', '--stdin', '-z', '--no-index'], { input, env: { GIT_LITERAL_PATHSPECS: '0' } });
  if (!found.ok) return found;
  const ignored = new Set(found.value.split('\0'));
  return ok(paths.filter((path) => !ignored.has(`./${path}`)));
};

const IGNORED = '.sharedos-ignored';
