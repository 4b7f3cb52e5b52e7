import type { Delivery } from '@sharedos/bus';
import { type GrantIssue, err } from '@sharedos/contracts';
import { composeRootGrant } from '@sharedos/kernel';
import { administer } from './administer.ts';
import { runGrantCommand } from './grant-command.ts';
import type { CommandPorts } from '../ports.ts';

/** Issues a root grant over the caller's own resources. An id is never used twice, not even after revocation. */
export const issueGrant = (ports: CommandPorts) => (body: GrantIssue, delivery: Delivery) => {
  const { commandId, grant: terms } = body;
  return administer(ports, delivery, { commandId, about: { grantId: terms.id }, body }, async ({ principal, at }) => {
    const grant = composeRootGrant(terms, { issuer: principal, namespaceId: delivery.namespaceId, at });
    if (!grant.ok) return err(grant.error);
    return runGrantCommand(
      ports.store,
      delivery,
      { commandId, grantId: terms.id, principal, at },
      { type: 'IssueGrant', grant: grant.value },
    );
  });
};
