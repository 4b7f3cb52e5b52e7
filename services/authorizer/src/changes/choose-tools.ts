import type { Delivery } from '@sharedos/bus';
import { type AuthorityTools, type ToolsChosen, ok, revisionOf } from '@sharedos/contracts';
import { toolSelection } from '@sharedos/kernel';
import { adminRight } from './admin-right.ts';
import { administer } from './administer.ts';
import { namespaceStream, readNamespaceEvent } from '../fold/namespace-events.ts';
import type { CommandPorts } from '../ports.ts';
import { runStreamCommand } from './stream-command.ts';
import type { TurnAuthorities } from '../turns/turn-authorities.ts';

/** Changes which tool namespaces are on. The service that asks names the principal whom the broker let publish its request. */
export const chooseTools = (ports: CommandPorts, turns: TurnAuthorities) => {
  const mayManage = adminRight(ports, turns);
  return (body: AuthorityTools, from: Delivery) => {
    const { commandId, by: principal, update, whenUnset } = body;
    const delivery: Delivery = { ...from, principal };
    return administer<ToolsChosen>(ports, delivery, { commandId, about: { area: 'tools' }, body }, async (by) => {
      const right = await mayManage(delivery, principal, { area: 'tools', action: 'write', commandId });
      if (!right.ok) return right;
      const stream = namespaceStream('toolsettings', delivery.namespaceId);
      const asked = { stream, decider: toolSelection, parseEvent: readNamespaceEvent('toolsettings') };
      const ran = await runStreamCommand(ports.store, delivery, by, asked, { type: 'UpdateToolNamespaces', update, whenUnset });
      if (!ran.ok) return ran;
      const { state, position, acts } = ran.value;
      return ok({ value: { enabled: [...(state.enabled ?? whenUnset)], revision: revisionOf(ports.store.storeId, position) }, acts });
    });
  };
};
