import type { AppendOutcome, EventLog, Expected } from './event-log.ts';
import type { Faults } from './faults.ts';
import type { ProposedEvent } from './stored-event.ts';
import { EMPTY, type WireExpected, type WireProposed, uuidOf } from './wire.ts';

/** Where an append is decided, for both ways in which a client may send one. */
export interface Appending {
  readonly log: EventLog;
  readonly faults: Faults;
  /** Largest append, in bytes of its events. */
  readonly appendBytesMax: number;
  /** Called after an append of a client was stored. */
  readonly afterAppend: () => void;
}

export const expectedOf = ({ expected, revision }: WireExpected): Expected => {
  switch (expected) {
    case 'revision':
      return Number(revision ?? '0');
    case 'noStream':
      return 'no_stream';
    case 'streamExists':
      return 'stream_exists';
    case 'any':
    case undefined:
      return 'any';
    default:
      return expected satisfies never;
  }
};

/** The fields in which an answer repeats what was expected. */
export const expectedAgain = (
  expected: Expected,
  names: { readonly revision: string; readonly any: string; readonly streamExists: string; readonly noStream: string },
): object => {
  if (typeof expected === 'number') return { [names.revision]: String(expected) };
  if (expected === 'any') return { [names.any]: EMPTY };
  return expected === 'no_stream' ? { [names.noStream]: EMPTY } : { [names.streamExists]: EMPTY };
};

/** Reads a proposed event, or names the property that it lacks. */
export const proposedOf = ({ id, metadata = {}, customMetadata, data }: WireProposed): ProposedEvent | string => {
  const { type, 'content-type': contentType } = metadata;
  if (type === undefined) return 'type';
  if (contentType === undefined) return 'content-type';
  return { id: uuidOf(id), type, contentType, data: data ?? Buffer.alloc(0), metadata: customMetadata ?? Buffer.alloc(0) };
};

export const sizeOf = (event: ProposedEvent): number => event.data.byteLength + event.metadata.byteLength + event.type.length;

/**
 * Stores an append, or not, as the log and the faults have it.
 *
 * @returns `undefined` when its answer is lost.
 */
export const appendWith = async (
  { log, faults, afterAppend }: Appending,
  stream: string,
  expected: Expected,
  proposed: readonly ProposedEvent[],
): Promise<AppendOutcome | undefined> => {
  await faults.appending.passed();
  const refused = log.judge(stream, expected, proposed);
  if (refused === undefined && faults.appendsToInvent > 0) {
    faults.appendsToInvent -= 1;
    return invented(log, stream, proposed);
  }
  const outcome = refused ?? log.store(stream, proposed);
  if (refused === undefined) afterAppend();
  if (faults.answersToLose === 0) return outcome;
  faults.answersToLose -= 1;
  return undefined;
};

/** What would have been answered. */
const invented = (log: EventLog, stream: string, proposed: readonly ProposedEvent[]): AppendOutcome => {
  const read = log.readStream(stream, 'end', true, 1);
  const last = read.kind === 'events' ? (read.events[0]?.revision ?? -1) : -1;
  return { kind: 'stored', revision: last + proposed.length, position: (log.all.at(-1)?.position ?? 0) + 1 };
};

/** The part of an answer that both ways share. */
export const success = (outcome: AppendOutcome & { readonly kind: 'stored' }): object => ({
  ...(outcome.revision === undefined ? { noStream: EMPTY } : { currentRevision: String(outcome.revision) }),
  ...(outcome.position === undefined
    ? { noPosition: EMPTY }
    : { position: { commitPosition: String(outcome.position), preparePosition: String(outcome.position) } }),
});
