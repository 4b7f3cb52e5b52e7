import { z } from 'zod';
import { Address } from '../principals.ts';
import { ToolNamespaceSelection, ToolNamespaceUpdate } from '../tool-namespaces.ts';
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
