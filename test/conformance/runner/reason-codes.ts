import { AuthorityUnavailableCode } from '@sharedos/contracts';

/**
 * The codes that our specification fixes and the kernel or the envelope produces, by the section of the list they are in.
 *
 * @see spec/reason-codes.md
 */
export const REASON_CODES = {
  authorizer: [
    ...['allowed', 'invalid_context', 'invalid_request', 'no_matching_grant', 'grant_exhausted', 'delegation_chain_invalid'],
    ...['delegation_chain_unverified', 'usage_store_unavailable', 'host_policy_denied', 'host_policy_unavailable', 'authority_unavailable'],
  ],
  authority: AuthorityUnavailableCode.options,
  rejections: ['issuer', 'subject', 'namespace', 'window', 'purpose', 'verifier', 'capability', 'delegation', 'exhausted'],
  tools: [
    ...['trace_mismatch', 'tool_catalog_unavailable', 'tool_unavailable', 'invalid_tool_arguments', 'tool_requirement_resolution_failed'],
    ...['invalid_tool_requirement', 'tool_execution_failed', 'invalid_tool_result', 'step_limit_exceeded', 'tool_call_limit_exceeded'],
    ...[
      'escalation_not_terminated',
      'stale_request',
      'turn_draining',
      'escalation_pending',
      'not_registered',
      'namespace_disabled',
      'not_offered',
    ],
  ],
  resources: ['resource_provider_not_found', 'resource_execution_failed', 'invalid_resource_result'],
  messages: [
    ...['message_context_mismatch', 'message_requirement_resolution_failed', 'message_transport_not_configured', 'message_delivery_failed'],
    ...['invalid_message_receipt', 'message_request_not_prepared', 'message_request_not_accepted', 'message_reply_resolution_failed'],
    'invalid_message_reply',
  ],
  turns: [
    ...['actor_mismatch', 'receiver_mismatch', 'invalid_runtime_outcome', 'runtime_failed', 'driver_failed', 'invalid_driver_decision'],
    ...['turn_cancelled', 'escalation_requested', 'audit_unavailable', 'operation_aborted'],
  ],
  delegation: [
    ...['empty_capabilities', 'id_collides_with_parent', 'bounded_parent_not_delegable', 'parent_not_delegable', 'depth_exhausted'],
    ...['capability_not_within_parent', 'purpose_not_within_parent', 'window_not_within_parent', 'issued_before_parent'],
    ...['namespace_mismatch', 'issuer_not_parent_subject', 'parent_inactive', 'delegation_not_permitted', 'delegation_depth_exceeded'],
    ...['capability_widened', 'constraints_widened', 'chain_cycle', 'chain_too_long'],
    ...['resolver_unavailable', 'parent_not_found', 'resolver_failed'],
  ],
} as const;

export const OUR_CODES: ReadonlySet<string> = new Set(Object.values(REASON_CODES).flat());

/** The resource namespaces of spec/contracts.md §1 that the kernel itself gives a meaning. */
export const RESOURCE_NAMESPACES = ['files', 'repo', 'sharedos.messaging', 'sharedos.execution', 'sharedos'] as const;
