import type { LogEvent } from '@sharedos/contracts';
import type { Appended, AppendRefusal, Recorded, StreamRevision } from './event-store.ts';
import { type Result, err, ok } from '@sharedos/contracts';

/** What a stream holds, each event with the revision at which the stream ended after its append. */
export interface RecordedAt extends Recorded {
  readonly revision: StreamRevision;
}

/**
 * Answers an append that the stream did not take: it had happened before if every one of its events is there, and then it gets
 * the answer of then. Some of them there is a conflict like any other: the caller reads and sees what became of its command.
 */
export const answerFromStream = (
  recorded: readonly RecordedAt[],
  events: readonly LogEvent[],
  found: StreamRevision,
): Result<Appended, AppendRefusal> => {
  const wanted = new Set(events.map((event) => event.eventId));
  const ours = recorded.filter(({ event }) => wanted.has(event.eventId));
  const last = ours.at(-1);
  const allThere = new Set(ours.map(({ event }) => event.eventId)).size === wanted.size;
  if (last === undefined || !allThere) return err({ kind: 'version_conflict', found });
  return ok({ revision: last.revision, position: last.position, repeated: true });
};
