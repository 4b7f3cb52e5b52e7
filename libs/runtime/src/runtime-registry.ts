import type { JsonObj } from '@sharedos/contracts';
import { ContractError } from './errors.ts';
import { type Runtime, registerRuntime } from './runtime.ts';

/**
 * Makes the runtime of one agent out of what its registration says beside the name. Throws for what it does not understand: a
 * misspelt setting that was ignored would run another agent than was meant.
 */
export type OpenRuntime = (config: JsonObj) => Runtime;

/**
 * The runtimes that a host has, by the names that registrations of agents give. Filled at start by trusted configuration. No name comes
 * from a message, from what a model says or from the metadata of a request.
 *
 * @see spec/runtimes.md §1
 */
export class RuntimeRegistry {
  readonly #open = new Map<string, OpenRuntime>();

  /** @throws ContractError for a name that is taken, or when what it opens without any setting is no runtime. */
  register(name: string, open: OpenRuntime): void {
    if (this.#open.has(name)) throw new ContractError('runtime', `the name ${name} is taken`);
    registerRuntime(open({}));
    this.#open.set(name, open);
  }

  /** @throws ContractError for a name that nobody registered, and whatever opening it throws. */
  resolve(name: string, config: JsonObj = {}): Runtime {
    const open = this.#open.get(name);
    if (open === undefined) throw new ContractError('runtime', 'this host has none of that name');
    return registerRuntime(open(config));
  }
}
