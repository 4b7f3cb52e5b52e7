import { z } from 'zod';
import { bounded } from '../bounded.ts';
import { Address, AgentAddress } from '../principals.ts';
import { Hash, Id, ToolName } from '../scalars.ts';
import { ToolNamespaceCatalog, ToolNamespaceSelection, ToolNamespaceUpdate } from '../tool-namespaces.ts';
import { PublishedTool } from '../tools.ts';
import { CommandId } from './management.ts';
import { Revision } from './revision.ts';
import { replyMessage, wireMessage } from './wire.ts';

/** The tool namespaces that are on in an execution namespace, from then on. */
export const ToolNamespacesSet = z.strictObject({ type: z.literal('ToolNamespacesSet'), enabled: ToolNamespaceSelection });
export const ToolSettingsEvent = z.discriminatedUnion('type', [ToolNamespacesSet]);
export type ToolSettingsEvent = z.infer<typeof ToolSettingsEvent>;

/**
 * Changes which tool namespaces are on, for the principal `by` that asked the sending service: whether it may is decided here.
 * `whenUnset` is what is on as long as nobody chose.
 */
export const AuthorityTools = wireMessage(
  'authority.tools/1',
  z.strictObject({ commandId: CommandId, by: Address, update: ToolNamespaceUpdate, whenUnset: ToolNamespaceSelection }),
);
export type AuthorityTools = z.infer<typeof AuthorityTools.schema>;

export const ToolsChosen = z.strictObject({ enabled: ToolNamespaceSelection, revision: Revision });
export type ToolsChosen = z.infer<typeof ToolsChosen>;
export const AuthorityToolsReply = replyMessage('authority.tools.reply/1', ToolsChosen);

/** Asks which families of tools there are and which are on: for whoever administers the tools of the namespace, never for a model. */
export const ToolsNamespaces = wireMessage('tools.namespaces/1', z.strictObject({}));
export type ToolsNamespaces = z.infer<typeof ToolsNamespaces.schema>;

/** Switches families of tools on and off for the namespace. */
export const ToolsUpdate = wireMessage('tools.update/1', z.strictObject({ commandId: CommandId, update: ToolNamespaceUpdate }));
export type ToolsUpdate = z.infer<typeof ToolsUpdate.schema>;

export const ToolNamespacesAt = z.strictObject({ catalog: ToolNamespaceCatalog, revision: Revision });
export type ToolNamespacesAt = z.infer<typeof ToolNamespacesAt>;
export const ToolNamespacesReply = replyMessage('tools.namespaces.reply/1', ToolNamespacesAt);

/**
 * Asks which tools the caller may discover now, or an agent that exercises its grants. `after` is the name that the page before
 * ended with.
 */
export const ToolsList = wireMessage(
  'tools.list/1',
  z.strictObject({
    purpose: Id,
    agent: AgentAddress.optional(),
    owner: Address.optional(),
    after: ToolName.optional(),
    limit: z.int().min(1).max(512).optional(),
  }),
);
export type ToolsList = z.infer<typeof ToolsList.schema>;

/** One page, by name. `catalogHash` is of all of them; `next` is there as long as more follow. */
export const ToolsPage = z.strictObject({
  tools: bounded(z.array(PublishedTool), 0, 512),
  total: z.int().min(0),
  catalogHash: Hash,
  revision: Revision,
  next: ToolName.optional(),
});
export type ToolsPage = z.infer<typeof ToolsPage>;
export const ToolsPageReply = replyMessage('tools.list.reply/1', ToolsPage);
