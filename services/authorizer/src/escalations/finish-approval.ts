import type { Delivery } from '@sharedos/bus';
import { type CapabilityGrant, type EscalationQuestion, type Result, err, revisionOf, sameAddress } from '@sharedos/contracts';
import { type Approval, type EscalationState, approvalOf, invariant } from '@sharedos/kernel';
import type { CommandRefusal } from '../changes/administer.ts';
import { changeRecord } from '../changes/change-record.ts';
import { runGrantCommand } from '../changes/grant-command.ts';
import type { CommandPorts } from '../ports.ts';
import { type CommandOutcome, type Commander, runStreamCommand } from '../changes/stream-command.ts';
import { questionStream } from './question.ts';
import type { Tidings } from './tidings.ts';

/** Who is at work on a question: the caller's delivery, or none. */
export type Frame = Pick<Delivery, 'namespaceId' | 'traceId'>;

const VERB = 'escalation.resolve';

/**
 * Finishes an approval whose grant was issued and whose question does not say so yet. It is the very command that began it, so
 * whoever finishes it, and however often, it is one answer, and whoever sent the command hears it.
 */
export const finishApproval = async (
  { store, records }: Pick<CommandPorts, 'store' | 'records'>,
  tidings: Tidings,
  frame: Frame,
  question: EscalationQuestion,
  issued: CapabilityGrant,
): Promise<Result<CommandOutcome<EscalationState>, CommandRefusal>> => {
  const approval = approvalOf(issued);
  invariant(approval !== undefined, 'the grant of an answer says who gave it');
  const { by, commandId, at } = approval;
  const command = { type: 'ApproveEscalation', grant: asIssued(issued), by, at, registered: true } as const;
  const ran = await runStreamCommand(
    store,
    { ...frame, verb: VERB },
    { commandId, principal: by, at },
    questionStream(frame.namespaceId, question.id),
    command,
  );
  if (!ran.ok) return ran;
  const { acts, state, position } = ran.value;
  await recordAll(records, acts);
  if (state.status !== 'absent') tidings.answered(frame.namespaceId, state, revisionOf(store.storeId, position));
  return ran;
};

/** Takes back the grant of an approval that came too late: its question was answered otherwise meanwhile. */
export const undoApproval = async (
  { store, records }: Pick<CommandPorts, 'store' | 'records'>,
  frame: Frame,
  { id, issuer }: CapabilityGrant,
  at: number,
): Promise<Result<void, CommandRefusal>> => {
  const command = { type: 'RevokeGrant', grantId: id, requestedBy: issuer, at, reason: 'its question was answered otherwise' } as const;
  const named = { grantId: id, commandId: `undo-${id}`, principal: issuer, at };
  const ran = await runGrantCommand(store, { ...frame, verb: VERB }, named, command);
  if (!ran.ok) return ran;
  await recordAll(records, ran.value.acts);
  return { ok: true, value: undefined };
};

/** Whether this is the command that issued a grant. */
export const isOf = (grant: CapabilityGrant, { commandId, principal }: Pick<Commander, 'commandId' | 'principal'>): boolean => {
  const approval: Approval | undefined = approvalOf(grant);
  return approval?.commandId === commandId && sameAddress(approval.by, principal);
};

/** A grant as it was issued, whether or not it was revoked since. */
export const asIssued = <Grant extends { readonly revokedAt?: unknown }>({ revokedAt: _, ...grant }: Grant): Grant => grant as Grant;

const recordAll = async (records: CommandPorts['records'], acts: CommandOutcome<unknown>['acts']): Promise<void> => {
  const changes = acts.map(changeRecord).filter((record) => record !== undefined);
  await Promise.all(changes.map((record) => records.write(record)));
};

export const answeredAlready = () => err({ code: 'escalation_answered' });
