import type { Delivery } from '@sharedos/bus';
import { type AuthorityNamespace, type NamespaceFacts, type Reply, refused } from '@sharedos/contracts';
import type { Ports } from '../ports.ts';
import { upToDate } from './up-to-date.ts';

/** What a namespace is beside its grants, for services: limits to hold to, and under whom an agent answers messages. */
export const readNamespace =
  (ports: Ports) =>
  async ({ agentId }: AuthorityNamespace, { namespaceId }: Delivery): Promise<Reply<NamespaceFacts>> => {
    const here = await upToDate(ports);
    if (here === undefined) return refused('authority_unavailable', 'this replica could not catch up with the log in time', true);
    const { position, revision } = here;
    const { namespaces } = ports.fold;
    const { enabled } = namespaces.toolSelectionAt(namespaceId, position);
    const agent = agentId === undefined ? undefined : namespaces.agentAt(namespaceId, agentId, position);
    return {
      ok: true,
      value: {
        revision,
        settings: namespaces.settingsAt(namespaceId, position).settings,
        policyVersion: namespaces.policyAt(namespaceId, position).version,
        ...(enabled === undefined ? {} : { toolNamespaces: [...enabled] }),
        ...(agent === undefined ? {} : { agent }),
      },
    };
  };
