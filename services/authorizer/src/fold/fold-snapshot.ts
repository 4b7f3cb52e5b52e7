import { type Json, type Result, err, ok } from '@sharedos/contracts';
import type { Position } from '@sharedos/event-store';
import type { AuthorityFold, Folded } from './authority-fold.ts';
import { AuthorityIndex } from './authority-index.ts';
import { NamespaceIndex } from './namespace-index.ts';
import { type SnapshotPlace, readSnapshot, writeSnapshot } from './snapshot-file.ts';

const NAMESPACES = 'namespaces';

/**
 * Keeps what a replica has folded. The columns are copied first, which takes some tens of milliseconds a million grants; what is
 * folded while the file is written is not in it.
 *
 * @returns The position that was kept; `undefined` when the fold cannot be kept as it stands.
 * @throws When the file cannot be written.
 */
export const saveFold = async (fold: AuthorityFold, place: SnapshotPlace): Promise<Position | undefined> => {
  const { folded } = fold;
  if (folded === undefined) return undefined;
  const sections = folded.index.snapshot();
  sections.set(NAMESPACES, [new TextEncoder().encode(JSON.stringify(folded.namespaces.snapshot()))]);
  await writeSnapshot(place, folded.position, sections);
  return folded.position;
};

/**
 * What a replica starts from instead of the beginning of the log.
 *
 * @param head A position that the log is known to reach. A snapshot that goes beyond it is of a history that was lost.
 * @returns `undefined` where there is no snapshot; or why the one that is there is not used. The log is then folded from its beginning.
 */
export const loadFold = async (place: SnapshotPlace, head: Position): Promise<Result<Folded | undefined, string>> => {
  const snapshot = await readSnapshot(place);
  if (!snapshot.ok) return snapshot;
  if (snapshot.value === undefined) return ok(undefined);
  const { position, sections } = snapshot.value;
  if (position > head) return err(`it stands at ${position}, and the log ends at ${head}`);
  const namespaces = NamespaceIndex.restore(JSON.parse(new TextDecoder().decode(sections.get(NAMESPACES))) as Json);
  if (namespaces === undefined) return err('what it holds of namespaces is of another format');
  return ok({ position, index: AuthorityIndex.restore(sections), namespaces });
};
