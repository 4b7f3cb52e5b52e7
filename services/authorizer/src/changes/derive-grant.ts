import type { Delivery } from '@sharedos/bus';
import { type CapabilityGrant, type GrantDerive, type Result, err, ok } from '@sharedos/contracts';
import { composeDerivedGrant, grant as grantDecider, invariant } from '@sharedos/kernel';
import { type CommandRefusal, administer } from './administer.ts';
import { grantStream, readGrantEvent, runGrantCommand } from './grant-command.ts';
import type { CommandPorts, Ports } from '../ports.ts';

/**
 * Passes on part of a grant that the caller holds. A revocation of the parent that races this is not lost: the chain is
 * validated again at every use, and so is whether a bounded grant may be passed on, which the settings as this replica knows them
 * say here.
 */
export const deriveGrant = (ports: CommandPorts) => (body: GrantDerive, delivery: Delivery) => {
  const { commandId, parentGrantId, grant: terms } = body;
  return administer(ports, delivery, { commandId, about: { grantId: terms.id }, body }, async ({ principal, at }) => {
    const parent = await readGrant(ports.store, delivery.namespaceId, parentGrantId);
    if (!parent.ok) return parent;
    const { sharedBudgets } = ports.fold.namespaces.settingsAt(delivery.namespaceId, Infinity).settings;
    const grant = composeDerivedGrant(parent.value, terms, { requestedBy: principal, at, sharedBudgets });
    if (!grant.ok) return err(grant.error);
    return runGrantCommand(
      ports.store,
      delivery,
      { commandId, grantId: terms.id, principal, at },
      { type: 'IssueGrant', grant: grant.value },
    );
  });
};

/** A grant as its own stream tells it, revoked or not. */
const readGrant = async (store: Ports['store'], namespaceId: string, grantId: string): Promise<Result<CapabilityGrant, CommandRefusal>> => {
  const history = await store.read(grantStream(namespaceId, grantId));
  if (!history.ok) return history;
  const state = history.value.events
    .map(({ event }) => readGrantEvent(event))
    .reduce((before, event) => {
      invariant(event !== undefined, 'every event of the stream can be read');
      return grantDecider.evolve(before, event);
    }, grantDecider.initial);
  return state.status === 'absent' ? err({ code: 'grant_not_found' }) : ok(state.grant);
};
