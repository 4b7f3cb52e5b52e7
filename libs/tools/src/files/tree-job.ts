import type { ConfinementKind } from '../confinement/confinement.ts';
import type { FileRefusal } from './file-refusal.ts';
import type { FilesGrepInput, FilesSearchInput } from './files-schemas.ts';
import type { ScanBounds } from './scan.ts';
import type { SnapshotBounds, SnapshotOf } from './snapshot-make.ts';

/** Work on a whole tree, as it is sent to the thread that does such work. */
export interface TreeJob {
  readonly root: string;
  readonly confinement: ConfinementKind;
  readonly path: readonly string[];
  readonly above: readonly string[];
  readonly name: string;
  readonly store: readonly string[];
  readonly work:
    | { readonly kind: 'search'; readonly input: FilesSearchInput; readonly bounds: ScanBounds }
    | { readonly kind: 'grep'; readonly input: FilesGrepInput; readonly bounds: ScanBounds }
    | { readonly kind: 'count' }
    | { readonly kind: 'work-tree' }
    | { readonly kind: 'sweep' }
    | { readonly kind: 'snapshot'; readonly of: SnapshotOf; readonly bounds: SnapshotBounds }
    | { readonly kind: 'snapshots'; readonly limit: number }
    | { readonly kind: 'restore'; readonly snapshotId: string };
}

/** `cancel` holds one number, which is no longer 0 once nobody waits any more. */
export interface TreeJobMessage {
  readonly job: TreeJob;
  readonly cancel: Int32Array;
}

export type TreeJobAnswer =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: FileRefusal }
  | { readonly defect: string };
