import { randomUUID } from 'node:crypto';
import {
  type Result,
  type ToolNamespaceUpdate,
  type ToolNamespacesAt,
  ToolNamespacesReply,
  ToolsList,
  ToolsNamespaces,
  type ToolsPage,
  ToolsPageReply,
  ToolsUpdate,
} from '@sharedos/contracts';
import type { ClientError } from './client-error.ts';
import { type Session, ask } from './session.ts';

/** Which tools to list: those that the principal may discover, or an agent that exercises its grants. */
export type ToolsAsked = ToolsList;

export interface ToolCommands {
  /** One page of tools, by name; `next` is the `after` of the page that follows. */
  list(asked: ToolsAsked): Promise<Result<ToolsPage, ClientError>>;
  /** All families of tools and which are on. For whoever administers the tools of the namespace. */
  namespaces(): Promise<Result<ToolNamespacesAt, ClientError>>;
  /** Switches families on and off. The answer is what took effect: the operator may allow less. */
  update(update: ToolNamespaceUpdate, commandId?: string): Promise<Result<ToolNamespacesAt, ClientError>>;
}

export const toolCommands = (session: Session): ToolCommands => ({
  list: (asked) => ask(session, 'tools.list', ToolsList, asked, ToolsPageReply),
  namespaces: () => ask(session, 'tools.namespaces', ToolsNamespaces, {}, ToolNamespacesReply),
  update: (update, commandId = randomUUID()) => ask(session, 'tools.update', ToolsUpdate, { commandId, update }, ToolNamespacesReply),
});
