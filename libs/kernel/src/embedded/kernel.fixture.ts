import type { AccessContext, CapabilityGrant } from '@sharedos/contracts';
import { CapabilityAuthorizer } from '../authorizer.ts';
import { InMemoryAuditSink, InMemoryGrantStore, InMemoryGrantUsageStore } from '../memory-ports.ts';
import type { ProviderErrorContext } from '../provider-error.ts';
import { at, context as base, read } from '../testing/base-world.ts';
import type { ToolHandler } from '../tool-handler.ts';
import type { SharedOSKernelOptions } from './core.ts';
import { SharedOSKernel } from './sharedos-kernel.ts';

export const context = (changes: Partial<AccessContext> = {}): AccessContext =>
  base({ enabledToolNamespaces: ['files', 'messages', 'sharedos'], ...changes });

/** A tool that reads what its argument `path` names. */
export const reader = (more: Partial<ToolHandler> = {}): ToolHandler => ({
  definition: {
    name: 'files.read',
    description: 'Reads.',
    namespace: 'files',
    source: 'native',
    readWrite: 'read',
    inputSchema: { type: 'object' },
    requiredCapability: read([]),
  },
  parseArguments: (raw) => raw,
  resolveRequirement: (_context, call) => read(call.arguments['path'] as string[]),
  invoke: async (inside, call) => ({ status: 'succeeded', callId: call.id, tool: call.tool, completedAt: inside.now, output: 'text' }),
  ...more,
});

/** A call of it. */
export const call = (more: object = {}) => ({
  id: 'c-1',
  tool: 'files.read',
  arguments: { path: ['Work', 'a'] },
  traceId: 'trace-1',
  requestedAt: at('10:00:00.000'),
  ...more,
});

/** A kernel over the memory ports: what a host needs to run one without any server. */
export const opened = (grants: readonly CapabilityGrant[], more: Partial<SharedOSKernelOptions> = {}) => {
  const store = new InMemoryGrantStore();
  for (const grant of grants) store.issue(grant);
  const audit = new InMemoryAuditSink();
  const usage = new InMemoryGrantUsageStore();
  const errors: [unknown, ProviderErrorContext][] = [];
  const authorizer = new CapabilityAuthorizer({ usageStore: usage, delegationResolver: store });
  const kernel = new SharedOSKernel({
    grantSource: store,
    authorizer,
    audit,
    onProviderError: (error, operation) => errors.push([error, operation]),
    ...more,
  });
  const recorded = (): string[] => audit.events.map(({ type, outcome, reason }) => [type, outcome, reason].filter(Boolean).join(' '));
  return { kernel, store, audit, usage, errors, recorded };
};
