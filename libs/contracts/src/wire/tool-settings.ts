import { z } from 'zod';
import { ToolNamespaceSelection } from '../tool-namespaces.ts';

/** The tool namespaces that are on in an execution namespace, from then on. */
export const ToolNamespacesSet = z.strictObject({ type: z.literal('ToolNamespacesSet'), enabled: ToolNamespaceSelection });
export const ToolSettingsEvent = z.discriminatedUnion('type', [ToolNamespacesSet]);
export type ToolSettingsEvent = z.infer<typeof ToolSettingsEvent>;
