import { type LogEvent, type Result, type Unavailable, err, ok, unavailable } from '@sharedos/contracts';
import { type Decider, invariant } from '@sharedos/kernel';
import type { EventStore, Position, StreamId, StreamRevision } from './event-store.ts';

export interface CommandRun<State, Command, Event, Refusal> {
  readonly store: EventStore;
  readonly stream: StreamId;
  readonly decider: Decider<State, Command, Event, Refusal>;
  /** Reads a recorded event; `undefined` for one that the decider does not know. */
  readonly parseEvent: (event: LogEvent) => Event | undefined;
  readonly command: Command;
  /**
   * The record of the command's `index`-th event. Its `eventId` must depend on the command and the index alone, never on the event
   * or the time (`eventIdOf`): that is how a retry is recognised.
   */
  readonly envelope: (index: number, event: Event) => LogEvent;
  /** How often to decide in all when other writers come in between. */
  readonly attemptsMax?: number;
}

/** What became of a command: its events, where the log stood after them, and the state they led to. */
export interface CommandDone<State, Event> {
  readonly events: readonly Event[];
  /** Of the command's last event; of the stream's last event for a command that changed nothing, 0 if there is none. */
  readonly position: Position;
  readonly state: State;
}

/** The decider's own refusal as it is, or why there was no decision to record. */
export type CommandRefusal<Refusal> = Refusal | { readonly kind: 'too_large' } | Unavailable;

const ATTEMPTS_MAX = 5;

/**
 * Runs a command on a stream: reads, folds, decides, and appends if nobody came in between; otherwise decides again on what the
 * stream holds then.
 *
 * A command whose events are already in the stream gets the answer of then, even if it would be refused now.
 *
 * @returns The events and their position; the decider's refusal; `too_large`; or `unavailable`, and then the command may have
 *   happened: run it again with the same command id. Losing to other writers `attemptsMax` times is `unavailable` too.
 */
export const runCommand = async <State, Command, Event, Refusal>(
  run: CommandRun<State, Command, Event, Refusal>,
): Promise<Result<CommandDone<State, Event>, CommandRefusal<Refusal>>> => {
  const { store, stream, decider, command, envelope, attemptsMax = ATTEMPTS_MAX } = run;
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const read = await readHistory(run);
    if (!read.ok) return read;
    const { history, revision } = read.value;
    const before = doneBefore(history, run);
    if (before !== undefined) return ok(before);

    const state = history.reduce((folded, { event }) => decider.evolve(folded, event), decider.initial);
    const decided = decider.decide(command, state);
    if (!decided.ok) return decided;
    const events = decided.value;
    if (events.length === 0) return ok({ events, position: history.at(-1)?.position ?? 0, state });

    const appended = await store.append(
      stream,
      revision,
      events.map((event, index) => envelope(index, event)),
    );
    // The same command was run elsewhere meanwhile. What it recorded is the answer, not what was decided here.
    if (appended.ok && appended.value.repeated === true) return answerOfThen(run);
    if (appended.ok)
      return ok({
        events,
        position: appended.value.position,
        state: events.reduce((folded, event) => decider.evolve(folded, event), state),
      });
    if (appended.error.kind !== 'version_conflict') return err(appended.error);
  }
  return unavailable(`other writers came in between ${attemptsMax} times`);
};

interface Happened<Event> {
  readonly event: Event;
  readonly eventId: string;
  readonly position: Position;
}

/** A stream that is not understood as a whole is not decided on. */
const readHistory = async <State, Command, Event, Refusal>({
  store,
  stream,
  parseEvent,
}: CommandRun<State, Command, Event, Refusal>): Promise<
  Result<{ readonly history: readonly Happened<Event>[]; readonly revision: StreamRevision }, Unavailable>
> => {
  const read = await store.read(stream);
  if (!read.ok) return read;
  const history: Happened<Event>[] = [];
  for (const { event, position } of read.value.events) {
    const parsed = parseEvent(event);
    if (parsed === undefined) return unavailable(`the event at ${position}, ${event.type} version ${event.schemaVersion}, is not known`);
    history.push({ event: parsed, eventId: event.eventId, position });
  }
  return ok({ history, revision: read.value.revision });
};

const answerOfThen = async <State, Command, Event, Refusal>(
  run: CommandRun<State, Command, Event, Refusal>,
): Promise<Result<CommandDone<State, Event>, Unavailable>> => {
  const read = await readHistory(run);
  if (!read.ok) return read;
  const before = doneBefore(read.value.history, run);
  return before === undefined ? unavailable('the command was recorded, but its events were not found') : ok(before);
};

/** The answer this command got when its events were appended, if they were; they stand together, for an append is all or none. */
const doneBefore = <State, Command, Event, Refusal>(
  history: readonly Happened<Event>[],
  { decider, envelope }: CommandRun<State, Command, Event, Refusal>,
): CommandDone<State, Event> | undefined => {
  const some = history[0];
  if (some === undefined) return undefined;
  const firstId = envelope(0, some.event).eventId;
  const start = history.findIndex(({ eventId }) => eventId === firstId);
  if (start < 0) return undefined;
  let end = start + 1;
  for (let next = history[end]; next !== undefined && next.eventId === envelope(end - start, next.event).eventId; next = history[end])
    end += 1;
  const last = history[end - 1];
  invariant(last !== undefined, 'a command that was found has an event');
  return {
    events: history.slice(start, end).map(({ event }) => event),
    position: last.position,
    state: history.slice(0, end).reduce((folded, { event }) => decider.evolve(folded, event), decider.initial),
  };
};
