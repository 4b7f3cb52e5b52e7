import type { Delivery } from '@sharedos/bus';
import {
  type AgentAt,
  type AgentGet,
  type AgentRegister,
  type AgentWithdraw,
  type Result,
  err,
  ok,
  revisionOf,
  sameAddress,
  unavailable,
} from '@sharedos/contracts';
import { type AgentCommand, agent, invariant, isParty } from '@sharedos/kernel';
import { adminRight } from './admin-right.ts';
import { type Changed, type CommandRefusal, administer } from './administer.ts';
import { readNamespaceEvent } from '../fold/namespace-events.ts';
import type { CommandPorts } from '../ports.ts';
import { readId } from './set-policy.ts';
import { type Commander, runStreamCommand } from './stream-command.ts';
import type { TurnAuthorities } from '../turns/turn-authorities.ts';
import { upToDate } from '../turns/up-to-date.ts';

/** States the terms of an agent, or agrees to those that stand. Who may do which is the rule's to say. */
export const registerAgent = (ports: CommandPorts, turns: TurnAuthorities) => {
  const run = runAgentCommand(ports, turns);
  return (body: AgentRegister, delivery: Delivery) => {
    const { commandId, terms, expectedVersion } = body;
    return administer<AgentAt>(ports, delivery, { commandId, about: { area: 'agents', name: terms.agentId }, body }, (by) =>
      run(delivery, by, terms.agentId, (asked) => ({ type: 'RegisterAgent', terms, expectedVersion, ...asked })),
    );
  };
};

/** Takes a registration back; from then on no message starts a turn under it. */
export const withdrawAgent = (ports: CommandPorts, turns: TurnAuthorities) => {
  const run = runAgentCommand(ports, turns);
  return (body: AgentWithdraw, delivery: Delivery) => {
    const { commandId, agentId, reason } = body;
    return administer<AgentAt>(ports, delivery, { commandId, about: { area: 'agents', name: agentId }, body }, (by) =>
      run(delivery, by, agentId, (asked) => ({ type: 'WithdrawAgent', reason, ...asked })),
    );
  };
};

/** The registration of an agent, for those it concerns and for whoever manages agents. */
export const getAgent = (ports: CommandPorts, turns: TurnAuthorities) => {
  const mayManage = adminRight(ports, turns);
  return (body: AgentGet, delivery: Delivery) => {
    const { agentId } = body;
    return administer<AgentAt>(
      ports,
      delivery,
      { commandId: readId(ports), about: { area: 'agents', name: agentId }, body },
      async ({ principal, commandId }) => {
        const here = await upToDate(ports);
        if (here === undefined) return unavailable('this replica could not catch up with the log in time');
        const found = ports.fold.namespaces.agentAt(delivery.namespaceId, agentId, here.position);
        const concerns = found !== undefined && (isParty(principal, found.terms) || sameAddress(principal, { kind: 'agent', agentId }));
        if (!concerns) {
          const right = await mayManage(delivery, principal, { area: 'agents', action: 'read', commandId });
          if (!right.ok)
            return 'reason' in right.error || right.error.code === 'audit_unavailable' ? right : err({ code: 'agent_not_found' });
        }
        return found === undefined ? err({ code: 'agent_not_found' }) : ok({ value: { agent: found, revision: here.revision }, acts: [] });
      },
    );
  };
};

/**
 * Decides first what the caller may do as itself, as the authority or the owner of the agent; only where that is not enough is it
 * asked whether it manages agents.
 */
const runAgentCommand = (ports: CommandPorts, turns: TurnAuthorities) => {
  const mayManage = adminRight(ports, turns);
  return async (
    delivery: Delivery,
    by: Commander,
    agentId: string,
    command: (asked: Pick<AgentCommand, 'by' | 'at' | 'managesAgents'>) => AgentCommand,
  ): Promise<Result<Changed<AgentAt>, CommandRefusal>> => {
    const stream = { category: 'agent', namespaceId: delivery.namespaceId, id: agentId } as const;
    const asked = { stream, decider: agent, parseEvent: readNamespaceEvent('agent') };
    const run = (managesAgents: boolean) =>
      runStreamCommand(ports.store, delivery, by, asked, command({ by: by.principal, at: by.at, managesAgents }));
    let ran = await run(false);
    if (!ran.ok && 'code' in ran.error && NEEDS_RIGHT.has(ran.error.code)) {
      const right = await mayManage(delivery, by.principal, { area: 'agents', action: 'write', commandId: by.commandId });
      if (right.ok) ran = await run(true);
      else if ('reason' in right.error || right.error.code === 'audit_unavailable') return right;
    }
    if (!ran.ok) return ran;
    const { state, position, acts } = ran.value;
    invariant(state !== undefined, 'a command that was accepted leaves a registration behind');
    return ok({ value: { agent: state, revision: revisionOf(ports.store.storeId, position) }, acts });
  };
};

const NEEDS_RIGHT: ReadonlySet<string> = new Set(['not_an_administrator', 'agent_not_found']);
