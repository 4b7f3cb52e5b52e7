import { type AccessContext, type Result, ok, err } from '@sharedos/contracts';
import type { ToolHandler, ToolRegistry } from '@sharedos/tools';

export interface ContextToolsPorts {
  readonly registry: ToolRegistry;
  /**
   * The tools of one owner alone, such as those of its MCP servers; none when absent. A failure, or a name that another tool has, leaves
   * the context without any tools: part of a catalogue would be taken for all of it.
   */
  readonly contextTools?: (context: Pick<AccessContext, 'namespaceId' | 'owner'>) => Promise<Result<readonly ToolHandler[], unknown>>;
}

/** The registries made of lists of tools; an owner's list stays the same one as long as nothing is changed. */
const made = new WeakMap<readonly ToolHandler[], { readonly base: ToolRegistry; readonly registry: ToolRegistry }>();

/** The tools there are for one context. Extending the answer changes nobody else's. */
export const registryFor = async (
  { registry, contextTools }: ContextToolsPorts,
  context: Pick<AccessContext, 'namespaceId' | 'owner'>,
): Promise<Result<ToolRegistry, 'tool_catalog_unavailable'>> => {
  if (contextTools === undefined) return ok(registry.copy());
  try {
    const own = await contextTools(context);
    return own.ok ? ok(extended(registry, own.value).copy()) : err('tool_catalog_unavailable');
  } catch {
    return err('tool_catalog_unavailable');
  }
};

const extended = (base: ToolRegistry, own: readonly ToolHandler[]): ToolRegistry => {
  const known = made.get(own);
  if (known?.base === base) return known.registry;
  const registry = base.copy();
  for (const tool of own) registry.register(tool);
  made.set(own, { base, registry });
  return registry;
};

/** Which families of tools are on: what the operator allows, of that what the namespace chose, where anybody chose. */
export const familiesOn = (allowed: readonly string[], chosen: readonly string[] | undefined): readonly string[] =>
  chosen === undefined ? allowed : allowed.filter((namespace) => chosen.includes(namespace));
