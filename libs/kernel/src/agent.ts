import {
  type Address,
  type AgentEvent,
  type AgentState,
  type AgentTerms,
  type Instant,
  canonicalJson,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';
import { type Decider, accept, invariant, refuse, unreachable } from './decider.ts';
import { type VersionConflict, versionConflict } from './version-conflict.ts';

interface Asked {
  readonly by: Address;
  /** Whether the caller may manage agents, as the management plane decided. */
  readonly managesAgents: boolean;
  readonly at: Instant;
}

export type AgentCommand =
  | ({ readonly type: 'RegisterAgent'; readonly terms: AgentTerms; readonly expectedVersion?: number | undefined } & Asked)
  | ({ readonly type: 'WithdrawAgent'; readonly reason?: string | undefined } & Asked);

export type AgentRefusal = VersionConflict | { readonly code: 'not_an_administrator' | 'agent_not_found' };

/** `undefined`: nobody registered it. */
export type AgentRegistration = AgentState | undefined;

/**
 * The registration of an agent. Terms are stated by whoever manages agents; they take effect once the authority and the owner that
 * they name have both agreed to them, since from then on a message from anybody starts turns under that authority, over the
 * resources of that owner.
 */
export const agent: Decider<AgentRegistration, AgentCommand, AgentEvent, AgentRefusal> = {
  initial: undefined,
  decide: (command, state) => {
    const { by, managesAgents, at } = command;
    if (command.type === 'WithdrawAgent') {
      // Whom it does not concern does not learn that it is there.
      if (state === undefined || !(managesAgents || isParty(by, state.terms))) return refuse({ code: 'agent_not_found' });
      if (state.status === 'withdrawn') return accept([]);
      const { reason } = command;
      return accept([{ type: 'AgentWithdrawn', by, withdrawnAt: timestampOf(at), ...(reason === undefined ? {} : { reason }) }]);
    }
    const { terms, expectedVersion } = command;
    const stands = state !== undefined && state.status !== 'withdrawn' && canonicalJson(state.terms) === canonicalJson(terms);
    const agrees = stands && isParty(by, terms);
    if (!managesAgents && !agrees) return refuse({ code: 'not_an_administrator' });
    const conflict = versionConflict(expectedVersion, state?.version ?? 0);
    if (conflict !== undefined) return refuse(conflict);
    if (!stands)
      return accept([{ type: 'AgentRegistered', terms, consents: isParty(by, terms) ? [by] : [], registeredAt: timestampOf(at) }]);
    if (!agrees || state.consents.some((address) => sameAddress(address, by))) return accept([]);
    return accept([{ type: 'AgentConsented', by, consentedAt: timestampOf(at) }]);
  },
  evolve: (state, event) => {
    const version = (state?.version ?? 0) + 1;
    switch (event.type) {
      case 'AgentRegistered': {
        const { terms, consents, registeredAt } = event;
        return { terms, consents, status: statusOf(terms, consents), version, at: registeredAt };
      }
      case 'AgentConsented': {
        invariant(state !== undefined, 'an agent is registered before anybody agrees to it');
        const consents = [...state.consents, event.by];
        return { ...state, consents, status: statusOf(state.terms, consents), version, at: event.consentedAt };
      }
      case 'AgentWithdrawn':
        invariant(state !== undefined, 'an agent is registered before it is withdrawn');
        return { ...state, consents: [], status: 'withdrawn', version, at: event.withdrawnAt };
      default:
        return unreachable(event);
    }
  },
};

export const isParty = (address: Address, { authority, owner }: AgentTerms): boolean =>
  sameAddress(address, authority) || sameAddress(address, owner);

const statusOf = ({ authority, owner }: AgentTerms, consents: readonly Address[]): AgentState['status'] =>
  [authority, owner].every((party) => consents.some((address) => sameAddress(address, party))) ? 'active' : 'proposed';
