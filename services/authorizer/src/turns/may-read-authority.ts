import type { Delivery } from '@sharedos/bus';
import { type Address, type ProtocolError, type Reply, type Result, ok, sameAddress } from '@sharedos/contracts';
import { invariant } from '@sharedos/kernel';
import { adminRight } from '../changes/admin-right.ts';
import { administer } from '../changes/administer.ts';
import type { CommandPorts } from '../ports.ts';
import { readId } from '../changes/set-policy.ts';
import type { TurnAuthorities } from './turn-authorities.ts';

export interface Reading {
  /** Whose resources the question is about. */
  readonly owner: Address;
  readonly body: unknown;
}

/**
 * Answers a question about who holds what over somebody's resources: to that owner, and to whoever may read the authority of the
 * namespace. Anybody else is refused, and the refusal is on record.
 */
export const mayReadAuthority = <Value>(ports: CommandPorts, turns: TurnAuthorities) => {
  const mayManage = adminRight(ports, turns);
  return async (delivery: Delivery, { owner, body }: Reading, read: () => Promise<Result<Value, ProtocolError>>): Promise<Reply<Value>> => {
    const { principal } = delivery;
    invariant(principal !== undefined, 'authority is read by principals');
    if (!sameAddress(owner, principal)) {
      const command = { commandId: readId(ports), about: { area: 'authority' }, body } as const;
      const right = await administer(ports, delivery, command, async ({ commandId }) => {
        const may = await mayManage(delivery, principal, { area: 'authority', action: 'read', commandId });
        return may.ok ? ok({ value: undefined, acts: [] }) : may;
      });
      if (!right.ok) return right;
    }
    const answer = await read();
    return answer.ok ? { ok: true, value: answer.value } : answer;
  };
};
