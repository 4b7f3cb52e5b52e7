import { type Address, SERVICE_NAMES } from '@sharedos/contracts';
import { type LocalStack, type LocalStackOptions, startLocalStack } from '@sharedos/testing';
import { type SharedOS, connectSharedOS } from '@sharedos/client';

export interface SystemOptions extends LocalStackOptions {
  /** Processes of each service. Default 1. */
  readonly replicas?: number;
  /** Added to the environment of every service. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The local stack with all four services on it. Nothing of it outlives this process. */
export const startSystem = async (options: SystemOptions): Promise<LocalStack> => {
  const { replicas = 1, env = {}, ...stackOptions } = options;
  const stack = await startLocalStack(stackOptions);
  try {
    for (const name of SERVICE_NAMES) options.onProgress?.(`starting ${name} …`);
    await Promise.all(SERVICE_NAMES.flatMap((name) => Array.from({ length: replicas }, () => stack.startService(name, { env }))));
    return stack;
  } catch (error) {
    await stack.stop();
    throw error;
  }
};

/** Connects to a running local stack as one of its principals. */
export const connectTo = (stack: LocalStack, namespaceId: string, principal: Address, name?: string): Promise<SharedOS> => {
  const { user, password } = stack.credentials.principal(namespaceId, principal);
  return connectSharedOS({ servers: stack.natsUrl, user, password, namespaceId, principal, ...(name === undefined ? {} : { name }) });
};
