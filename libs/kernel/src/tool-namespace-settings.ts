import { type AccessContext, type ToolNamespaceUpdate, byCodeUnit } from '@sharedos/contracts';

/**
 * The host's store of enabled tool namespaces. It applies a patch atomically on fresh state and answers what took effect; it
 * may narrow by its own policy and never widens.
 */
export interface ToolNamespaceSettingsStore {
  applyUpdate(context: AccessContext, update: ToolNamespaceUpdate, signal: AbortSignal): Promise<readonly string[]>;
}

/** The standard patch: (current ∪ enable) − disable, each once and sorted. Applying it twice changes nothing. */
export const applyToolNamespaceUpdate = (current: readonly string[], { enable = [], disable = [] }: ToolNamespaceUpdate): string[] =>
  [...new Set([...current, ...enable])].filter((name) => !disable.includes(name)).sort(byCodeUnit);
