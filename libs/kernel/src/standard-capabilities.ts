import { type Address, type Capability, type CapabilityRequirement, addressPath } from '@sharedos/contracts';

export const EXECUTION_NAMESPACE = 'sharedos.execution';
export const AGENT_INVOKE_ACTION = 'invoke';
export const MESSAGING_NAMESPACE = 'sharedos.messaging';
export const MESSAGE_SEND_ACTION = 'send';

/** What running one turn of an agent needs. */
export const agentExecutionRequest = (agent: Address, owner: Address): CapabilityRequirement => ({
  resource: { namespace: EXECUTION_NAMESPACE, path: [...addressPath(agent)], owner },
  action: AGENT_INVOKE_ACTION,
});

export const agentExecutionCapability = (agent: Address, owner: Address): Capability => {
  const { resource, action } = agentExecutionRequest(agent, owner);
  return { resource, actions: [action], scope: 'exact' };
};

/** What sending to exactly this receiver needs. */
export const messageSendCapability = (receiver: Address, owner: Address): Capability => ({
  resource: { namespace: MESSAGING_NAMESPACE, path: [...addressPath(receiver)], owner },
  actions: [MESSAGE_SEND_ACTION],
  scope: 'exact',
});
