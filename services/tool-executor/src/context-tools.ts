import type { AccessContext } from '@sharedos/contracts';
import type { ToolHandler, ToolRegistry } from '@sharedos/tools';

export interface ContextToolsPorts {
  readonly registry: ToolRegistry;
  /** The tools of one owner alone, such as those of its MCP servers; none when absent. Their names are not those of the registry. */
  readonly contextTools?: (context: Pick<AccessContext, 'namespaceId' | 'owner'>) => readonly ToolHandler[];
}

/** The tools there are for one context. Extending the answer changes nobody else's. */
export const registryFor = (
  { registry, contextTools }: ContextToolsPorts,
  context: Pick<AccessContext, 'namespaceId' | 'owner'>,
): ToolRegistry => {
  const own = registry.copy();
  for (const tool of contextTools?.(context) ?? []) own.register(tool);
  return own;
};

/** Which families of tools are on: what the operator allows, of that what the namespace chose, where anybody chose. */
export const familiesOn = (allowed: readonly string[], chosen: readonly string[] | undefined): readonly string[] =>
  chosen === undefined ? allowed : allowed.filter((namespace) => chosen.includes(namespace));
