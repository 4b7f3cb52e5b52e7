import { type AccessContext, ResourceInvocationRequest, ResourceResult } from '@sharedos/contracts';
import { resourceInvoked } from '../audit.ts';
import { ContractError } from '../contract-errors.ts';
import { contractValue, frozenCopy } from '../contract-value.ts';
import { toResourceOperation } from '../resource-provider.ts';
import { type KernelCore, type KernelOperationOptions, refusal, signalOr } from './core.ts';
import { decideOperation } from './decide-operation.ts';
import { once } from './once.ts';

/**
 * One operation on a resource, without a tool. Whether a family of tools is on does not matter here; the grant does.
 *
 * @throws ContractError for what is no request, AuditUnavailableError when the decision could not be recorded, and the signal's reason.
 */
export const invokeResource = async (
  core: KernelCore,
  given: AccessContext,
  givenRequest: ResourceInvocationRequest,
  { signal }: KernelOperationOptions = {},
): Promise<ResourceResult> => {
  const context = core.enter(given, signal);
  const parsed = contractValue(ResourceInvocationRequest, givenRequest);
  if (!parsed.ok) throw new ContractError('resource request', parsed.error);
  const operation = toResourceOperation(context, parsed.value);
  const { operationId, resource, action } = operation;

  const settle = (outcome: 'succeeded' | 'denied' | 'failed', reason?: string, grantId?: string): Promise<void> =>
    core.recordAfter(resourceInvoked(core.mark(context), { operationId, resource, action, outcome, grantId, reason }));
  const refuse = async (status: 'denied' | 'failed', code: string, grantId?: string): Promise<ResourceResult> => {
    await settle(status, code, grantId);
    return frozenCopy({ status, operationId, completedAt: context.now, error: refusal(code) });
  };

  const { namespaceId, actor } = context;
  const key = { namespaceId, actor, kind: 'resource', scope: '', id: operationId } as const;
  const { input, metadata } = parsed.value;
  return once(core, {
    key,
    context,
    input: { resource, action, ...(input === undefined ? {} : { input }), ...(metadata === undefined ? {} : { metadata }) },
    schema: ResourceResult,
    refuse,
    run: () => perform(core, context, operation, { settle, refuse, signal }),
  });
};

const perform = async (
  core: KernelCore,
  context: AccessContext,
  operation: ReturnType<typeof toResourceOperation>,
  {
    settle,
    refuse,
    signal,
  }: {
    readonly settle: (outcome: 'succeeded' | 'denied' | 'failed', reason?: string, grantId?: string) => Promise<void>;
    readonly refuse: (status: 'denied' | 'failed', code: string, grantId?: string) => Promise<ResourceResult>;
    readonly signal: AbortSignal | undefined;
  },
): Promise<ResourceResult> => {
  const { operationId, resource, action } = operation;
  const held = await core.hold(context, signal);
  if (held.resolution.status === 'unavailable') return refuse('denied', 'authority_unavailable');
  const { decision, grantId } = await decideOperation(core, held, context, { resource, action }, { consume: true });
  if (!decision.allowed) return refuse('denied', decision.reasonCode, grantId);
  signal?.throwIfAborted();
  const provider = core.resources.get(resource.namespace);
  if (provider === undefined) return refuse('failed', 'resource_provider_not_found', grantId);

  let answered: unknown;
  try {
    answered = await provider.invoke(frozenCopy(operation), signalOr(signal));
  } catch (error) {
    if (signal?.aborted === true) {
      await settle('failed', 'operation_aborted', grantId);
      throw signal.reason;
    }
    const { traceId, namespaceId } = context;
    core.report(error, { kind: 'resource', reasonCode: 'resource_execution_failed', traceId, namespaceId, operationId, resource, action });
    return refuse('failed', 'resource_execution_failed', grantId);
  }
  const result = contractValue(ResourceResult, answered);
  if (!result.ok || result.value.operationId !== operationId) return refuse('failed', 'invalid_resource_result', grantId);
  await settle(result.value.status, result.value.status === 'succeeded' ? undefined : result.value.error.code, grantId);
  return result.value;
};
