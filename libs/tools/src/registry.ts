import { ToolDefinition, byCodeUnit, describeIssues } from '@sharedos/contracts';
import type { ToolHandler } from './tool-handler.ts';

/** A value handed to us by a host does not satisfy its contract. `code` is stable; the message names fields, never their values. */
export class ContractError extends Error {
  override readonly name = 'ContractError';
  readonly code = 'contract_error';
}

/** A host registered the same thing twice. */
export class DuplicateRegistrationError extends Error {
  override readonly name = 'DuplicateRegistrationError';
  readonly code = 'duplicate_registration';
  readonly kind: 'tool';
  readonly identifier: string;

  constructor(kind: 'tool', identifier: string) {
    super(`a ${kind} named ${identifier} is already registered`);
    this.kind = kind;
    this.identifier = identifier;
  }
}

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
    const entry = frozenCopy(handler);
    const { name } = entry.definition;
    if (this.#handlers.has(name)) throw new DuplicateRegistrationError('tool', name);
    this.#handlers.set(name, entry);
    this.#sorted = undefined;
  }

  get(name: string): ToolHandler | undefined {
    return this.#handlers.get(name);
  }

  /** All tools, sorted by name in code-unit order. */
  list(): readonly ToolHandler[] {
    this.#sorted ??= Object.freeze([...this.#handlers.values()].sort((a, b) => byCodeUnit(a.definition.name, b.definition.name)));
    return this.#sorted;
  }

  /** A registry with the same tools. Extending it leaves this one as it is, so one context's tools never reach another's. */
  copy(): ToolRegistry {
    const copy = new ToolRegistry();
    for (const [name, handler] of this.#handlers) copy.#handlers.set(name, handler);
    return copy;
  }
}

const frozenCopy = (handler: ToolHandler): ToolHandler => {
  const parsed = ToolDefinition.safeParse(handler.definition);
  if (!parsed.success) throw new ContractError(`not a tool definition: ${describeIssues(parsed.error)}`);
  if (typeof handler.parseArguments !== 'function' || typeof handler.invoke !== 'function') {
    throw new ContractError('a tool handler needs parseArguments and invoke');
  }
  if (handler.resolveRequirement !== undefined && typeof handler.resolveRequirement !== 'function') {
    throw new ContractError('resolveRequirement must be a function when it is there');
  }
  // The functions are taken now and bound, so a handler whose methods are swapped later still runs what was registered.
  return Object.freeze({
    definition: deepFreeze(structuredClone(parsed.data)),
    parseArguments: handler.parseArguments.bind(handler),
    invoke: handler.invoke.bind(handler),
    ...(handler.resolveRequirement === undefined ? {} : { resolveRequirement: handler.resolveRequirement.bind(handler) }),
  });
};

const deepFreeze = <T>(value: T): T => {
  if (typeof value !== 'object' || value === null) return value;
  for (const member of Object.values(value)) deepFreeze(member);
  return Object.freeze(value);
};
