import type { AccessContext, ExecutionRequest, ReachResult, RuntimeExecutionRequest, ToolDefinition } from '@sharedos/contracts';
import { reachThroughTools } from '@sharedos/kernel';
import { frozenCopy } from './contract-value.ts';

/**
 * What a runtime is given of a request: no authority, no tool namespaces, no grants. Field by field on purpose, so that a field
 * added to the context later stays hidden until somebody decides otherwise.
 *
 * @see spec/turns.md §7
 */
export const runtimeRequest = (
  request: ExecutionRequest,
  context: AccessContext,
  reach: ReachResult,
  tools: readonly ToolDefinition[],
): RuntimeExecutionRequest =>
  frozenCopy({
    version: request.version,
    executionId: request.executionId,
    agent: request.agent,
    context: {
      namespaceId: context.namespaceId,
      actor: context.actor,
      owner: context.owner,
      purpose: context.purpose,
      traceId: context.traceId,
      now: context.now,
      reach: reach.status === 'computed' ? { status: 'computed', reach: [...reachThroughTools(reach.reach, tools)] } : reach,
    },
    message: request.message,
    tools: [...tools],
    ...(request.state === undefined ? {} : { state: request.state }),
    ...(request.options === undefined ? {} : { options: request.options }),
    ...(request.metadata === undefined ? {} : { metadata: request.metadata }),
  });
