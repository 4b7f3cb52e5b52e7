/** One reason code: what it means and who learns what. Where no test is found that names it, the page says so. */
export interface Refusal {
  readonly code: string;
  /** Who answers with it, and as what: a denial, a failure, an outage. */
  readonly boundary: string;
  readonly meaning: string;
  /** "We could not find out": marked fail-closed in audit, and left out of denial rates. */
  readonly infrastructure: boolean;
  readonly caller: string;
  readonly host: string;
}

export interface Section {
  readonly title: string;
  readonly about?: string;
  readonly refusals: readonly Refusal[];
}

type Row = readonly [code: string, boundary: string, meaning: string, caller: string, host: string];

const of =
  (infrastructure: boolean) =>
  (rows: readonly Row[]): readonly Refusal[] =>
    rows.map(([code, boundary, meaning, caller, host]) => ({ code, boundary, meaning, infrastructure, caller, host }));
const rule = of(false);
const outage = of(true);

const NOTHING = 'nothing: the caller hears `authority_unavailable`';
const RECORD = 'the same in the record';
const HOOK = 'the error, by the provider-error hook; never in a record';

/** Every code, by what answers with it. */
export const SECTIONS: readonly Section[] = [
  {
    title: 'Decisions',
    about:
      'In this order where several apply: `invalid_context`, `invalid_request`, what ends a walk at once (`host_policy_unavailable`, `usage_store_unavailable`), an unverified chain, an invalid chain, `host_policy_denied`, `grant_exhausted`, `no_matching_grant`.',
    refusals: [
      ...rule([
        [
          'allowed',
          'decision',
          'one active grant covers the request',
          'the code and the grant',
          'grant, authority hash, whether a use was taken',
        ],
        ['invalid_context', 'decision', 'an unreadable instant, or no purpose or trace', 'the code', 'no grant was looked at'],
        [
          'invalid_request',
          'decision; any edge',
          'no request at all, or over another owner',
          'the code; at an edge the places that were wrong',
          'the decision',
        ],
        [
          'no_matching_grant',
          'decision',
          'no grant covers the request, for any of nine reasons',
          'the code and what would have been enough',
          'why each grant was rejected',
        ],
        ['grant_exhausted', 'decision', 'the uses of a matching grant are spent', 'the code', 'rejection `exhausted`'],
        [
          'delegation_chain_invalid',
          'decision',
          'a chain was read and broke a rule of delegation',
          'the code; of a direct decision also which rule',
          'the rule and the grant at which it broke',
        ],
        [
          'host_policy_denied',
          'decision',
          "the host's ceiling refused every grant that matched",
          'the code',
          "the grant overridden, and the ceiling's own words",
        ],
      ]),
      ...outage([
        [
          'delegation_chain_unverified',
          'decision',
          'a chain could not be read',
          'the code; of a direct decision also why',
          'why, and the grant at which it broke',
        ],
        [
          'usage_store_unavailable',
          'decision; reach',
          'the uses of a bounded grant could not be counted',
          'the code',
          'whether the store is missing',
        ],
        ['host_policy_unavailable', 'decision', 'the ceiling broke, or its policy could not be loaded', 'the code', HOOK],
        [
          'authority_unavailable',
          'before any decision; reach; cards',
          'the grants could not be trusted or not be read',
          'the code',
          'which of the four reasons below',
        ],
      ]),
    ],
  },
  {
    title: 'Why authority was unavailable',
    refusals: outage([
      ['grant_source_failed', 'load of authority', 'the source of grants failed', NOTHING, 'the code'],
      ['invalid_grant_material', 'load of authority', 'not a list, an entry that is no grant, or an id twice', NOTHING, 'the code'],
      [
        'grant_scope_mismatch',
        'load of authority',
        'a grant of another namespace, holder or issuer',
        NOTHING,
        'the code, the grant and which of the three',
      ],
      ['grant_limit_exceeded', 'load of authority', 'more grants than one set may have', NOTHING, 'the code'],
    ]),
  },
  {
    title: 'Why a grant was rejected',
    about: 'The first test that a grant failed, in this order. Callers see none of these.',
    refusals: rule(
      [
        ['issuer', 'not issued by the authority of the context'],
        ['subject', 'not held by the actor of the context'],
        ['namespace', 'of another namespace'],
        ['window', 'outside its time, or revoked'],
        ['purpose', 'for other purposes'],
        ['verifier', "refused by the host's own check"],
        ['capability', 'none of its capabilities covers the request'],
        ['delegation', 'its chain is broken or could not be read'],
        ['exhausted', 'its uses are spent'],
      ].map(([code, meaning]): Row => [code as string, 'walk of the grants', meaning as string, 'nothing', 'the reason beside the grant']),
    ),
  },
  {
    title: 'Tool calls',
    refusals: [
      ...rule([
        ['trace_mismatch', 'kernel, denied', 'the call is of another trace than its context', 'the code', RECORD],
        ['tool_catalog_unavailable', 'kernel, failed', "the turn's tools could not be put together", 'the code', HOOK],
        [
          'tool_unavailable',
          'kernel and envelope, denied',
          'not there, switched off, not offered, or not to be seen',
          'one code and one message for all',
          '`cause`: which of them',
        ],
        ['not_registered', 'cause of `tool_unavailable`', 'no such tool', 'nothing', 'the cause'],
        ['namespace_disabled', 'cause of `tool_unavailable`', 'its tool namespace is off', 'nothing', 'the cause'],
        ['not_offered', 'cause of `tool_unavailable`', 'not in the catalogue of this turn', 'nothing', 'the cause'],
        ['invalid_tool_arguments', 'kernel, failed', 'the arguments do not parse', 'the code', HOOK],
        ['tool_requirement_resolution_failed', 'kernel, failed', 'what the call needs could not be found out', 'the code', HOOK],
        [
          'invalid_tool_requirement',
          'kernel, failed',
          'the call needs what its tool did not declare',
          'the code',
          'no resource in the record',
        ],
        ['tool_execution_failed', 'kernel, failed', 'the handler threw', 'the code', HOOK],
        ['invalid_tool_result', 'kernel, failed', 'the answer is no result of this call, or too large', 'the code', RECORD],
        ['step_limit_exceeded', 'envelope, denied; runtime, failed', 'no step is left', 'the code', RECORD],
        ['tool_call_limit_exceeded', 'envelope, denied', 'no call is left', 'the code', RECORD],
        ['turn_draining', 'envelope, denied', 'the turn is ending and takes nothing new', 'the code', RECORD],
        ['escalation_not_terminated', 'escalate tool, failed', 'a driver called the tool instead of ending the turn', 'the code', RECORD],
        ['escalation_pending', 'MCP bridge, denied', 'the turn has asked for a human', 'the code', 'a count'],
        ['stale_request', 'kernel, denied', 'the call is dated outside its turn, where the host asks for that check', 'the code', RECORD],
      ]),
    ],
  },
  {
    title: 'Resources',
    refusals: rule([
      ['resource_provider_not_found', 'kernel, failed', 'nobody provides that namespace; found out after the decision', 'the code', RECORD],
      ['resource_execution_failed', 'kernel, failed', 'the provider threw', 'the code', HOOK],
      ['invalid_resource_result', 'kernel and standard tools, failed', 'the answer is no result of this operation', 'the code', RECORD],
    ]),
  },
  {
    title: 'Messages',
    refusals: [
      ...rule([
        ['message_context_mismatch', 'kernel and envelope, denied', 'sender, purpose or trace differ from the context', 'the code', RECORD],
        ['message_requirement_resolution_failed', 'kernel, failed', 'what the send needs could not be found out', 'the code', HOOK],
        [
          'message_transport_not_configured',
          'kernel, failed',
          'nothing carries messages; found out after the decision',
          'the code',
          RECORD,
        ],
        [
          'message_delivery_failed',
          'kernel and router, failed',
          'the transport failed, and the message was certainly not delivered',
          'the code',
          HOOK,
        ],
        ['invalid_message_receipt', 'kernel, failed', 'the receipt is none, or of another message', 'the code', RECORD],
        ['message_request_not_prepared', 'request tool, failed', 'called without its authorized envelope', 'the code', RECORD],
        [
          'message_request_not_accepted',
          'request tool, failed',
          'the transport did not accept it',
          'this code alone',
          "the transport's own code",
        ],
        ['message_reply_resolution_failed', 'request tool, failed', 'the reply could not be had', 'the code', HOOK],
        [
          'invalid_message_reply',
          'request tool, failed; messaging-router, denied',
          'the reply does not answer this request',
          'the code',
          RECORD,
        ],
        ['sender_blocked', 'messaging-router, denied', 'the receiver does not hear this sender', 'the code', RECORD],
        ['recipient_rate_limited', 'messaging-router, denied', 'the receiver takes no more messages a minute', 'the code', RECORD],
        ['message_too_large', 'messaging-router, denied', 'the payload is to be passed by reference', 'the code', RECORD],
        ['message_loop', 'messaging-router, denied', 'the receiver waits for what this message is sent for', 'the code', RECORD],
        ['message_hop_limit', 'messaging-router, denied', 'too many messages followed from each other', 'the code', RECORD],
        ['recipient_busy', 'messaging-router, failed', 'too many turns of the receiver wait', 'the code', RECORD],
        [
          'recipient_not_registered',
          'tool-executor and messaging-router, denied',
          'the agent that a message is for is not registered any more',
          'the code',
          RECORD,
        ],
        ['route_closed', 'messaging-router, denied', 'the receiver closed its route: nothing is sent to it', 'the code', RECORD],
        ['parking_full', 'messaging-router, failed', 'the receiver is away, and no more messages may wait for it', 'the code', RECORD],
        [
          'sender_parking_full',
          'messaging-router, failed',
          'the receiver is away, and no more messages of this sender may wait for it',
          'the code',
          RECORD,
        ],
        ['message_expired', 'messaging-router, failed', 'its time was over before it arrived', 'the code', RECORD],
        ['message_not_found', 'messaging-router', 'the caller sent no message of that id', 'the code', 'nothing: nothing was to be done'],
        [
          'delivery_over',
          'messaging-router; tool-executor, denied',
          'the message has arrived or never will: no turn is started by it again',
          'the code',
          RECORD,
        ],
        [
          'not_dispatched',
          'messaging-router; tool-executor, denied',
          'the message waits for a route, so nobody can have received it',
          'the code',
          RECORD,
        ],
        ['route_not_open', 'messaging-router', 'there is no route to close', 'the code', 'nothing: nothing changed'],
        [
          'route_lease_ended',
          'messaging-router',
          'the lease of the route lapsed, was closed, or gave way to another',
          'the code',
          'nothing: nothing changed',
        ],
        ['inbox_full', 'messaging-router, failed', 'the receiver has too many messages waiting', 'the code', RECORD],
      ]),
      ...outage([
        ['inbox_unavailable', 'messaging-router', 'the inbox did not answer in time', 'the code, retryable', 'a span'],
        [
          'delivery_unknown',
          'messaging-router',
          'whether the inbox has the message is not known; ask again with the same one',
          'the code, retryable',
          'a span',
        ],
      ]),
    ],
  },
  {
    title: 'Turns',
    refusals: [
      ...rule([
        ['actor_mismatch', 'envelope, denied', 'the actor is not the agent that is to run', 'the code', RECORD],
        ['receiver_mismatch', 'envelope, denied', 'the message is for somebody else', 'the code', RECORD],
        ['invalid_runtime_outcome', 'envelope, failed', 'the runtime ended with no outcome', 'the code', RECORD],
        [
          'runtime_failed',
          'envelope, failed',
          'the runtime threw, or a port did while the turn was opened',
          'the code',
          'the log of the process',
        ],
        ['driver_failed', 'runtime, failed', 'the driver threw', 'the code, retryable', 'the log of the process'],
        ['invalid_driver_decision', 'runtime, failed', 'the driver decided nothing that there is', 'the code', RECORD],
        [
          'invalid_script',
          'scripted driver, failed',
          'the state of the turn is no script',
          'the code and the places that were wrong',
          RECORD,
        ],
        ['model_call_failed', 'model driver, failed', 'the model did not answer', 'the code', RECORD],
        ['model_output_truncated', 'model driver, failed', 'the model stopped at its limit and not at its end', 'the code', RECORD],
        [
          'model_malformed_call_limit_exceeded',
          'model driver, failed',
          'the model wrote too many calls that could not be read',
          'the code',
          RECORD,
        ],
        [
          'turn_cancelled',
          'envelope, cancelled',
          'its time was up, it was cancelled, or whoever ran it is gone',
          'the code',
          'written as failed, with this reason',
        ],
        [
          'escalation_requested',
          'envelope, escalated',
          'the turn asked for a human',
          'the escalation, and no error',
          'the reason of the record',
        ],
        ['operation_aborted', 'kernel', 'an effect was begun and nobody can tell how it ended', 'the code', RECORD],
        [
          'not_a_trusted_host',
          'tool-executor',
          'the request states a context, which only a configured host may',
          'the code',
          '`turn.ended` denied',
        ],
        ['turn_not_found', 'tool-executor', "the caller has no such turn; another's looks the same", 'the code', 'nothing'],
        ['turn_taken', 'tool-executor', 'the turn was taken while it was being cancelled', 'the code, retryable', 'nothing'],
        [
          'turns_queued_limit_exceeded',
          'tool-executor',
          'more turns of the namespace wait than its setting `turnsQueuedMax`: those in front are refused until no more do',
          'the code, and when to try again',
          '`turn.ended` denied',
        ],
        [
          'request_rate_exceeded',
          'tool-executor',
          'the principals of the namespace asked more often within a second than its setting `requestsPerSecondMax`',
          'the code, and when to try again',
          '`turn.ended` denied of a turn; of other requests the first of each second, `admin.refused`',
        ],
        ['turn_queue_full', 'client', 'the principal has as many turns waiting as it may', 'the code', 'nothing: it never arrived'],
        ['request_too_large', 'client', 'the request is larger than a request may be', 'the code', 'nothing: it was never sent'],
        ['not_permitted', 'client', 'the broker does not let this principal do it', 'the code', "the broker's log"],
      ]),
      ...outage([
        [
          'audit_unavailable',
          'every service',
          'what must be on record before an effect could not be written',
          'the code',
          'a count; there is no record',
        ],
        ['turn_owner_unreachable', 'tool-executor', 'whoever runs the turn did not answer; its lease will end it', 'the code', 'nothing'],
        ['service_overloaded', 'every service', 'too many requests at once', 'the code, retryable', 'a span'],
        ['internal_error', 'every service', 'a defect', 'the code', 'the log of the process'],
      ]),
    ],
  },
  {
    title: 'Replay',
    refusals: [
      ...rule([
        [
          'replay_expired',
          'tool-executor and kernel',
          'dated outside the time in which a request may be sent, or so old that its answer is gone',
          'the code',
          RECORD,
        ],
        [
          'message_not_delivered',
          'messaging-router, failed',
          'an operator found that a message of which nobody could tell was not delivered',
          'the code',
          '`admin.changed` of the finding',
        ],
        ['replay_conflict', 'tool-executor, messaging-router and kernel, denied', 'the id was used for something else', 'the code', RECORD],
      ]),
      ...outage([
        [
          'replay_pending',
          'tool-executor, messaging-router and kernel, failed',
          'the same operation is under way',
          'the code, retryable',
          RECORD,
        ],
        [
          'replay_interrupted',
          'tool-executor and kernel, failed',
          'the same operation was begun and never ended: whether it took effect is not known',
          'the code',
          RECORD,
        ],
        [
          'replay_unavailable',
          'kernel, failed',
          'whether the operation was done before could not be found out, or its answer not be kept',
          'the code',
          RECORD,
        ],
        ['ledger_full', 'tool-executor', 'there is no room to record a new turn', 'the code, retryable', 'the log of the process'],
        [
          'ledger_unavailable',
          'tool-executor and messaging-router',
          'the ledger did not answer in time',
          'the code, retryable',
          'the log of the process',
        ],
      ]),
    ],
  },
  {
    title: 'Delegation, when a grant is passed on',
    refusals: rule(
      [
        ['empty_capabilities', 'nothing is passed on'],
        ['id_collides_with_parent', 'the new grant has the id of its parent'],
        ['bounded_parent_not_delegable', 'the parent has a number of uses; also when a chain is used'],
        ['parent_not_delegable', 'the parent has no depth'],
        ['depth_exhausted', 'more depth is asked for than remains'],
        ['capability_not_within_parent', 'some capability lies outside each of the parent'],
        ['purpose_not_within_parent', 'a purpose that the parent has not'],
        ['window_not_within_parent', 'a start or end outside, or none that can be read'],
        ['issued_before_parent', 'dated before its parent'],
      ].map(([code, meaning]): Row => [code as string, '`deriveGrant` and `grant.derive`', meaning as string, 'the code', RECORD]),
    ),
  },
  {
    title: 'Delegation, when a chain is used',
    about: 'The caller of a direct decision hears which rule, and never at which grant.',
    refusals: [
      ...rule(
        [
          ['namespace_mismatch', 'the parent is of another namespace'],
          ['issuer_not_parent_subject', 'whoever issued it does not hold the parent'],
          ['parent_inactive', 'an ancestor is outside its time, revoked or for other purposes'],
          ['delegation_not_permitted', 'the parent has no depth'],
          ['delegation_depth_exceeded', 'the depth does not shrink'],
          ['capability_widened', 'a capability lies outside each of the parent'],
          ['constraints_widened', 'a time or purpose lies outside, or is left out where the parent has one'],
          ['chain_cycle', 'the chain comes back to itself'],
          ['chain_too_long', 'more than 16 ancestors'],
        ].map(([code, meaning]): Row => [
          code as string,
          'decision, `delegation_chain_invalid`',
          meaning as string,
          'the code',
          'the code and the grant',
        ]),
      ),
      ...outage(
        [
          ['resolver_unavailable', 'nothing can look ancestors up'],
          ['parent_not_found', 'there is no such ancestor'],
          ['resolver_failed', 'the ancestor could not be looked up, or another was found'],
        ].map(([code, meaning]): Row => [
          code as string,
          'decision, `delegation_chain_unverified`',
          meaning as string,
          'the code',
          'the code and the grant',
        ]),
      ),
    ],
  },
  {
    title: 'Management',
    refusals: [
      ...rule([
        [
          'identity_mismatch',
          'every service',
          'the body names another principal than the one that the broker let through',
          'the code',
          '`admin.refused`, where something was to be changed',
        ],
        ['grant_exists', 'authorizer', 'the id is or was that of a grant', 'the code', '`admin.refused`'],
        ['grant_id_reserved', 'authorizer', 'ids of this kind are those of answers to questions', 'the code', '`admin.refused`'],
        ['grant_not_found', 'authorizer', 'there is no such grant in this namespace', 'the code', '`admin.refused`'],
        ['not_the_issuer', 'authorizer', 'only its issuer revokes a grant', 'the code', '`admin.refused`'],
        ['not_the_holder', 'authorizer', 'only its holder passes a grant on', 'the code', '`admin.refused`'],
        ['command_too_large', 'authorizer', 'the command does not fit into the log', 'the code', '`admin.refused`'],
        [
          'not_an_administrator',
          'authorizer; tool-executor',
          'the caller is no root principal of the namespace and holds no grant of one over this part of `sharedos.admin`',
          'the code',
          '`admin.refused`, and the decision where one was made',
        ],
        [
          'version_conflict',
          'authorizer; tool-executor',
          'the policy, the settings, the agent or the operation changed since the version that the command states',
          'the code, and the version there is',
          '`admin.refused`',
        ],
        ['operation_not_found', 'tool-executor', 'the ledger knows no such turn or message of this principal', 'the code', 'nothing'],
        [
          'operation_not_unknown',
          'tool-executor',
          'there is nothing to find out about this call: it runs, has an answer, or never started',
          'the code',
          '`admin.refused`',
        ],
        [
          'operation_resolved_otherwise',
          'tool-executor',
          'something else was found out of this call before, and the first finding stands',
          'the code',
          '`admin.refused`',
        ],
        ['operation_expired', 'tool-executor', 'all that is known of the operation is what it was called', 'the code', '`admin.refused`'],
        ['operation_moved', 'tool-executor', 'something was recorded of the operation at this moment', 'the code, retryable', 'nothing'],
        ['policy_invalid', 'authorizer', 'the policy means nothing in its language', 'the code, and why', '`admin.refused`'],
        ['too_many_stops', 'authorizer', 'as many stops are in force as a namespace may have', 'the code', '`admin.refused`'],
        ['not_stopped', 'authorizer', 'what is to be resumed is not stopped', 'the code', '`admin.refused`'],
        ['agent_not_found', 'authorizer', 'there is no such agent, or none that concerns the caller', 'the code', '`admin.refused`'],
        [
          'too_many_tool_namespaces',
          'rules of tool settings',
          'more tool namespaces would be on than may be',
          'the code',
          '`admin.refused`',
        ],
        ['mcp_server_exists', 'rules of MCP servers', 'the owner has another server under this name', 'the code', '`admin.refused`'],
        ['mcp_server_not_found', 'rules of MCP servers', 'the owner has no server under this name', 'the code', '`admin.refused`'],
        ['too_many_mcp_servers', 'rules of MCP servers', 'the owner has as many servers as it may have', 'the code', '`admin.refused`'],
        [
          'too_many_mcp_tools',
          'rules of MCP servers',
          'the approved tools are too many, or their definitions too large',
          'the code',
          '`admin.refused`',
        ],
        [
          'mcp_tool_refused',
          'rules of MCP servers',
          'two names are one without dots, or what a tool needs names no resource',
          'the code, and why',
          '`admin.refused`',
        ],
        ['mcp_place_refused', 'tool-executor', 'the operator lets nobody connect there', 'the code', 'nothing'],
        ['mcp_list_changed', 'tool-executor', 'the server tells of other tools than those that were seen', 'the code', 'nothing'],
        ['mcp_secret_refused', 'tool-executor', 'the server has no use for a secret of this name, or has too many', 'the code', 'nothing'],
        ['escalation_not_found', 'rules of escalation', 'there is no such question', 'the code', '`admin.refused`'],
        ['escalation_answered', 'rules of escalation', 'the question was answered before', 'the code', '`admin.refused`'],
        ['escalation_expired', 'rules of escalation', 'the time to approve the question is over', 'the code', '`admin.refused`'],
        ['escalation_not_expired', 'rules of escalation', 'the question may still be answered', 'the code', '`admin.refused`'],
        [
          'not_the_reviewer',
          'rules of escalation',
          'only its reviewer, the owner and whom the owner lets review answer a question',
          'the code',
          '`admin.refused`',
        ],
        ['not_the_requester', 'rules of escalation', 'only who asked withdraws a question', 'the code', '`admin.refused`'],
        [
          'issuer_not_authority',
          'rules of escalation',
          'the grant is not of the authority that the next turn carries',
          'the code',
          '`admin.refused`',
        ],
        ['subject_not_requester', 'rules of escalation', 'the grant is to somebody else than who asked', 'the code', '`admin.refused`'],
        [
          'purpose_not_requested',
          'rules of escalation',
          'the grant is not for the one purpose of the question',
          'the code',
          '`admin.refused`',
        ],
        ['answer_must_expire', 'rules of escalation', 'the grant has no end', 'the code', '`admin.refused`'],
        [
          'issuer_not_owner',
          'rules of escalation',
          'the turn did not run under the owner of what is to be granted',
          'the code',
          '`admin.refused`',
        ],
        [
          'too_many_questions',
          'authorizer',
          'whoever asks has as many questions open as it may',
          'its turn ends `audit_unavailable`; a refused call is refused all the same',
          'as that',
        ],
        ['nothing_to_grant', 'rules of escalation', 'neither question nor answer names any authority', 'the code', '`admin.refused`'],
        ['bound_to_one_call', 'rules of escalation', 'an answer about one call allows it once', 'the code', '`admin.refused`'],
        ['answer_delegable', 'rules of escalation', 'the grant may be passed on', 'the code', '`admin.refused`'],
        ['not_a_root', 'audit-projector', 'records are read by root principals', 'the code', '`admin.refused`'],
      ]),
      ...outage([
        [
          'log_unavailable',
          'authorizer',
          'the log did not answer in time; send the command again with the same id',
          'the code, retryable',
          'a span',
        ],
        ['records_unavailable', 'audit-projector', 'the read model is behind the records', 'the code, retryable', 'a span'],
        ['record_not_found', 'audit-projector', 'no decision is recorded under the id', 'the code', 'a span'],
      ]),
    ],
  },
  {
    title: 'Files',
    about: 'Of the provider behind `files.*`: the authority to do it was there.',
    refusals: [
      ...rule(
        [
          ['file_not_found', 'there is no such file or folder'],
          ['file_exists', 'something is there already'],
          ['not_a_file', 'it is not a regular file'],
          ['not_a_directory', 'a part of the path is no folder'],
          ['file_too_large', 'larger than this host takes'],
          ['path_refused', 'the path cannot name a file here'],
          ['path_not_confined', 'the path leads through a link'],
          ['version_mismatch', 'the file has another version by now'],
          ['content_refused', 'the content is neither text nor base64'],
          ['metadata_too_large', 'more metadata than is kept beside a file'],
          ['folder_not_empty', 'the folder holds something, and recursive was not said'],
          ['holds_repository', 'a repository lies in the folder, and its history is no matter of files'],
          ['pattern_refused', 'no regular expression of RE2'],
          ['snapshot_not_found', 'no such snapshot covers the path'],
          ['snapshot_limit', 'larger, or one more, than is kept'],
          ['snapshot_damaged', 'what was kept is not what is read back'],
          ['invalid_input', 'the input does not fit the action'],
          ['action_not_supported', 'this host does not know the action'],
          ['operation_cancelled', 'cancelled before anything was written'],
          ['file_not_accessible', 'the host itself may not do this'],
        ].map(([code, meaning]): Row => [code as string, 'files provider, failed', meaning as string, 'the code', RECORD]),
      ),
      ...outage([
        ['file_busy', 'files provider, failed', 'too many others are writing here', 'the code, retryable', RECORD],
        ['search_timed_out', 'files provider, failed', 'the search took longer than it is given', 'the code, retryable', RECORD],
        ['files_unavailable', 'files provider, failed', 'the files cannot be reached', 'the code, retryable', RECORD],
      ]),
    ],
  },
  {
    title: 'MCP servers as tools',
    about: 'Of the tools `mcp.<server>.<tool>`: the authority to call them was there.',
    refusals: [
      ...rule([
        ['mcp_tool_changed', 'MCP tools, denied', 'the tool is not any more what was approved', 'the code', RECORD],
        ['mcp_call_interrupted', 'MCP tools, failed', 'the server went away during the call', 'the code', RECORD],
        ['mcp_call_timed_out', 'MCP tools, failed', 'the server did not answer in time', 'the code', RECORD],
        ['mcp_tool_failed', 'MCP tools, failed', 'the server answered that the call failed', 'the code, and what it says', RECORD],
        ['mcp_list_refused', 'MCP tools, failed', 'what the server says of its tools is more than is taken', 'the code', RECORD],
      ]),
      ...outage([
        ['mcp_server_unavailable', 'MCP tools, failed; tool-executor', 'the server cannot be reached', 'the code, retryable', RECORD],
      ]),
    ],
  },
  {
    title: 'Repositories',
    about: 'Of the provider behind `repo.*`, beside those of files: the authority to do it was there.',
    refusals: [
      ...rule(
        [
          ['repo_not_found', 'there is no repository at the path'],
          ['repo_not_supported', 'it keeps its parts elsewhere, or in a form that is not followed'],
          ['repo_conflicted', 'a merge or rebase left it in between'],
          ['repo_too_large', 'larger than this host looks through'],
          ['pathspec_unmatched', 'a path to stage names nothing'],
          ['nothing_to_commit', 'nothing is staged'],
          ['git_failed', 'git did not do what it was asked to'],
        ].map(([code, meaning]): Row => [code as string, 'repo provider, failed', meaning as string, 'the code', RECORD]),
      ),
      ...outage([
        ['repo_busy', 'repo provider, failed', 'another program is changing the repository', 'the code, retryable', RECORD],
        ['git_unavailable', 'repo provider, failed', 'the host has no git that it can run', 'the code, retryable', RECORD],
      ]),
    ],
  },
  {
    title: 'Answers by precedent',
    about: 'In this order. Given to the control plane that asked; an escalation that is not answered waits for a human as before.',
    refusals: rule(
      (
        [
          ['auto_decision_unmarked', 'the proposal names no matcher'],
          ['no_precedent_cited', 'it cites no precedent'],
          ['empty_proposed_capability', 'it allows nothing'],
          [
            'precedent_unavailable',
            'the precedents could not be read, are not exactly those cited, are too old, or leave out the newest answer',
          ],
          ['precedent_not_this_owner', "a precedent is another owner's or another namespace's"],
          ['allow_cites_refusal', 'an allow leans on a refusal, or on what a later refusal overtook'],
          ['precedent_not_this_requester', "an allow leans on another requester's approval"],
          ['wider_than_precedent', 'an allow exceeds a cited approval, or the same question was approved in part alone'],
          ['wider_than_request', 'an allow exceeds the ask'],
          ['envelope_unsatisfiable', 'the limits of the cited approvals leave nothing in common'],
        ] as const
      ).map(([code, meaning]): Row => [code, 'admission of a precedent', meaning, 'nothing', 'the code']),
    ),
  },
  {
    title: 'Harnesses',
    about: 'A harness or its adapter ends its own turn: failed, by the runtime. A vendor that states a code of its own keeps it.',
    refusals: rule(
      (
        [
          ['harness_not_started', 'there is no such program, or it could not be prepared'],
          ['harness_exited_without_outcome', 'it ended badly and without a word on how'],
          ['harness_failed', 'it says that it failed, without a code; may be tried again'],
          ['harness_ended_without_outcome', 'one that is driven ended before it decided'],
          ['harness_frame_limit_exceeded', 'it said more than one turn may'],
          ['harness_arguments_unparseable', 'one that is driven called a tool with what is no object'],
          ['harness_command_rejected', 'one that is driven would not do what it was told; may be tried again'],
        ] as const
      ).map(([code, meaning]): Row => [code, 'harness, failed', meaning, 'the code', RECORD]),
    ),
  },
  {
    title: 'HTTP and MCP',
    about: 'Before anybody is known, so no record is written. What was decided about a call is never one of them: it is a result.',
    refusals: rule([
      ['invalid_json', 'HTTP, 400', 'the body is not JSON, or names a member twice', 'the code', 'nothing'],
      ['unauthorized', 'HTTP, 401', 'no bearer token that names a known principal, or not that of this session', 'the code', 'nothing'],
      ['permission_denied', 'HTTP, 403', 'a page in a browser asks', 'the code', 'nothing'],
      ['not_found', 'HTTP, 404', 'there is nothing at the path', 'the code', 'nothing'],
      ['unknown_session', 'MCP over HTTP, 404', "another bridge's session", 'the code', 'nothing'],
      ['method_not_allowed', 'HTTP, 405', 'a known path, another method', 'the code', 'nothing'],
      ['body_too_large', 'HTTP, 413', 'a message larger than one may be', 'the code', 'nothing'],
      ['malformed', 'session token', 'its shape or its claims are not those of a token', '`unauthorized`', 'the code'],
      ['signature_mismatch', 'session token', 'another key, or other claims than were signed', '`unauthorized`', 'the code'],
      ['expired', 'session token', 'its end has passed', '`unauthorized`', 'the code'],
      ['claims_mismatch', 'session token', 'it is for another session', '`unauthorized`', 'the code'],
    ]),
  },
];
