import { type CapabilityGrant, type GrantAt, GrantEvent, type LogEvent, type Result, ok, revisionOf } from '@sharedos/contracts';
import type { Position, StreamId } from '@sharedos/event-store';
import { type GrantCommand, grant as grantDecider, invariant } from '@sharedos/kernel';
import type { Delivery } from '@sharedos/bus';
import type { Changed, CommandRefusal } from './administer.ts';
import type { Ports } from '../ports.ts';
import { type Commander, runStreamCommand } from './stream-command.ts';

export const grantStream = (namespaceId: string, grantId: string): StreamId => ({ category: 'grant', namespaceId, id: grantId });

/** Decides one command on one grant's stream and appends what follows from it. */
export const runGrantCommand = async (
  store: Ports['store'],
  delivery: Pick<Delivery, 'namespaceId' | 'verb' | 'traceId'>,
  { grantId, named, ...commander }: Commander & { readonly grantId: string; readonly named?: string },
  command: GrantCommand,
): Promise<Result<Changed<GrantAt> & { readonly position: Position }, CommandRefusal>> => {
  const stream = grantStream(delivery.namespaceId, grantId);
  const asked = { stream, decider: grantDecider, parseEvent: readGrantEvent, ...(named === undefined ? {} : { named }) };
  const ran = await runStreamCommand(store, delivery, commander, asked, command);
  if (!ran.ok) return ran;
  const { state, position, acts } = ran.value;
  invariant(state.status !== 'absent', 'a command that was accepted leaves a grant behind');
  const grant: CapabilityGrant = state.grant;
  return ok({ value: { grant, revision: revisionOf(store.storeId, position) }, acts, position });
};

/** Reads an event of a grant's stream; `undefined` for one of a version or type that this release does not know. */
export const readGrantEvent = (event: LogEvent): GrantEvent | undefined => {
  if (event.schemaVersion !== 1) return undefined;
  const parsed = GrantEvent.safeParse({ ...event.data, type: event.type });
  return parsed.success ? parsed.data : undefined;
};
