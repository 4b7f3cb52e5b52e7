import { type AuditEvent, type LogEvent, type ResourceRef, type Revision, addressKey, canonicalJson, instantOf } from '@sharedos/contracts';
import { type StreamCategory, type StreamId, eventIdOf } from '@sharedos/event-store';
import { type AdminAct, adminChanged } from '@sharedos/kernel';

/** An event of the log, and where it stands. */
export interface RecordedAct {
  readonly stream: StreamId;
  readonly event: LogEvent;
  readonly revision: Revision;
}

/** The parts of the management plane, as resources whose grants open them. */
export const ADMIN_AREAS = ['policy', 'settings', 'agents', 'tools', 'authority', 'turns', 'ledger', 'escalations'] as const;
export type AdminArea = (typeof ADMIN_AREAS)[number];

export const ADMIN_NAMESPACE = 'sharedos.admin';

const AREAS: Partial<Record<StreamCategory, AdminArea>> = {
  policy: 'policy',
  settings: 'settings',
  toolsettings: 'tools',
  agent: 'agents',
  escalation: 'escalations',
  mcp: 'tools',
};
const COMMANDS: Readonly<Record<string, string>> = {
  GrantIssued: 'grant.issue',
  GrantRevoked: 'grant.revoke',
  PolicySet: 'policy.set',
  Stopped: 'policy.stop',
  Resumed: 'policy.resume',
  SettingsSet: 'settings.set',
  ToolNamespacesSet: 'tools.update',
  McpServerAdded: 'mcp.add',
  McpServerApproved: 'mcp.approve',
  McpToolsChanged: 'mcp.changed',
  McpServerRemoved: 'mcp.remove',
  AgentRegistered: 'agent.register',
  AgentConsented: 'agent.register',
  AgentWithdrawn: 'agent.withdraw',
  EscalationApproved: 'escalation.resolve',
  EscalationNarrowed: 'escalation.resolve',
  EscalationRefused: 'escalation.resolve',
  EscalationWithdrawn: 'escalation.resolve',
};

/**
 * The record that a change of the management plane makes, told from its event alone: whoever writes it, and however often, it is
 * the same record under the same id. So the log is where a record comes from that could not be written when its change was made.
 *
 * @returns `undefined` for an event whose act is recorded elsewhere.
 */
export const changeRecord = ({ stream, event, revision }: RecordedAct): AuditEvent | undefined => {
  const { namespaceId, category, id } = stream;
  const { eventId, principal, correlationId, causationId, data } = event;
  const derived = event.type === 'GrantIssued' && (data as { grant?: { parentGrantId?: string } }).grant?.parentGrantId !== undefined;
  const command = derived ? 'grant.derive' : COMMANDS[event.type];
  const area = AREAS[category];
  if (command === undefined || (category !== 'grant' && area === undefined)) return undefined;
  const resource: ResourceRef | undefined = area && { namespace: ADMIN_NAMESPACE, path: [area] };
  const act: AdminAct = {
    // The id of an event names a command; one command may have done something in several streams.
    id: eventIdOf({
      namespaceId,
      principal: addressKey(principal),
      verb: 'admin.changed',
      commandId: canonicalJson([category, id, eventId]),
      index: 0,
    }),
    at: instantOf(event.at) ?? 0,
    namespaceId,
    principal,
    traceId: correlationId,
    command,
    commandId: causationId,
    grantId: category === 'grant' ? id : undefined,
    resource,
    about: aboutOf(category, id, data),
    place: { revision },
  };
  return adminChanged(act);
};

const aboutOf = (category: StreamCategory, id: string, data: LogEvent['data']): string | undefined => {
  if (category === 'mcp') return (data as { readonly server?: string }).server;
  return category === 'agent' || category === 'escalation' ? id : undefined;
};
