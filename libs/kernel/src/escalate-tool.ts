import type { ToolDefinition } from '@sharedos/contracts';
import { sealed } from './contract-value.ts';
import type { ToolHandler } from './tool-handler.ts';

/** The tool whose presence in the effective catalogue lets a turn end by asking a human. @see spec/escalation.md §1 */
export const ESCALATE_TOOL = 'sharedos.escalate';

export const ESCALATE_TOOL_DEFINITION: ToolDefinition = sealed<ToolDefinition>({
  name: ESCALATE_TOOL,
  description: 'Stop here and ask a human to decide. Say what is needed and why; the turn ends with this.',
  namespace: 'sharedos',
  source: 'sharedos',
  readWrite: 'read',
  inputSchema: {
    type: 'object',
    properties: { reason: { type: 'string', minLength: 1, maxLength: 512 } },
    required: ['reason'],
    additionalProperties: false,
  },
  requiredCapability: { resource: { namespace: 'sharedos', path: ['escalation'] }, action: 'request' },
  annotations: { readOnly: true },
});

/**
 * Makes asking a human a capability like any other. Nothing runs behind it: a turn ends with it instead of calling it. Any
 * arguments do, so that a call that was forwarded all the same is not blamed on them.
 */
export const escalateTool: ToolHandler = Object.freeze<ToolHandler>({
  definition: ESCALATE_TOOL_DEFINITION,
  parseArguments: (raw) => raw,
  invoke: async (context, call) => ({
    status: 'failed',
    callId: call.id,
    tool: call.tool,
    completedAt: context.now,
    error: { code: 'escalation_not_terminated', message: 'A turn ends with this tool instead of calling it.', retryable: false },
  }),
});
