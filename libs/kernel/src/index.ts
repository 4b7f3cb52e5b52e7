export * from './agent-card.ts';
export * from './agent.ts';
export * from './asking.ts';
export * from './audit-sink.ts';
export * from './audit.ts';
export * from './authority-resolver.ts';
export * from './authority.ts';
export {
  type AuthorizationInstantOptions,
  type AuthorizeOptions,
  CapabilityAuthorizer,
  type CapabilityAuthorizerOptions,
  type CapabilityGrantVerifier,
  type GrantUsageStore,
  INFRASTRUCTURE_DENIAL_REASONS,
  type LiveRevocationSource,
  isInfrastructureDenial,
} from './authorizer.ts';
export * from './catalog.ts';
export * from './ceiling.ts';
export * from './chain.ts';
export * from './compiled-authority.ts';
export * from './constraints.ts';
export * from './contract-errors.ts';
export * from './contract-value.ts';
export * from './core-words.ts';
export * from './decide.ts';
export * from './decider.ts';
export * from './delegation-chain.ts';
export * from './delegation.ts';
export * from './delivery.ts';
export { AGENT_CARD_TOOL_DEFINITION, AGENT_CARD_TOOL_NAME } from './embedded/agent-card-tool.ts';
export type { KernelOperationOptions, SharedOSKernelOptions } from './embedded/core.ts';
export type { InvokeToolOptions } from './embedded/invoke-tool.ts';
export { MESSAGE_REQUEST_TOOL_DEFINITION, MESSAGE_REQUEST_TOOL_NAME, MESSAGE_TOOL_NAMESPACE } from './embedded/message-request-tool.ts';
export type { AgentCardReadOptions } from './embedded/read-agent-card.ts';
export * from './embedded/sharedos-kernel.ts';
export type { EscalationOptions, RefusedCall, TurnEndRecord } from './embedded/turn-records.ts';
export * from './escalate-tool.ts';
export * from './escalation-grant.ts';
export * from './escalation.ts';
export * from './execution.ts';
export * from './grant.ts';
export * from './matching.ts';
export * from './mcp-requirement.ts';
export * from './mcp-servers.ts';
export * from './memory-ports.ts';
export * from './message-path.ts';
export * from './message-ports.ts';
export * from './namespace-settings.ts';
export * from './operation-calls.ts';
export * from './operation-replay.ts';
export * from './parsed-grant.ts';
export * from './parsed-requirement.ts';
export * from './policy-in-force.ts';
export * from './policy-language.ts';
export * from './policy.ts';
export * from './precedent-key.ts';
export * from './precedent.ts';
export * from './provider-error.ts';
export * from './public-decision.ts';
export * from './reach.ts';
export * from './read-call.ts';
export * from './required-authority.ts';
export * from './resource-provider.ts';
export * from './route.ts';
export * from './rules-policy.ts';
export * from './spans.ts';
export * from './standard-capabilities.ts';
export * from './tool-call.ts';
export * from './tool-handler.ts';
export * from './tool-namespace-settings.ts';
export * from './tool-registry.ts';
export * from './tool-selection.ts';
export * from './until-aborted.ts';
export * from './version-conflict.ts';
export * from './window.ts';
