import {
  type Address,
  AgentEvent,
  EscalationEvent,
  type LogEvent,
  McpEvent,
  PolicyEvent,
  SettingsEvent,
  ToolSettingsEvent,
  hashOf,
} from '@sharedos/contracts';
import type { StreamCategory, StreamId } from '@sharedos/event-store';
import type { z } from 'zod';

/** What of a namespace has a history beside its grants. */
export type NamespaceCategory = Exclude<StreamCategory, 'grant'>;

const EVENTS = {
  policy: PolicyEvent,
  settings: SettingsEvent,
  toolsettings: ToolSettingsEvent,
  agent: AgentEvent,
  escalation: EscalationEvent,
  mcp: McpEvent,
} as const satisfies Readonly<Record<NamespaceCategory, z.ZodType>>;

export type NamespaceEvent<Category extends NamespaceCategory> = z.infer<(typeof EVENTS)[Category]>;

/** Reads an event of a namespace's stream; `undefined` for one of a version or type that this release does not know. */
export const readNamespaceEvent =
  <Category extends NamespaceCategory>(category: Category) =>
  ({ schemaVersion, type, data }: LogEvent): NamespaceEvent<Category> | undefined => {
    if (schemaVersion !== 1) return undefined;
    const parsed = EVENTS[category].safeParse({ ...data, type });
    return parsed.success ? (parsed.data as NamespaceEvent<Category>) : undefined;
  };

/** The one stream of a namespace's policy, of its settings, or of its choice of tools. */
export const namespaceStream = (category: 'policy' | 'settings' | 'toolsettings', namespaceId: string): StreamId => ({
  category,
  namespaceId,
  id: category,
});

/** The one stream of an owner's MCP servers. By its hash: the longest ids would make a name that no stream can have. */
export const mcpStream = (namespaceId: string, owner: Address): StreamId => ({ category: 'mcp', namespaceId, id: hashOf(owner) });
