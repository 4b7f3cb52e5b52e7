import { Path, Seg, Ts, bounded } from '@sharedos/contracts';
import { z } from 'zod';

/** Paths inside the repository, each literal: a name with a star in it is that name. */
const Pathspec = bounded(z.array(bounded(z.array(Seg), 1, 64)), 1, 64);
/** One line: no control character but the tab. */
// oxlint-disable-next-line no-control-regex -- they are what is refused
const Message = bounded(z.string().trim(), 1, 500).regex(/^[^\u0000-\u0008\u000a-\u001f\u007f]*$/);

export const RepoDiffInput = z.strictObject({ staged: z.boolean().default(false), pathspec: Pathspec.optional() });
export const RepoLogInput = z.strictObject({ maxCount: z.int().min(1).max(100).optional() });
export const RepoStageInput = z.strictObject({ pathspec: Pathspec });
export const RepoCommitInput = z.strictObject({ message: Message });
export type RepoDiffInput = z.infer<typeof RepoDiffInput>;
export type RepoLogInput = z.infer<typeof RepoLogInput>;
export type RepoStageInput = z.infer<typeof RepoStageInput>;
export type RepoCommitInput = z.infer<typeof RepoCommitInput>;

export const RepoStatusArguments = z.strictObject({ path: Path });
export const RepoDiffArguments = RepoDiffInput.extend({ path: Path });
export const RepoLogArguments = RepoLogInput.extend({ path: Path });
export const RepoStageArguments = RepoStageInput.extend({ path: Path });
export const RepoCommitArguments = RepoCommitInput.extend({ path: Path });

/** As Git has it, which may hold names that no path of a grant can spell. */
const TrackedPath = z.array(z.string()).meta({ description: 'Names from the root of the repository down.' });
const CommitId = z.string().regex(/^[0-9a-f]{40}$/);
const Change = z.strictObject({ path: TrackedPath, change: z.enum(['added', 'modified', 'deleted']) });
const LISTED_MAX = 2_000;

/**
 * What `commit` would record (`staged`), what `stage` would (`unstaged`, `untracked`), what a merge left open, and the links, which
 * are not read. `branch` is absent when no branch is checked out, `head` before the first commit.
 */
export const RepoStatusOutput = z.strictObject({
  branch: z.string().optional(),
  head: CommitId.optional(),
  staged: bounded(z.array(Change), 0, LISTED_MAX),
  unstaged: bounded(z.array(Change), 0, LISTED_MAX),
  untracked: bounded(z.array(TrackedPath), 0, LISTED_MAX),
  conflicted: bounded(z.array(TrackedPath), 0, LISTED_MAX),
  links: bounded(z.array(TrackedPath), 0, LISTED_MAX),
  truncated: z.boolean(),
});
/** A patch in Git's form, cut at 1 MiB. */
export const RepoDiffOutput = z.strictObject({ patch: z.string(), truncated: z.boolean() });
/** The latest first, from what is checked out. A long message is cut. */
export const RepoLogOutput = z.strictObject({
  commits: bounded(
    z.array(
      z.strictObject({
        commit: CommitId,
        parents: z.array(CommitId),
        author: z.strictObject({ name: z.string(), email: z.string() }),
        authoredAt: Ts,
        committedAt: Ts,
        message: z.string(),
      }),
    ),
    0,
    100,
  ),
  truncated: z.boolean(),
});
/** How many paths the index now has as they are in the folder, and how many it no longer has. */
export const RepoStageOutput = z.strictObject({ updated: z.int().min(0), removed: z.int().min(0) });
export const RepoCommitOutput = z.strictObject({ commit: CommitId, branch: z.string().optional() });

export const LISTS_MAX = LISTED_MAX;
export type RepoStatusOutput = z.infer<typeof RepoStatusOutput>;
export type RepoDiffOutput = z.infer<typeof RepoDiffOutput>;
export type RepoLogOutput = z.infer<typeof RepoLogOutput>;
export type RepoStageOutput = z.infer<typeof RepoStageOutput>;
export type RepoCommitOutput = z.infer<typeof RepoCommitOutput>;
