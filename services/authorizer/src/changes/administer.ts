import type { Delivery } from '@sharedos/bus';
import {
  type Address,
  INFRASTRUCTURE_CODES,
  type Instant,
  type JsonObj,
  type Reply,
  type ResourceRef,
  type Result,
  type Unavailable,
  addressKey,
  canonicalJson,
  hashOf,
  refused,
} from '@sharedos/contracts';
import { eventIdOf } from '@sharedos/event-store';
import { adminRefused, invariant } from '@sharedos/kernel';
import { ATTRIBUTE, SPAN, recordOutcome, withSpan } from '@sharedos/telemetry';
import { ADMIN_NAMESPACE, type AdminArea, type RecordedAct, changeRecord } from './change-record.ts';
import type { CommandPorts } from '../ports.ts';
import { refusalText } from './refusal-texts.ts';

/** One command on the management plane, from the principal that the broker let publish it. */
export interface AdminCommand {
  readonly commandId: string;
  /** What it is about: a grant, or something of a part of the management plane, by name where there are many. */
  readonly about: { readonly grantId: string } | { readonly area: AdminArea; readonly name?: string };
  /** The whole command as it was sent, to tell it from others under the same command id. */
  readonly body: unknown;
}

export interface Changed<Value> {
  readonly value: Value;
  /** What it wrote to the log. A command that asks for what is already so writes nothing. */
  readonly acts: readonly RecordedAct[];
}

export type CommandRefusal = { readonly code: string; readonly found?: number; readonly why?: string } | Unavailable;

/**
 * Carries out a command and records it, whether it changed something or was refused. The change stands in the log before its
 * record is written; a refusal is refused whether or not it could be recorded.
 */
export const administer = async <Value>(
  { audit, clock, records }: Pick<CommandPorts, 'audit' | 'clock' | 'records'>,
  delivery: Delivery,
  command: AdminCommand,
  act: (by: {
    readonly commandId: string;
    readonly principal: Address;
    readonly at: Instant;
  }) => Promise<Result<Changed<Value>, CommandRefusal>>,
): Promise<Reply<Value>> => {
  const { principal, namespaceId } = delivery;
  const { commandId, about } = command;
  invariant(principal !== undefined, 'a command of the management plane comes from a principal');
  const at = clock();
  const grantId = 'grantId' in about ? about.grantId : undefined;
  const span = grantId === undefined ? SPAN.adminCommand : SPAN.grantCommand;
  const attributes = { [ATTRIBUTE.namespaceId]: namespaceId, ...(grantId === undefined ? {} : { [ATTRIBUTE.grantId]: grantId }) };
  return withSpan(span, { attributes }, async (open) => {
    if (records.isFull) {
      recordOutcome(open, 'failed', 'audit_unavailable');
      return refused('audit_unavailable', 'too many changes wait to be recorded; try again', true);
    }
    const outcome = await act({ commandId, principal, at });
    if (!outcome.ok && 'reason' in outcome.error) {
      recordOutcome(open, 'failed', 'log_unavailable');
      return refused('log_unavailable', 'the log did not answer in time; send the command again with the same command id', true);
    }
    if (!outcome.ok) {
      const { code, found, why } = outcome.error as Exclude<CommandRefusal, Unavailable>;
      const isOutage = INFRASTRUCTURE_CODES.has(code);
      recordOutcome(open, isOutage ? 'failed' : 'denied', code);
      await audit(refusalRecord(delivery, principal, command, at, code));
      const details: JsonObj | undefined = found === undefined ? undefined : { version: found };
      const message = why === undefined ? refusalText(code) : `${refusalText(code)}: ${why}`;
      return { ok: false, error: { code, message: message.slice(0, 4096), retryable: isOutage, ...(details && { details }) } };
    }
    const { value, acts } = outcome.value;
    recordOutcome(open, 'succeeded');
    const changes = acts.map(changeRecord).filter((record) => record !== undefined);
    await Promise.all(changes.map((record) => records.write(record)));
    return { ok: true, value };
  });
};

/**
 * A command that is sent again makes the same record again, and readers fold records by id. So the id holds all that makes two
 * refusals different, or whoever uses one command id for everything would show as having been refused once.
 */
const refusalRecord = (
  { namespaceId, verb, traceId }: Delivery,
  principal: Address,
  { commandId, about, body }: AdminCommand,
  at: Instant,
  code: string,
) => {
  const resource: ResourceRef | undefined = 'area' in about ? { namespace: ADMIN_NAMESPACE, path: [about.area] } : undefined;
  const name = 'area' in about ? about.name : undefined;
  const grantId = 'grantId' in about ? about.grantId : undefined;
  const id = canonicalJson([commandId, grantId ?? name ?? verb, 'refused', code, hashOf(body)]);
  return adminRefused(
    {
      id: eventIdOf({ namespaceId, principal: addressKey(principal), verb, commandId: id, index: 0 }),
      at,
      namespaceId,
      principal,
      traceId: traceId ?? commandId,
      command: verb,
      commandId,
      grantId,
      resource,
      about: name,
    },
    code,
  );
};
