import type { Delivery } from '@sharedos/bus';
import {
  type AgentAddress,
  type CapabilityGrant,
  type PolicyStop,
  type Result,
  type StopDone,
  canonicalJson,
  ok,
  revisionOf,
  unavailable,
} from '@sharedos/contracts';
import type { Position } from '@sharedos/event-store';
import { adminRight } from './admin-right.ts';
import { type CommandRefusal, administer } from './administer.ts';
import type { RecordedAct } from './change-record.ts';
import { runGrantCommand } from './grant-command.ts';
import type { CommandPorts } from '../ports.ts';
import { runPolicyCommand } from './set-policy.ts';
import type { Commander } from './stream-command.ts';
import type { TurnAuthorities } from '../turns/turn-authorities.ts';

/** Grants that one answer revokes at most, and how many at once: a stop is answered in time, and sent again for the rest. */
const REVOKED_MAX = 2_000;
const AT_ONCE = 32;
const PAGE = 500;

/**
 * Stops an agent or the namespace: first the stop itself, which every turn opened from then on is held to, then, for an agent, the
 * live grants it holds. A stopped namespace keeps its grants: they are everybody's, and nothing can be done with them.
 *
 * Sent again, it goes on where it ended: what is stopped stays stopped, and what is revoked is revoked.
 */
export const stopTarget = (ports: CommandPorts, turns: TurnAuthorities, revokedMax: number = REVOKED_MAX) => {
  const mayManage = adminRight(ports, turns);
  return (body: PolicyStop, delivery: Delivery) => {
    const { commandId, target, reason } = body;
    return administer<StopDone>(ports, delivery, { commandId, about: { area: 'policy' }, body }, async (by) => {
      const right = await mayManage(delivery, by.principal, { area: 'policy', action: 'stop', commandId });
      if (!right.ok) return right;
      const stopped = await runPolicyCommand(ports, delivery, by, { type: 'Stop', target, reason, by: by.principal, at: by.at });
      if (!stopped.ok) return stopped;
      const { state: policy, position, acts } = stopped.value;
      if (target.kind === 'namespace') {
        const revision = revisionOf(ports.store.storeId, position);
        return ok({ value: { policy, revision, revokedNow: 0, complete: true }, acts });
      }
      const revoked = await revokeHeld(ports, delivery, by, target.agent, { after: position, reason, revokedMax });
      if (!revoked.ok) return revoked;
      const { acts: revocations, upTo, complete } = revoked.value;
      const value = { policy, revision: revisionOf(ports.store.storeId, upTo), revokedNow: revocations.length, complete };
      return ok({ value, acts: [...acts, ...revocations] });
    });
  };
};

interface Revoked {
  readonly acts: readonly RecordedAct[];
  readonly upTo: Position;
  readonly complete: boolean;
}

/** Revokes what an agent holds and is live, once this replica has seen everything up to the stop. */
const revokeHeld = async (
  ports: CommandPorts,
  delivery: Delivery,
  by: Commander,
  agent: AgentAddress,
  { after: stoppedAt, reason, revokedMax }: { readonly after: Position; readonly reason: string; readonly revokedMax: number },
): Promise<Result<Revoked, CommandRefusal>> => {
  const { fold, limits } = ports;
  const reached = await fold.until(stoppedAt, limits.deadlineMs);
  if (!reached.ok) return unavailable(reached.error.reason);
  const acts: RecordedAct[] = [];
  let upTo = stoppedAt;
  const revoke = async ({ id }: CapabilityGrant): Promise<Result<void, CommandRefusal>> => {
    const named = canonicalJson([by.commandId, 'revoke', id]);
    const command = { type: 'RevokeGrant', grantId: id, requestedBy: by.principal, at: by.at, reason, asOperator: true } as const;
    const ran = await runGrantCommand(ports.store, delivery, { ...by, grantId: id, named }, command);
    if (!ran.ok) return ran;
    acts.push(...ran.value.acts);
    upTo = Math.max(upTo, ran.value.position);
    return ok(undefined);
  };
  for (let after: string | undefined; ;) {
    const page = fold.index.list(delivery.namespaceId, 'subject', agent, { limit: PAGE, after }, { state: 'live' }, by.at);
    for (let first = 0; first < page.grants.length;) {
      const room = revokedMax - acts.length;
      if (room <= 0) return ok({ acts, upTo, complete: false });
      const some = page.grants.slice(first, first + Math.min(AT_ONCE, room));
      first += some.length;
      const outcomes = await Promise.all(some.map(revoke));
      const failed = outcomes.find((outcome) => !outcome.ok);
      if (failed !== undefined && !failed.ok) return failed;
    }
    after = page.next;
    if (after === undefined) return ok({ acts, upTo, complete: true });
  }
};
