import * as kernel from './index.ts';
import type {
  AgentCardRead,
  AgentCardReadOptions,
  AgentCardRefusal,
  AgentCardServed,
  AllowedDecision,
  AuditEvent,
  AuditEventInput,
  AuditEventType,
  AuditOutcome,
  AuditSink,
  AuditSource,
  AuthorityResolution,
  AuthoritySnapshot,
  AuthorityUnavailableCode,
  AuthorityUnavailableDetail,
  AuthorizationExplanation,
  AuthorizationInstantOptions,
  AuthorizationReasonCode,
  AuthorizationRequest,
  AuthorizeOptions,
  CapabilityAuthorizerOptions,
  CapabilityGrantVerifier,
  CapabilityRequestPayload,
  ConstraintEnvelopeField,
  ContextToolProvider,
  DelegationChainResolver,
  DelegationRefusal,
  DelegationUnverifiedCode,
  DelegationValidation,
  DelegationValidationOptions,
  DelegationViolationCode,
  DeriveGrantRequest,
  DeriveGrantResult,
  EscalationOptions,
  GrantRejection,
  GrantRejectionReason,
  GrantScopeMismatch,
  GrantSource,
  GrantUsageStore,
  HostCeiling,
  HostCeilingVerdict,
  HostPolicy,
  HostPolicyDenial,
  KernelOperationOptions,
  LoadedPolicy,
  MessageCapabilityResolver,
  MessageRequestRouter,
  MessageTransport,
  PolicyResolution,
  PolicySource,
  ProviderErrorContext,
  ProviderErrorKind,
  ProviderErrorReporter,
  RefusedCall,
  ResolvedAuthority,
  ResourceInvocationRequest,
  ResourceProvider,
  SharedOSKernelOptions,
  Span,
  SpanAttributes,
  SpanName,
  SpanScope,
  SpanSink,
  ToolCatalogOptions,
  ToolHandler,
  ToolNamespaceSettingsStore,
  TurnAuthorityScope,
  TurnEndRecord,
} from './index.ts';
import { describe, expect, expectTypeOf, it } from 'vitest';

// Held by the compiler: a member that a user of the core API knows is a member here.
type Has<T, Members extends PropertyKey> = Members extends keyof T ? true : false;
type All<T extends true> = T;

export type CoreMembers = [
  All<Has<AgentCardReadOptions, 'signal' | 'view'>>,
  All<Has<AgentCardRefusal, 'reasonCode' | 'requiredAuthority' | 'servableViews' | 'status'>>,
  All<Has<AgentCardServed, 'card' | 'status'>>,
  All<Has<AllowedDecision, 'allowed' | 'matchedGrantId' | 'metadata' | 'reasonCode'>>,
  All<
    Has<
      AuditEvent,
      | 'action'
      | 'actor'
      | 'at'
      | 'authority'
      | 'authorityHash'
      | 'grantId'
      | 'id'
      | 'messageId'
      | 'metadata'
      | 'namespaceId'
      | 'operationId'
      | 'outcome'
      | 'owner'
      | 'purpose'
      | 'reason'
      | 'receiver'
      | 'requestedAuthority'
      | 'resource'
      | 'tool'
      | 'traceId'
      | 'type'
      | 'version'
    >
  >,
  All<Has<AuditSink, 'record'>>,
  All<Has<AuthoritySnapshot, 'grantCount' | 'grantIds' | 'hash' | 'loadedAt'>>,
  All<Has<AuthorityUnavailableDetail, 'grantId' | 'reason'>>,
  All<Has<AuthorizationExplanation, 'grantsResolved' | 'missingDependency' | 'reasonCode' | 'rejections'>>,
  All<Has<AuthorizationInstantOptions, 'now'>>,
  All<Has<AuthorizationRequest, 'action' | 'resource'>>,
  All<Has<AuthorizeOptions, 'consume' | 'now' | 'onExplain'>>,
  All<
    Has<
      CapabilityAuthorizerOptions,
      'delegationResolver' | 'grantVerifier' | 'hostCeiling' | 'maxDelegationChainLength' | 'onProviderError' | 'usageStore'
    >
  >,
  All<Has<CapabilityGrantVerifier, 'verify'>>,
  All<Has<ContextToolProvider, 'id' | 'listTools'>>,
  All<Has<DelegationChainResolver, 'resolve'>>,
  All<Has<DelegationValidationOptions, 'admittedAt' | 'maxChainLength' | 'resolver'>>,
  All<Has<DeriveGrantRequest, 'capabilities' | 'constraints' | 'id' | 'issuedAt' | 'metadata' | 'subject'>>,
  All<Has<EscalationOptions, 'requestedAuthority' | 'signal'>>,
  All<Has<GrantRejection, 'grantId' | 'reason'>>,
  All<Has<GrantSource, 'load'>>,
  All<Has<GrantUsageStore, 'getUsage' | 'tryConsume'>>,
  All<Has<HostCeiling, 'narrow'>>,
  All<Has<HostPolicyDenial, 'allowed' | 'metadata' | 'reasonCode'>>,
  All<Has<KernelOperationOptions, 'signal'>>,
  All<Has<LoadedPolicy, 'policy' | 'version'>>,
  All<Has<MessageCapabilityResolver, 'resolve'>>,
  All<Has<MessageRequestRouter, 'resolveReply'>>,
  All<Has<MessageTransport, 'deliver'>>,
  All<Has<PolicySource, 'load'>>,
  All<Has<ProviderErrorContext, 'action' | 'kind' | 'namespaceId' | 'operationId' | 'reasonCode' | 'resource' | 'tool' | 'traceId'>>,
  All<Has<RefusedCall, 'callId' | 'reasonCode' | 'tool' | 'cause'>>,
  All<Has<ResolvedAuthority, 'context' | 'grants' | 'hostPolicy' | 'snapshot'>>,
  All<Has<ResourceInvocationRequest, 'action' | 'input' | 'metadata' | 'operationId' | 'resource'>>,
  All<Has<ResourceProvider, 'namespace' | 'invoke'>>,
  All<
    Has<
      SharedOSKernelOptions,
      | 'audit'
      | 'authorizer'
      | 'createAuditId'
      | 'createMessageId'
      | 'grantSource'
      | 'messageCapabilityResolver'
      | 'messageRequestRouter'
      | 'messageTransport'
      | 'onAuditError'
      | 'onProviderError'
      | 'policySource'
      | 'resources'
      | 'spans'
      | 'toolNamespaceSettings'
      | 'toolProviders'
      | 'tools'
    >
  >,
  All<Has<Span, 'attributes' | 'durationMs' | 'name'>>,
  All<Has<SpanScope, 'set'>>,
  All<Has<SpanSink, 'record'>>,
  All<Has<ToolCatalogOptions, 'executionId'>>,
  All<Has<ToolHandler, 'definition' | 'parseArguments' | 'resolveRequirement' | 'invoke'>>,
  All<Has<ToolNamespaceSettingsStore, 'applyUpdate'>>,
  All<Has<TurnEndRecord, 'endedBy' | 'executionId' | 'reasonCode' | 'status'>>,
];

describe('the types of the core API', () => {
  it('mean what its users know them to mean', () => {
    expectTypeOf<AuditOutcome>().toEqualTypeOf<'allowed' | 'denied' | 'succeeded' | 'failed' | 'escalated'>();
    expectTypeOf<AuditSource>().toEqualTypeOf<'kernel' | 'envelope'>();
    expectTypeOf<'authority.resolved' | 'escalation.auto_decided' | 'tool.namespace.selection.updated'>().toExtend<AuditEventType>();
    expectTypeOf<AuditEventInput>().toHaveProperty('type');
    expectTypeOf<keyof AuditEventInput & ('id' | 'at' | 'actor' | 'version')>().toEqualTypeOf<never>();
    expectTypeOf<AuthorityUnavailableCode>().toEqualTypeOf<
      'grant_source_failed' | 'invalid_grant_material' | 'grant_scope_mismatch' | 'grant_limit_exceeded'
    >();
    expectTypeOf<AuthorizationReasonCode>().toEqualTypeOf<
      | 'allowed'
      | 'invalid_context'
      | 'invalid_request'
      | 'no_matching_grant'
      | 'grant_exhausted'
      | 'delegation_chain_invalid'
      | 'authority_unavailable'
      | 'delegation_chain_unverified'
      | 'usage_store_unavailable'
      | 'host_policy_denied'
      | 'host_policy_unavailable'
    >();
    expectTypeOf<ConstraintEnvelopeField>().toEqualTypeOf<'purposes' | 'notBefore' | 'expiresAt'>();
    expectTypeOf<DelegationRefusal>().toEqualTypeOf<
      | 'empty_capabilities'
      | 'id_collides_with_parent'
      | 'bounded_parent_not_delegable'
      | 'parent_not_delegable'
      | 'depth_exhausted'
      | 'capability_not_within_parent'
      | 'purpose_not_within_parent'
      | 'window_not_within_parent'
      | 'issued_before_parent'
    >();
    expectTypeOf<DelegationUnverifiedCode>().toEqualTypeOf<'resolver_unavailable' | 'parent_not_found' | 'resolver_failed'>();
    expectTypeOf<DelegationViolationCode>().toEqualTypeOf<
      | 'delegation_not_permitted'
      | 'delegation_depth_exceeded'
      | 'bounded_parent_not_delegable'
      | 'issuer_not_parent_subject'
      | 'namespace_mismatch'
      | 'parent_inactive'
      | 'capability_widened'
      | 'constraints_widened'
      | 'chain_cycle'
      | 'chain_too_long'
    >();
    expectTypeOf<DelegationValidation['status']>().toEqualTypeOf<'valid' | 'invalid' | 'unverified'>();
    expectTypeOf<GrantRejectionReason>().toEqualTypeOf<
      'issuer' | 'subject' | 'namespace' | 'window' | 'purpose' | 'verifier' | 'capability' | 'delegation' | 'exhausted'
    >();
    expectTypeOf<GrantScopeMismatch>().toEqualTypeOf<'namespace' | 'subject' | 'issuer'>();
    expectTypeOf<ProviderErrorKind>().toEqualTypeOf<'tool' | 'tool_catalog' | 'resource' | 'message' | 'policy'>();
    expectTypeOf<TurnEndRecord['status']>().toEqualTypeOf<'denied' | 'succeeded' | 'failed' | 'escalated' | 'cancelled'>();
    expectTypeOf<AgentCardRead>().toEqualTypeOf<AgentCardServed | AgentCardRefusal>();
    expectTypeOf<HostCeilingVerdict>().toEqualTypeOf<AllowedDecision | HostPolicyDenial>();
    expectTypeOf<HostPolicy>().toEqualTypeOf<unknown>();
    expectTypeOf<PolicyResolution['status']>().toEqualTypeOf<'loaded' | 'unavailable'>();
    expectTypeOf<AuthorityResolution['status']>().toEqualTypeOf<'resolved' | 'unavailable'>();
    expectTypeOf<TurnAuthorityScope['close']>().toEqualTypeOf<() => void>();
    expectTypeOf<SpanAttributes>().toEqualTypeOf<Readonly<Record<string, string | number | boolean>>>();
    expectTypeOf<'kernel.authorize'>().toExtend<SpanName>();
    expectTypeOf<Parameters<ProviderErrorReporter>>().toEqualTypeOf<[error: unknown, operation: ProviderErrorContext]>();
    expectTypeOf<Exclude<keyof CapabilityRequestPayload, 'capabilities' | 'purpose' | 'constraints' | 'metadata'>>().toEqualTypeOf<never>();
  });

  it('keep authority out of where only a context belongs', () => {
    expectTypeOf<ResolvedAuthority>().not.toExtend<Parameters<kernel.SharedOSKernel['authorize']>[0]>();
    expectTypeOf<TurnAuthorityScope>().not.toHaveProperty('grants');
    // A ceiling is handed what allowed, so that no denial can be turned into an allow.
    expectTypeOf<Parameters<HostCeiling['narrow']>[0]['allowed']>().toEqualTypeOf<true>();
  });

  it('of what is derived are the two that a caller has to tell apart', () => {
    const refused: DeriveGrantResult = { ok: false, reason: 'depth_exhausted' };
    expect(refused.ok).toBe(false);
  });
});

describe('the functions of the core API', () => {
  it('answer as its users wait for them', () => {
    expectTypeOf(kernel.catalogHash).returns.toEqualTypeOf<Promise<string>>();
    expectTypeOf(kernel.hashJson).returns.toEqualTypeOf<Promise<string>>();
    expectTypeOf(kernel.sha256Hex).returns.toEqualTypeOf<Promise<string>>();
    expectTypeOf(kernel.deriveGrant).returns.toEqualTypeOf<DeriveGrantResult>();
    expectTypeOf(kernel.validateDelegationChain).returns.toEqualTypeOf<Promise<DelegationValidation>>();
    expectTypeOf(kernel.turnAuthorityKey).returns.toEqualTypeOf<string>();
    expectTypeOf(kernel.reportContainedError).returns.toEqualTypeOf<void>();
    expectTypeOf<Awaited<ReturnType<kernel.SharedOSKernel['readAgentCard']>>>().toEqualTypeOf<AgentCardRead>();
    expectTypeOf<Awaited<ReturnType<kernel.SharedOSKernel['openTurnAuthority']>>>().toEqualTypeOf<TurnAuthorityScope>();
    expect(kernel.canonicalJson({ b: 1, a: 2 })).toBe('{"a":2,"b":1}');
  });
});

describe('the constants of the core API', () => {
  it('have the values that its users know', () =>
    expect({
      ...{ AGENT_INVOKE_ACTION: kernel.AGENT_INVOKE_ACTION, EXECUTION_NAMESPACE: kernel.EXECUTION_NAMESPACE },
      ...{ MESSAGE_SEND_ACTION: kernel.MESSAGE_SEND_ACTION, MESSAGING_NAMESPACE: kernel.MESSAGING_NAMESPACE },
      ...{ MESSAGE_REQUEST_TOOL_NAME: kernel.MESSAGE_REQUEST_TOOL_NAME, MESSAGE_TOOL_NAMESPACE: kernel.MESSAGE_TOOL_NAMESPACE },
      ...{ DIRECTORY_NAMESPACE: kernel.DIRECTORY_NAMESPACE, DIRECTORY_READ_ACTION: kernel.DIRECTORY_READ_ACTION },
      DIRECTORY_RESOURCE_ROOT: kernel.DIRECTORY_RESOURCE_ROOT,
      DEFAULT_MAX_DELEGATION_CHAIN_LENGTH: kernel.DEFAULT_MAX_DELEGATION_CHAIN_LENGTH,
      MAX_RESOLVED_GRANTS: kernel.MAX_RESOLVED_GRANTS,
      MID_TURN_AUTHORITY_REFRESH: kernel.MID_TURN_AUTHORITY_REFRESH,
      INFRASTRUCTURE_DENIAL_REASONS: kernel.INFRASTRUCTURE_DENIAL_REASONS.toSorted(),
      CATALOG_HASH_FIELDS: kernel.CATALOG_HASH_FIELDS.toSorted(),
      SPAN: Object.values(kernel.SPAN).toSorted(),
    }).toEqual({
      AGENT_INVOKE_ACTION: 'invoke',
      EXECUTION_NAMESPACE: 'sharedos.execution',
      MESSAGE_SEND_ACTION: 'send',
      MESSAGING_NAMESPACE: 'sharedos.messaging',
      MESSAGE_REQUEST_TOOL_NAME: 'messages.request',
      MESSAGE_TOOL_NAMESPACE: 'messages',
      DIRECTORY_NAMESPACE: 'sharedos',
      DIRECTORY_READ_ACTION: 'read',
      DIRECTORY_RESOURCE_ROOT: ['directory'],
      DEFAULT_MAX_DELEGATION_CHAIN_LENGTH: 16,
      MAX_RESOLVED_GRANTS: 256,
      MID_TURN_AUTHORITY_REFRESH: false,
      INFRASTRUCTURE_DENIAL_REASONS: [
        'authority_unavailable',
        'delegation_chain_unverified',
        'host_policy_unavailable',
        'usage_store_unavailable',
      ],
      CATALOG_HASH_FIELDS: ['annotations', 'description', 'inputSchema', 'metadata', 'name', 'outputSchema'],
      SPAN: [
        'envelope.tool.mediate',
        'envelope.turn',
        'kernel.authority.load',
        'kernel.authorize',
        'kernel.tool.catalogue',
        'kernel.tool.discover',
        'kernel.tool.handler',
        'kernel.tool.invoke',
        'mcp.handle',
      ],
    }));
  it('include the definition of the one tool that the kernel brings', () =>
    expect(kernel.MESSAGE_REQUEST_TOOL_DEFINITION).toMatchObject({
      namespace: 'messages',
      source: 'sharedos',
      readWrite: 'write',
      annotations: { readOnly: false, destructive: true, idempotent: false },
      requiredCapability: { resource: { namespace: 'sharedos.messaging', path: [] }, action: 'send' },
      outputSchema: { type: 'object' },
    }));
});
