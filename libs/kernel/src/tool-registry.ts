import { ToolDefinition, type ToolNamespaceCatalog, byCodeUnit, describeIssues } from '@sharedos/contracts';
import { ContractError, DuplicateRegistrationError } from './contract-errors.ts';
import { sealed } from './contract-value.ts';
import type { ToolHandler } from './tool-handler.ts';

/**
 * The tools that exist, at most one per name. Registered is not permitted: a tool is usable only if its namespace is on and a
 * grant covers the exact call as well.
 *
 * @see spec/tools.md §6
 */
export class ToolRegistry {
  readonly #handlers = new Map<string, ToolHandler>();
  #sorted: readonly ToolHandler[] | undefined;

  /**
   * Adds a tool. What is kept is a frozen copy: a host that later changes its handler or definition changes nothing here.
   *
   * @throws ContractError when the definition is invalid or a function is missing; DuplicateRegistrationError when the name is taken.
   */
  register(handler: ToolHandler): void {
    const entry = frozenHandler(handler);
    const { name } = entry.definition;
    if (this.#handlers.has(name)) throw new DuplicateRegistrationError('tool', name);
    this.#handlers.set(name, entry);
    this.#sorted = undefined;
  }

  get(name: string): ToolHandler | undefined {
    return this.#handlers.get(name);
  }

  has(name: string): boolean {
    return this.#handlers.has(name);
  }

  /** All tools, sorted by name in code-unit order. */
  handlers(): readonly ToolHandler[] {
    this.#sorted ??= Object.freeze([...this.#handlers.values()].sort((a, b) => byCodeUnit(a.definition.name, b.definition.name)));
    return this.#sorted;
  }

  /** The definitions of all tools, in the same order. */
  definitions(): readonly ToolDefinition[] {
    return this.handlers().map(({ definition }) => definition);
  }

  /** A registry with the same tools. Extending it leaves this one as it is, so one context's tools never reach another's. */
  copy(): ToolRegistry {
    const copy = new ToolRegistry();
    for (const [name, handler] of this.#handlers) copy.#handlers.set(name, handler);
    return copy;
  }

  /** The families of tools and how many are in each, for the management plane. Enabled names without a tool are not shown. */
  namespaceCatalog(enabledToolNamespaces: readonly string[]): ToolNamespaceCatalog {
    const families = Map.groupBy(this.definitions(), ({ namespace }) => namespace);
    const namespaces = [...families]
      .sort(([a], [b]) => byCodeUnit(a, b))
      .map(([namespace, tools]) => ({
        namespace,
        sources: [...new Set(tools.map(({ source }) => source))].sort(byCodeUnit),
        toolCount: tools.length,
        enabled: enabledToolNamespaces.includes(namespace),
      }));
    const enabled = namespaces.filter((family) => family.enabled).length;
    return { namespaces, summary: { total: namespaces.length, enabled, disabled: namespaces.length - enabled } };
  }
}

/** Entries of registries: parsed, copied and frozen, so what they were once they are. A provider may answer with them turn after turn. */
const entries = new WeakSet<ToolHandler>();

const frozenHandler = (handler: ToolHandler): ToolHandler => {
  if (entries.has(handler)) return handler;
  const parsed = ToolDefinition.safeParse(handler.definition);
  if (!parsed.success) throw new ContractError(`not a tool definition: ${describeIssues(parsed.error)}`);
  if (typeof handler.parseArguments !== 'function' || typeof handler.invoke !== 'function') {
    throw new ContractError('a tool handler needs parseArguments and invoke');
  }
  if (handler.resolveRequirement !== undefined && typeof handler.resolveRequirement !== 'function') {
    throw new ContractError('resolveRequirement must be a function when it is there');
  }
  // The functions are taken now and bound, so a handler whose methods are swapped later still runs what was registered.
  const entry: ToolHandler = Object.freeze({
    definition: sealed(structuredClone(parsed.data)),
    parseArguments: handler.parseArguments.bind(handler),
    invoke: handler.invoke.bind(handler),
    ...(handler.resolveRequirement === undefined ? {} : { resolveRequirement: handler.resolveRequirement.bind(handler) }),
  });
  entries.add(entry);
  return entry;
};
