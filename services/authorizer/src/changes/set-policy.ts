import type { Delivery } from '@sharedos/bus';
import {
  type PolicyAt,
  type PolicyDocument,
  type PolicyGet,
  type PolicyResume,
  type PolicySetRequest,
  err,
  ok,
  revisionOf,
  unavailable,
} from '@sharedos/contracts';
import { type PolicyCommand, policy } from '@sharedos/kernel';
import { adminRight } from './admin-right.ts';
import { type Changed, administer } from './administer.ts';
import { namespaceStream, readNamespaceEvent } from '../fold/namespace-events.ts';
import type { CommandPorts } from '../ports.ts';
import { type Commander, runStreamCommand } from './stream-command.ts';
import type { TurnAuthorities } from '../turns/turn-authorities.ts';
import { upToDate } from '../turns/up-to-date.ts';

/** Decides one command on the policy of a namespace and appends what follows from it. */
export const runPolicyCommand = async (
  { store }: Pick<CommandPorts, 'store'>,
  delivery: Delivery,
  by: Commander,
  command: PolicyCommand,
) => {
  const stream = namespaceStream('policy', delivery.namespaceId);
  return runStreamCommand(store, delivery, by, { stream, decider: policy, parseEvent: readNamespaceEvent('policy') }, command);
};

/** Replaces the policy. One that its language does not understand is refused: it would forbid everything. */
export const setPolicy = (ports: CommandPorts, turns: TurnAuthorities) => {
  const mayManage = adminRight(ports, turns);
  return (body: PolicySetRequest, delivery: Delivery) => {
    const { commandId, document, expectedVersion } = body;
    return administer<PolicyAt>(ports, delivery, { commandId, about: { area: 'policy' }, body }, async (by) => {
      const right = await mayManage(delivery, by.principal, { area: 'policy', action: 'write', commandId });
      if (!right.ok) return right;
      const fault = faultOf(document, turns);
      if (fault !== undefined) return err({ code: 'policy_invalid', why: fault });
      const ran = await runPolicyCommand(ports, delivery, by, { type: 'SetPolicy', document, expectedVersion });
      return ran.ok ? ok(changedTo(ports, ran.value)) : ran;
    });
  };
};

/** Ends a stop. What it revoked stays revoked. */
export const resumeStopped = (ports: CommandPorts, turns: TurnAuthorities) => {
  const mayManage = adminRight(ports, turns);
  return (body: PolicyResume, delivery: Delivery) => {
    const { commandId, target, reason } = body;
    return administer<PolicyAt>(ports, delivery, { commandId, about: { area: 'policy' }, body }, async (by) => {
      const right = await mayManage(delivery, by.principal, { area: 'policy', action: 'stop', commandId });
      if (!right.ok) return right;
      const ran = await runPolicyCommand(ports, delivery, by, { type: 'Resume', target, reason });
      return ran.ok ? ok(changedTo(ports, ran.value)) : ran;
    });
  };
};

/** The policy as of everything acknowledged before the call. */
export const getPolicy = (ports: CommandPorts, turns: TurnAuthorities) => {
  const mayManage = adminRight(ports, turns);
  return (body: PolicyGet, delivery: Delivery) =>
    administer<PolicyAt>(
      ports,
      delivery,
      { commandId: readId(ports), about: { area: 'policy' }, body },
      async ({ principal, commandId }) => {
        const right = await mayManage(delivery, principal, { area: 'policy', action: 'read', commandId });
        if (!right.ok) return right;
        const here = await upToDate(ports);
        if (here === undefined) return unavailable('this replica could not catch up with the log in time');
        const { position, revision } = here;
        return ok({ value: { policy: ports.fold.namespaces.policyAt(delivery.namespaceId, position), revision }, acts: [] });
      },
    );
};

/** Stands for the command id that a reading does not have: two readings are two, and each that was refused is on record. */
export const readId = ({ clock }: Pick<CommandPorts, 'clock'>): string => `read-${clock()}`;

const faultOf = (document: PolicyDocument, { policies: { languages } }: TurnAuthorities): string | undefined => {
  const language = languages.find((known) => known.speaks(document.language));
  if (language === undefined) return `no language ${document.language} is installed`;
  const compiled = language.compile(document);
  return compiled.ok ? undefined : compiled.error;
};

const changedTo = (
  { store }: Pick<CommandPorts, 'store'>,
  { state, position, acts }: { readonly state: PolicyAt['policy']; readonly position: number; readonly acts: Changed<PolicyAt>['acts'] },
): Changed<PolicyAt> => ({ value: { policy: state, revision: revisionOf(store.storeId, position) }, acts });
