import {
  type AccessContext,
  INFRASTRUCTURE_CODES,
  type ToolCatalog,
  type ToolDefinition,
  type ToolNamespaceCatalog,
  ToolNamespaceSelection,
  ToolNamespaceUpdate,
  byCodeUnit,
} from '@sharedos/contracts';
import { toolCatalogListed, toolNamespaceCatalogListed, toolNamespaceSelectionUpdated } from '../audit.ts';
import { buildToolCatalog, publishToolCatalog, toolCatalogHash } from '../catalog.ts';
import { ContractError, MissingRegistrationError } from '../contract-errors.ts';
import { contractValue, frozenCopy } from '../contract-value.ts';
import { SPAN, measure } from '../spans.ts';
import type { ToolHandler } from '../tool-handler.ts';
import type { ToolRegistry } from '../tool-registry.ts';
import { type Lease, newLease } from '../turn-leases.ts';
import { agentCardTool } from './agent-card-tool.ts';
import { type KernelCore, type KernelOperationOptions, compiledAuthority, instantIn, signalOr } from './core.ts';
import { messageRequestTool } from './message-request-tool.ts';

/**
 * The tools of one context: static ones, those of the kernel, then those of its providers in order of their ids. All or none: a
 * provider that throws, or a name that is taken, fails the whole catalogue. Held for the turn; a failure is not.
 *
 * @see spec/tools.md §6, "Per-context providers"
 */
export const catalogueOf = (
  core: KernelCore,
  lease: Lease,
  context: AccessContext,
  signal: AbortSignal | undefined,
): Promise<ToolRegistry> => lease.catalogue.get((own) => derive(core, context, own), signal);

const derive = (core: KernelCore, context: AccessContext, signal: AbortSignal): Promise<ToolRegistry> =>
  measure(
    core.spans,
    SPAN.TOOL_CATALOGUE,
    async () => {
      const registry = core.tools.copy();
      const { messageTransport, messageRequestRouter, agentCardTool: withCards } = core.options;
      if (messageTransport !== undefined && messageRequestRouter !== undefined) {
        registry.register(messageRequestTool(core, messageRequestRouter));
      }
      if (withCards === true) registry.register(agentCardTool(core));
      for (const id of [...core.providers.keys()].sort(byCodeUnit)) {
        for (const handler of await toolsOf(core, id, context, signal)) registry.register(handler);
      }
      return registry;
    },
    (registry, scope) => scope.set('tools', registry.definitions().length),
  );

const toolsOf = async (core: KernelCore, id: string, context: AccessContext, signal: AbortSignal): Promise<readonly ToolHandler[]> => {
  let listed: unknown;
  try {
    listed = await core.providers.get(id)?.listTools(frozenCopy(context), signal);
  } catch (cause) {
    signal.throwIfAborted();
    throw new Error('a tool provider could not list its tools', { cause });
  }
  if (!Array.isArray(listed)) throw new ContractError('a tool provider must answer with a list of tools');
  return listed as readonly ToolHandler[];
};

/** The tools a context may see now: registered, in a family that is on, and within reach of some grant. */
export const listTools = async (
  core: KernelCore,
  given: AccessContext,
  { signal }: KernelOperationOptions = {},
): Promise<readonly ToolDefinition[]> => {
  const context = core.enter(given, signal);
  const held = await core.hold(context, signal);
  const { resolution, lease } = held;
  const enabledNamespaces = [...context.enabledToolNamespaces];
  if (resolution.status === 'unavailable') {
    await core.recordBefore(toolCatalogListed(core.mark(context), { enabledNamespaces, failure: resolution }));
    return [];
  }
  const registry = await catalogueOf(core, lease, context, signal);
  const { tools, withheldByOutage } = await measure(core.spans, SPAN.TOOL_DISCOVER, () => discover(core, resolution, registry, context));
  const policy = resolution.authority.hostPolicy;
  const catalogHash = toolCatalogHash(publishToolCatalog(tools));
  await core.recordBefore(
    toolCatalogListed(core.mark(context), {
      enabledNamespaces,
      authorityHash: resolution.authority.snapshot.hash,
      catalogHash,
      withheldCount: registry.definitions().length - tools.length,
      withheldByOutage,
      hostPolicyVersion: policy?.status === 'loaded' ? policy.version : undefined,
    }),
  );
  if (held.inTurn) lease.listedHash = catalogHash;
  return tools;
};

const discover = async (
  core: KernelCore,
  resolution: Parameters<typeof compiledAuthority>[1],
  registry: ToolRegistry,
  context: AccessContext,
): Promise<{ readonly tools: readonly ToolDefinition[]; readonly withheldByOutage: boolean }> => {
  const authority = compiledAuthority(core, resolution);
  const { installed, run, reportCeiling } = core.decider;
  const tools: ToolDefinition[] = [];
  let withheldByOutage = false;
  for (const tool of registry.definitions()) {
    if (!context.enabledToolNamespaces.includes(tool.namespace)) continue;
    const request = tool.requiredCapability;
    const decided = await run(authority.decide(request, { now: instantIn(context), consume: false, mode: 'discover', ...installed }));
    reportCeiling(decided, context, request);
    if (decided.decision.allowed) tools.push(tool);
    else if (INFRASTRUCTURE_CODES.has(decided.decision.reasonCode)) withheldByOutage = true;
  }
  return { tools, withheldByOutage };
};

/** The same as a harness receives it: projected, in canonical order, with its hash. */
export const listPublishedTools = async (
  core: KernelCore,
  context: AccessContext,
  { executionId, ...options }: KernelOperationOptions & { readonly executionId: string },
): Promise<ToolCatalog> => buildToolCatalog(await listTools(core, context, options), { executionId });

/** Management data: no grant is asked for, and nothing of it is for a model. The host says who may read it. */
export const listToolNamespaces = async (
  core: KernelCore,
  given: AccessContext,
  { signal }: KernelOperationOptions = {},
): Promise<ToolNamespaceCatalog> => {
  const context = core.enter(given, signal);
  const registry = await catalogueOf(core, core.leaseOf(context) ?? newLease(), context, signal);
  const catalog = registry.namespaceCatalog(context.enabledToolNamespaces);
  await core.recordBefore(toolNamespaceCatalogListed(core.mark(context), catalog.summary));
  return catalog;
};

/**
 * Changes which families of tools are on. The answer is what took effect; it reaches later operations only when the host puts it
 * into their contexts.
 *
 * @throws ContractError for an update that is none, or a store that answers with no selection; MissingRegistrationError without a store.
 */
export const updateToolNamespaces = async (
  core: KernelCore,
  given: AccessContext,
  givenUpdate: ToolNamespaceUpdate,
  { signal }: KernelOperationOptions = {},
): Promise<ToolNamespaceCatalog> => {
  const context = core.enter(given, signal);
  const update = contractValue(ToolNamespaceUpdate, givenUpdate);
  if (!update.ok) throw new ContractError('tool namespace update', update.error);
  const store = core.options.toolNamespaceSettings;
  if (store === undefined) throw new MissingRegistrationError('tool namespace settings', context.namespaceId);
  const answered: unknown = await store.applyUpdate(frozenCopy(context), update.value, signalOr(signal));
  const selection = contractValue(ToolNamespaceSelection, answered);
  if (!selection.ok) throw new ContractError('selection of tool namespaces', selection.error);
  const registry = await catalogueOf(core, core.leaseOf(context) ?? newLease(), context, signal);
  const catalog = registry.namespaceCatalog(selection.value);
  const enabled = catalog.namespaces.filter((family) => family.enabled).map(({ namespace }) => namespace);
  await core.recordAfter(toolNamespaceSelectionUpdated(core.mark(context), enabled));
  return catalog;
};
