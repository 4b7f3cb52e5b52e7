import type { AccessContext, ResourceInvocationRequest, ResourceOperation, ResourceResult } from '@sharedos/contracts';
import { ContractError, DuplicateRegistrationError } from './contract-errors.ts';

/** A plane of resources, reached only after authority was decided. @see spec/tools.md §3 */
export interface ResourceProvider {
  readonly namespace: string;
  invoke(operation: ResourceOperation, cancel: AbortSignal): Promise<ResourceResult>;
}

/** The planes that exist, one per resource namespace. */
export class ResourceProviderRegistry {
  readonly #providers = new Map<string, ResourceProvider>();

  /** @throws ContractError for a namespace without a name; DuplicateRegistrationError when it is taken. */
  register(provider: ResourceProvider): void {
    const { namespace } = provider;
    if (typeof namespace !== 'string' || namespace.trim() === '') throw new ContractError('a resource provider needs a namespace');
    if (typeof provider.invoke !== 'function') throw new ContractError('a resource provider needs invoke');
    if (this.#providers.has(namespace)) throw new DuplicateRegistrationError('resource namespace', namespace);
    this.#providers.set(namespace, provider);
  }

  get(namespace: string): ResourceProvider | undefined {
    return this.#providers.get(namespace);
  }

  has(namespace: string): boolean {
    return this.#providers.has(namespace);
  }

  namespaces(): readonly string[] {
    return [...this.#providers.keys()];
  }
}

/** What a provider is given: the request in its context, with the owner always filled in. */
export const toResourceOperation = (
  context: AccessContext,
  { operationId, resource, action, input, metadata }: ResourceInvocationRequest,
): ResourceOperation => ({
  operationId,
  context,
  resource: { ...resource, owner: resource.owner ?? context.owner },
  action,
  ...(input === undefined ? {} : { input }),
  ...(metadata === undefined ? {} : { metadata }),
});
