import type { Delivery } from '@sharedos/bus';
import type { GrantRevoke } from '@sharedos/contracts';
import { administer } from './administer.ts';
import { runGrantCommand } from './grant-command.ts';
import type { CommandPorts } from '../ports.ts';

/** Revokes a grant, for its issuer. Once this is answered, no turn opens that still uses it. Revoking twice changes nothing. */
export const revokeGrant = (ports: CommandPorts) => (body: GrantRevoke, delivery: Delivery) => {
  const { commandId, grantId, reason } = body;
  return administer(ports, delivery, { commandId, about: { grantId }, body }, ({ principal, at }) =>
    runGrantCommand(
      ports.store,
      delivery,
      { commandId, grantId, principal, at },
      { type: 'RevokeGrant', grantId, requestedBy: principal, at, reason },
    ),
  );
};
