import type { Delivery } from '@sharedos/bus';
import { type SettingsAt, type SettingsGet, type SettingsSetRequest, ok, revisionOf, unavailable } from '@sharedos/contracts';
import { namespaceSettings } from '@sharedos/kernel';
import { adminRight } from './admin-right.ts';
import { administer } from './administer.ts';
import { namespaceStream, readNamespaceEvent } from '../fold/namespace-events.ts';
import type { CommandPorts } from '../ports.ts';
import { readId } from './set-policy.ts';
import { runStreamCommand } from './stream-command.ts';
import type { TurnAuthorities } from '../turns/turn-authorities.ts';
import { upToDate } from '../turns/up-to-date.ts';

/** Changes settings of a namespace. Turns that are open keep those of their revision. */
export const setSettings = (ports: CommandPorts, turns: TurnAuthorities) => {
  const mayManage = adminRight(ports, turns);
  return (body: SettingsSetRequest, delivery: Delivery) => {
    const { commandId, settings, expectedVersion } = body;
    return administer<SettingsAt>(ports, delivery, { commandId, about: { area: 'settings' }, body }, async (by) => {
      const right = await mayManage(delivery, by.principal, { area: 'settings', action: 'write', commandId });
      if (!right.ok) return right;
      const stream = namespaceStream('settings', delivery.namespaceId);
      const asked = { stream, decider: namespaceSettings, parseEvent: readNamespaceEvent('settings') };
      const ran = await runStreamCommand(ports.store, delivery, by, asked, { type: 'SetSettings', settings, expectedVersion });
      if (!ran.ok) return ran;
      const { state, position, acts } = ran.value;
      return ok({ value: { ...state, revision: revisionOf(ports.store.storeId, position) }, acts });
    });
  };
};

/** The settings as of everything acknowledged before the call. */
export const getSettings = (ports: CommandPorts, turns: TurnAuthorities) => {
  const mayManage = adminRight(ports, turns);
  return (body: SettingsGet, delivery: Delivery) =>
    administer<SettingsAt>(
      ports,
      delivery,
      { commandId: readId(ports), about: { area: 'settings' }, body },
      async ({ principal, commandId }) => {
        const right = await mayManage(delivery, principal, { area: 'settings', action: 'read', commandId });
        if (!right.ok) return right;
        const here = await upToDate(ports);
        if (here === undefined) return unavailable('this replica could not catch up with the log in time');
        const { position, revision } = here;
        return ok({ value: { ...ports.fold.namespaces.settingsAt(delivery.namespaceId, position), revision }, acts: [] });
      },
    );
};
