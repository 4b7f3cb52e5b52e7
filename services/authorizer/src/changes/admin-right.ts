import { type Delivery, isRoot, rootsOf } from '@sharedos/bus';
import {
  type AccessContext,
  type Address,
  type CapabilityRequirement,
  type Instant,
  type Result,
  addressKey,
  canonicalJson,
  err,
  ok,
  timestampOf,
  unavailable,
} from '@sharedos/contracts';
import { eventIdOf } from '@sharedos/event-store';
import { ADMIN_PURPOSE, type Decided, authorizationChecked, decideWith, decidedWithoutAuthority } from '@sharedos/kernel';
import type { CommandRefusal } from './administer.ts';
import { ADMIN_NAMESPACE, type AdminArea } from './change-record.ts';
import type { CommandPorts } from '../ports.ts';
import type { TurnAuthorities } from '../turns/turn-authorities.ts';
import { type UpToDate, upToDate } from '../turns/up-to-date.ts';

export interface AdminQuestion {
  readonly area: AdminArea;
  readonly action: string;
  /** Of the command it is asked for; a command that is sent again makes the same record again. */
  readonly commandId: string;
}

/**
 * Whether the caller may manage a part of the namespace: it is one of the namespace's roots, or holds a grant from one of them over
 * that part, over the root's own `sharedos.admin`. Anybody may issue grants over resources of that name; only the roots' count.
 *
 * It is decided on everything acknowledged before the call, under the policy in force, and the decision is on record before
 * anything is changed. A bounded grant opens nothing here: no ledger stands behind these commands that its uses could be taken in.
 */
export const adminRight =
  (ports: CommandPorts, turns: TurnAuthorities) =>
  async (delivery: Delivery, principal: Address, question: AdminQuestion): Promise<Result<void, CommandRefusal>> => {
    const { namespaceId } = delivery;
    if (isRoot(ports.roots ?? {}, namespaceId, principal)) return ok(undefined);
    const roots = rootsOf(ports.roots ?? {}, namespaceId);
    if (roots.length === 0) return err({ code: 'not_an_administrator' });
    const here = await upToDate(ports);
    if (here === undefined) return unavailable('this replica could not catch up with the log in time');
    const at = Math.max(ports.clock(), ports.fold.index.latestInstant(here.position));
    for (const root of roots) {
      const decided = await decideAs(turns, here, at, contextOf(delivery, principal, root, at, question), question);
      const isLast = root === roots.at(-1);
      // One decision is recorded: the one that allowed, or the last of those that did not.
      if (!decided.decision.allowed && !isLast) continue;
      const record = decisionRecord(delivery, principal, root, here, at, question, decided);
      if (!(await ports.audit(record)).ok) return err({ code: 'audit_unavailable' });
      return decided.decision.allowed ? ok(undefined) : err({ code: 'not_an_administrator' });
    }
    return err({ code: 'not_an_administrator' });
  };

const requestOf = ({ area, action }: AdminQuestion, owner: Address): CapabilityRequirement => ({
  resource: { namespace: ADMIN_NAMESPACE, path: [area], owner },
  action,
});

const contextOf = (
  { namespaceId, traceId }: Delivery,
  actor: Address,
  root: Address,
  at: Instant,
  { commandId }: AdminQuestion,
): AccessContext => ({
  namespaceId,
  actor,
  authority: root,
  owner: root,
  purpose: ADMIN_PURPOSE,
  traceId: traceId ?? commandId,
  enabledToolNamespaces: [],
  now: timestampOf(at),
});

const decideAs = async (
  turns: TurnAuthorities,
  { position, revision }: UpToDate,
  at: Instant,
  context: AccessContext,
  question: AdminQuestion,
): Promise<Decided> => {
  const { authority, held } = turns.frozen(revision, position, at, context);
  if (!authority.ok) return decidedWithoutAuthority(authority.error);
  const rule = authority.value.decide(requestOf(question, context.owner), {
    now: at,
    consume: true,
    mode: 'execute',
    ceiling: held.ceiling,
  });
  return decideWith(rule, turns.ancestorsAt(position, at));
};

const decisionRecord = (
  delivery: Delivery,
  principal: Address,
  root: Address,
  { revision }: UpToDate,
  at: Instant,
  question: AdminQuestion,
  decided: Decided,
) => {
  const { namespaceId, verb } = delivery;
  const { commandId } = question;
  const named = canonicalJson([commandId, 'right', decided.decision.reasonCode, revision]);
  const id = eventIdOf({ namespaceId, principal: addressKey(principal), verb, commandId: named, index: 0 });
  return authorizationChecked(
    { id, at, context: contextOf(delivery, principal, root, at, question), place: { revision, admittedAt: timestampOf(at) } },
    { request: requestOf(question, root), decided, consume: true, operationId: commandId },
  );
};
