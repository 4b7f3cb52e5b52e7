import type { Delivery } from '@sharedos/bus';
import {
  type AccessContext,
  type Address,
  AuthorityTools,
  AuthorityToolsReply,
  type Reply,
  type Revision,
  type ToolNamespacesAt,
  type ToolsNamespaces,
  type ToolsUpdate,
  namespaceSubject,
  refused,
  timestampOf,
} from '@sharedos/contracts';
import { ADMIN_PURPOSE, type AuditMark, invariant, toolNamespaceCatalogListed, toolNamespaceSelectionUpdated } from '@sharedos/kernel';
import { mayAdminister } from './administer-turns.ts';
import { familiesOn, registryFor } from './context-tools.ts';
import type { Ports } from './ports.ts';

const ANSWER_MS = 5_000;

/** Which families of tools there are and which are on. Management data: an agent is told its own tools, never this. */
export const readToolNamespaces =
  (ports: Ports) =>
  async (_: ToolsNamespaces, delivery: Delivery): Promise<Reply<ToolNamespacesAt>> => {
    const { namespaceId, principal } = delivery;
    invariant(principal !== undefined, 'tool namespaces are read by principals');
    const right = await mayAdminister(ports, { ...delivery, principal }, { area: 'tools', action: 'read' }, 'tool namespaces');
    if (!right.ok) return right;
    const facts = await ports.authority.namespace(namespaceId);
    if (!facts.ok) return refused(facts.error.code, 'it could not be found out which tools are on; try again', true);
    const { revision, toolNamespaces } = facts.value;
    const answer = await catalogAt(ports, namespaceId, principal, toolNamespaces, revision);
    if (!answer.ok) return answer;
    const { summary } = answer.value.catalog;
    const recorded = await ports.audit(toolNamespaceCatalogListed(markOf(ports, delivery, principal, revision), summary));
    return recorded.ok ? answer : refused('audit_unavailable', 'the reading could not be recorded; try again', true);
  };

/** Switches families of tools on and off. Whether the caller may, and what stands now, the authorizer decides on the log. */
export const updateToolNamespaces =
  (ports: Ports) =>
  async ({ commandId, update }: ToolsUpdate, delivery: Delivery): Promise<Reply<ToolNamespacesAt>> => {
    const { namespaceId, principal } = delivery;
    invariant(principal !== undefined, 'tool namespaces are changed by principals');
    const body = { commandId, by: principal, update, whenUnset: [...ports.rules.toolNamespaces] };
    const answered = await ports.bus.request(namespaceSubject('authority.tools', namespaceId), AuthorityTools, body, AuthorityToolsReply, {
      timeoutMs: ANSWER_MS,
    });
    if (!answered.ok) return refused('authority_unavailable', 'no authorizer answered; send the same command again', true);
    if (!answered.value.ok) return answered.value;
    const { enabled, revision } = answered.value.value;
    const answer = await catalogAt(ports, namespaceId, principal, enabled, revision);
    const on = answer.ok ? answer.value.catalog.namespaces.filter((family) => family.enabled).map(({ namespace }) => namespace) : enabled;
    // It has happened: a record that is late is reported by who writes it, and changes no answer.
    await ports.audit(toolNamespaceSelectionUpdated(markOf(ports, delivery, principal, revision), on));
    return answer;
  };

const catalogAt = async (
  ports: Ports,
  namespaceId: string,
  owner: Address,
  chosen: readonly string[] | undefined,
  revision: Revision,
): Promise<Reply<ToolNamespacesAt>> => {
  const known = await registryFor(ports, { namespaceId, owner });
  if (!known.ok) return refused(known.error, 'it could not be found out which tools there are; ask again', true);
  return { ok: true, value: { catalog: known.value.namespaceCatalog(familiesOn(ports.rules.toolNamespaces, chosen)), revision } };
};

const markOf = ({ ids, clock }: Ports, { namespaceId, traceId = ids() }: Delivery, principal: Address, revision: Revision): AuditMark => {
  const at = clock();
  const context: AccessContext = {
    namespaceId,
    actor: principal,
    authority: principal,
    owner: principal,
    purpose: ADMIN_PURPOSE,
    traceId,
    enabledToolNamespaces: [],
    now: timestampOf(at),
  };
  return { id: ids(), at, context, place: { revision } };
};
