import { z } from 'zod';
import { ToolNamespaceSelection } from '../tool-namespaces.ts';
import { NameId } from '../scalars.ts';
import { AgentState } from './agent.ts';
import { ChangeCount } from './management.ts';
import { Revision } from './revision.ts';
import { NamespaceSettings } from './settings.ts';
import { replyMessage, wireMessage } from './wire.ts';

/** Asks what a namespace is beside its grants, as of everything acknowledged before: for services, before a turn is opened. */
export const AuthorityNamespace = wireMessage('authority.namespace/1', z.strictObject({ agentId: NameId.optional() }));
export type AuthorityNamespace = z.infer<typeof AuthorityNamespace.schema>;

/** `toolNamespaces` is absent as long as nobody chose; `agent` where none was asked for or registered. */
export const NamespaceFacts = z.strictObject({
  revision: Revision,
  settings: NamespaceSettings,
  policyVersion: ChangeCount,
  toolNamespaces: ToolNamespaceSelection.optional(),
  agent: AgentState.optional(),
});
export type NamespaceFacts = z.infer<typeof NamespaceFacts>;
export const AuthorityNamespaceReply = replyMessage('authority.namespace.reply/1', NamespaceFacts);
