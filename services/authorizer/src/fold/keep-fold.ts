import type { Instant } from '@sharedos/contracts';
import type { AuthorityFold } from './authority-fold.ts';
import { saveFold } from './fold-snapshot.ts';
import type { SnapshotPlace } from './snapshot-file.ts';

export interface KeepFoldOptions {
  readonly clock: () => Instant;
  /** How long after an event what was before it may still be asked about, in milliseconds: the longest turn and its grace. */
  readonly historyMs: number;
  /** Where snapshots are kept, and how often; none are when absent. */
  readonly snapshots?: { readonly place: SnapshotPlace; readonly everyMs: number };
  readonly log: (event: string, fields: Readonly<Record<string, unknown>>) => void;
}

export interface KeptFold {
  /** Keeps a last snapshot, and nothing more. */
  stop(): Promise<void>;
}

const FORGET_EVERY_MS = 10_000;

/** Lets a fold forget what no open turn needs any more, and keeps snapshots of it. Neither holds up an answer. */
export const keepFold = (fold: AuthorityFold, { clock, historyMs, snapshots, log }: KeepFoldOptions): KeptFold => {
  let kept = -1;
  let saving: Promise<void> = Promise.resolve();

  const save = async (place: SnapshotPlace): Promise<void> => {
    if (fold.position === kept) return;
    const begun = performance.now();
    try {
      const position = await saveFold(fold, place);
      if (position === undefined) return;
      kept = position;
      log('snapshot kept', { position, grants: fold.index.size, ms: Math.round(performance.now() - begun) });
    } catch (error) {
      log('snapshot not kept', { why: error instanceof Error ? error.message : String(error) });
    }
  };
  const saveNext = (): Promise<void> => (saving = saving.then(() => (snapshots === undefined ? undefined : save(snapshots.place))));

  const forget = (): void => fold.forget(clock() - historyMs);
  forget();
  const timers = [setInterval(forget, FORGET_EVERY_MS)];
  if (snapshots !== undefined) timers.push(setInterval(() => void saveNext(), snapshots.everyMs));
  for (const timer of timers) timer.unref();
  return {
    stop: async () => {
      for (const timer of timers) clearInterval(timer);
      await saveNext();
    },
  };
};
