import type { Delivery } from '@sharedos/bus';
import {
  type Address,
  type Instant,
  type JsonObj,
  type LogEvent,
  type Result,
  addressKey,
  err,
  ok,
  revisionOf,
  timestampOf,
} from '@sharedos/contracts';
import { type Position, type StreamId, eventIdOf, runCommand } from '@sharedos/event-store';
import type { Decider } from '@sharedos/kernel';
import type { CommandRefusal } from './administer.ts';
import type { RecordedAct } from './change-record.ts';
import type { Ports } from '../ports.ts';

const ATTEMPTS_MAX = 8;

/** Who commands what, by which command. */
export interface Commander {
  readonly commandId: string;
  readonly principal: Address;
  readonly at: Instant;
}

export interface CommandOutcome<State> {
  readonly state: State;
  readonly position: Position;
  /** What it wrote to the log, this time or when it was first sent; nothing when it changed nothing. */
  readonly acts: readonly RecordedAct[];
}

/**
 * Decides a command on a stream and appends what follows from it. The id of an event depends on the command alone, so a command
 * that is sent again is recognised and gets the first answer.
 *
 * @param named Tells apart the streams that one command changes; its command id alone when it changes one.
 */
export const runStreamCommand = async <State, Command, Event extends { readonly type: string }, Refusal extends { readonly code: string }>(
  store: Ports['store'],
  { namespaceId, verb, traceId }: Pick<Delivery, 'namespaceId' | 'verb' | 'traceId'>,
  { commandId, principal, at }: Commander,
  {
    stream,
    decider,
    parseEvent,
    named = commandId,
  }: {
    readonly stream: StreamId;
    readonly decider: Decider<State, Command, Event, Refusal>;
    readonly parseEvent: (event: LogEvent) => Event | undefined;
    readonly named?: string;
  },
  command: Command,
): Promise<Result<CommandOutcome<State>, CommandRefusal>> => {
  const envelope = (index: number, { type, ...data }: Event): LogEvent => ({
    eventId: eventIdOf({ namespaceId, principal: addressKey(principal), verb, commandId: named, index }),
    type,
    schemaVersion: 1,
    at: timestampOf(at),
    principal,
    correlationId: traceId ?? commandId,
    causationId: commandId,
    // What was parsed is JSON; optional members are left out, not set to nothing.
    data: data as unknown as JsonObj,
  });
  const ran = await runCommand({ store, stream, decider, parseEvent, command, envelope, attemptsMax: ATTEMPTS_MAX });
  if (!ran.ok)
    return err('kind' in ran.error && ran.error.kind === 'too_large' ? { code: 'command_too_large' } : (ran.error as CommandRefusal));
  const { state, position, events } = ran.value;
  const revision = revisionOf(store.storeId, position);
  return ok({ state, position, acts: events.map((event, index) => ({ stream, event: envelope(index, event), revision })) });
};
