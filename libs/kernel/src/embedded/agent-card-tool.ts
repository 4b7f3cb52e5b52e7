import { AGENT_CARD_VIEWS, Address, AgentCardView, type Json, type ToolDefinition } from '@sharedos/contracts';
import { DIRECTORY_NAMESPACE, DIRECTORY_READ_ACTION, DIRECTORY_RESOURCE_ROOT, agentCardRequest } from '../agent-card.ts';
import { ContractError } from '../contract-errors.ts';
import { contractValue, sealed } from '../contract-value.ts';
import type { ToolHandler } from '../tool-handler.ts';
import { type KernelCore, refusal } from './core.ts';
import { serveCard } from './read-agent-card.ts';

export const AGENT_CARD_TOOL_NAME = 'sharedos.card';

const subjectOf = (kind: string, id: string) => ({
  type: 'object',
  properties: { kind: { const: kind }, [id]: { type: 'string', minLength: 1, maxLength: 256 } },
  required: ['kind', id],
  additionalProperties: false,
});

export const AGENT_CARD_TOOL_DEFINITION: ToolDefinition = sealed<ToolDefinition>({
  name: AGENT_CARD_TOOL_NAME,
  description: 'Read the card of an agent: who it is, and where it may be asked to work.',
  namespace: DIRECTORY_NAMESPACE,
  source: 'sharedos',
  readWrite: 'read',
  inputSchema: {
    type: 'object',
    properties: {
      subject: {
        oneOf: [
          subjectOf('human', 'userId'),
          subjectOf('agent', 'agentId'),
          subjectOf('group', 'conversationId'),
          subjectOf('service', 'serviceId'),
        ],
      },
      view: { enum: [...AGENT_CARD_VIEWS] },
    },
    required: ['subject'],
    additionalProperties: false,
  },
  outputSchema: { type: 'object' },
  requiredCapability: { resource: { namespace: DIRECTORY_NAMESPACE, path: [...DIRECTORY_RESOURCE_ROOT] }, action: DIRECTORY_READ_ACTION },
  annotations: { readOnly: true },
});

/**
 * The card read as a tool. The call is authorized on the very resource that the kernel's own read asks about, so the handler
 * serves what was decided and asks no second time: a grant for one read is enough for one.
 */
export const agentCardTool = (core: KernelCore): ToolHandler => ({
  definition: AGENT_CARD_TOOL_DEFINITION,
  parseArguments: ({ subject, view, ...unknown }) => {
    if (Object.keys(unknown).length > 0) throw new ContractError('set of arguments', 'only subject and view are known');
    return { subject: Address.parse(subject), view: AgentCardView.parse(view ?? 'reach') };
  },
  resolveRequirement: (context, call) => {
    const { subject, view } = argumentsOf(call.arguments);
    return agentCardRequest(subject, context.owner, view);
  },
  invoke: async (context, call, signal) => {
    const { subject, view } = argumentsOf(call.arguments);
    const answered = { callId: call.id, tool: call.tool, completedAt: context.now };
    const read = await serveCard(core, context, subject, view, signal);
    return read.status === 'served'
      ? { status: 'succeeded', ...answered, output: read.card as unknown as Json }
      : { status: 'denied', ...answered, error: refusal(read.reasonCode) };
  },
});

const argumentsOf = (parsed: unknown): { readonly subject: Address; readonly view: AgentCardView } => {
  const subject = contractValue(Address, (parsed as { subject: unknown }).subject);
  const view = contractValue(AgentCardView, (parsed as { view: unknown }).view);
  if (!subject.ok || !view.ok) throw new ContractError('set of arguments', 'they were not parsed');
  return { subject: subject.value, view: view.value };
};
