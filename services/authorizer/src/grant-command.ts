import {
  type Address,
  type GrantEvent,
  GrantEvent as GrantEvents,
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
import { type StreamId, eventIdOf, runCommand } from '@sharedos/event-store';
import { type GrantCommand, grant as grantDecider, invariant } from '@sharedos/kernel';
import type { Delivery } from '@sharedos/bus';
import type { Changed, CommandRefusal } from './administer.ts';
import type { Ports } from './ports.ts';

const ATTEMPTS_MAX = 8;

export const grantStream = (namespaceId: string, grantId: string): StreamId => ({ category: 'grant', namespaceId, id: grantId });

/** Decides one command on one grant's stream and appends what follows from it. */
export const runGrantCommand = async (
  store: Ports['store'],
  { namespaceId, verb, traceId }: Delivery,
  {
    commandId,
    grantId,
    principal,
    at,
  }: { readonly commandId: string; readonly grantId: string; readonly principal: Address; readonly at: Instant },
  command: GrantCommand,
): Promise<Result<Changed, CommandRefusal>> => {
  const ran = await runCommand({
    store,
    stream: grantStream(namespaceId, grantId),
    decider: grantDecider,
    parseEvent: readGrantEvent,
    command,
    envelope: (index, { type, ...data }: GrantEvent): LogEvent => ({
      eventId: eventIdOf({ namespaceId, principal: addressKey(principal), verb, commandId, index }),
      type,
      schemaVersion: 1,
      at: timestampOf(at),
      principal,
      correlationId: traceId ?? commandId,
      // A grant that was parsed is JSON; its optional members are left out, not set to nothing.
      data: data as unknown as JsonObj,
    }),
    attemptsMax: ATTEMPTS_MAX,
  });
  if (!ran.ok) return err('kind' in ran.error && ran.error.kind === 'too_large' ? { code: 'command_too_large' } : ran.error);
  const { state, position, events } = ran.value;
  invariant(state.status !== 'absent', 'a command that was accepted leaves a grant behind');
  return ok({ grant: state.grant, revision: revisionOf(store.storeId, position), changed: events.length > 0 });
};

/** Reads an event of a grant's stream; `undefined` for one of a version or type that this release does not know. */
export const readGrantEvent = (event: LogEvent): GrantEvent | undefined => {
  if (event.schemaVersion !== 1) return undefined;
  const parsed = GrantEvents.safeParse({ ...event.data, type: event.type });
  return parsed.success ? parsed.data : undefined;
};
