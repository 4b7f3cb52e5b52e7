// The thread that walks whole trees: its calls to the file system wait, so that the service's own thread does not.
import { readdirSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { ok } from '@sharedos/contracts';
import { type TreeFolder, treeSteps, walkTo } from '../confinement/tree-steps.ts';
import { type Refusable, attemptSync } from './file-refusal.ts';
import { readWorkTree } from '../repo/work-tree.ts';
import { grepBelow } from './grep.ts';
import { searchBelow } from './search.ts';
import { makeSnapshot } from './snapshot-make.ts';
import { readHeaders } from './snapshot-records.ts';
import { buildRestored } from './snapshot-restore.ts';
import type { TreeJob, TreeJobAnswer, TreeJobMessage } from './tree-job.ts';
import { countBelow, removeBelow } from './tree-removal.ts';

const inFolder = <T>(job: TreeJob, names: readonly string[], use: (folder: TreeFolder) => Refusable<T>): Refusable<T> => {
  const folder = walkTo(treeSteps(job.confinement), job.root, names);
  if (!folder.ok) return folder;
  try {
    return use(folder.value);
  } finally {
    folder.value.close();
  }
};

const perform = (job: TreeJob, cancelled: () => boolean): Refusable<unknown> => {
  const steps = treeSteps(job.confinement);
  const control = { now: () => performance.now(), cancelled };
  const { work, above, name, path, store } = job;
  switch (work.kind) {
    case 'search':
      return inFolder(job, above, (parent) => searchBelow(steps, { parent, name, path }, work.input, work.bounds, control));
    case 'grep':
      return inFolder(job, above, (parent) => grepBelow(steps, { parent, name, path }, work.input, work.bounds, control));
    case 'count':
      return inFolder(job, above, (parent) => countBelow(steps, parent, name));
    case 'work-tree':
      return inFolder(job, above, (parent) => readWorkTree(steps, parent, name));
    case 'sweep':
      return inFolder(job, [...store, 'tmp'], (tmp) =>
        attemptSync(() => {
          for (const left of readdirSync(tmp.at, { encoding: 'buffer' })) removeBelow(tmp, left);
        }),
      );
    case 'snapshot':
      return inFolder(job, store, (kept) =>
        inFolder(job, above, (parent) => makeSnapshot(steps, parent, name, kept, work.of, work.bounds)),
      );
    case 'snapshots':
      return inFolder(job, store, (kept) => snapshotsOf(kept, path, work.limit));
    case 'restore':
      return inFolder(job, store, (kept) => buildRestored(kept, work.snapshotId, path));
  }
};

/** Those of the path and below: one of a folder above would tell of what lies beside the path. */
const snapshotsOf = (store: TreeFolder, path: readonly string[], limit: number): Refusable<unknown> => {
  const headers = readHeaders(store);
  if (!headers.ok) return headers;
  const found = headers.value
    .map(({ snapshot }) => snapshot)
    .filter((snapshot) => path.every((segment, at) => segment === snapshot.path[at]));
  return ok({ snapshots: found.slice(0, limit), truncated: found.length > limit });
};

parentPort?.on('message', ({ job, cancel }: TreeJobMessage) => {
  let answer: TreeJobAnswer;
  try {
    answer = perform(job, () => Atomics.load(cancel, 0) !== 0);
  } catch (error) {
    answer = { defect: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  parentPort?.postMessage(answer);
});
parentPort?.postMessage('ready');
