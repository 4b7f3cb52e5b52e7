import { type ToolNamespaceUpdate, type ToolSettingsEvent, canonicalJson } from '@sharedos/contracts';
import { type Decider, accept, refuse } from './decider.ts';
import { applyToolNamespaceUpdate } from './tool-namespace-settings.ts';

export interface ToolSelectionCommand {
  readonly type: 'UpdateToolNamespaces';
  readonly update: ToolNamespaceUpdate;
  /** What is on as long as nothing was ever chosen here: the operator's own setting. */
  readonly whenUnset: readonly string[];
}

/** `enabled` is absent as long as nothing was chosen. */
export interface ToolSelectionState {
  readonly enabled?: readonly string[];
  readonly version: number;
}

export type ToolSelectionRefusal = { readonly code: 'too_many_tool_namespaces' };

const SELECTED_MAX = 256;

/** Which tool namespaces are on in an execution namespace. */
export const toolSelection: Decider<ToolSelectionState, ToolSelectionCommand, ToolSettingsEvent, ToolSelectionRefusal> = {
  initial: { version: 0 },
  decide: ({ update, whenUnset }, { enabled: before }) => {
    const enabled = applyToolNamespaceUpdate(before ?? whenUnset, update);
    if (enabled.length > SELECTED_MAX) return refuse({ code: 'too_many_tool_namespaces' });
    if (before !== undefined && canonicalJson(enabled) === canonicalJson(before)) return accept([]);
    return accept([{ type: 'ToolNamespacesSet', enabled }]);
  },
  evolve: ({ version }, { enabled }) => ({ enabled, version: version + 1 }),
};
