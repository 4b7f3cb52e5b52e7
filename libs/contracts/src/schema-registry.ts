import type { z } from 'zod';
import * as access from './access.ts';
import { AgentCard, ReachSummary } from './agent-card.ts';
import * as audit from './audit.ts';
import { ContextCapsule } from './capsule.ts';
import { ProtocolError } from './errors.ts';
import * as execution from './execution.ts';
import * as grants from './grants.ts';
import { ApiErrorResponse, Health } from './http.ts';
import { MessageRequestArguments } from './message-request.ts';
import * as messages from './messages.ts';
import * as operations from './operations.ts';
import { Address, AgentAddress } from './principals.ts';
import { Hash, Id, Path, Purpose } from './scalars.ts';
import type { SubjectVerb } from './subjects.ts';
import { Ts } from './time.ts';
import * as toolNamespaces from './tool-namespaces.ts';
import * as tools from './tools.ts';
import * as agentWire from './wire/agent.ts';
import * as authorityWire from './wire/authority.ts';
import * as viewsWire from './wire/authority-views.ts';
import * as escalationWire from './wire/escalation.ts';
import * as grantWire from './wire/grant.ts';
import * as ledgerWire from './wire/ledger.ts';
import * as logWire from './wire/log.ts';
import * as mcpWire from './wire/mcp.ts';
import * as messageWire from './wire/message.ts';
import * as deliveryWire from './wire/delivery.ts';
import * as routeWire from './wire/route.ts';
import * as namespaceWire from './wire/namespace.ts';
import * as operationWire from './wire/operation.ts';
import * as policyWire from './wire/policy.ts';
import * as recordsWire from './wire/records.ts';
import * as recomputeWire from './wire/recompute.ts';
import { Revision } from './wire/revision.ts';
import * as settingsWire from './wire/settings.ts';
import * as toolSettingsWire from './wire/tool-settings.ts';
import * as runtimeWire from './wire/runtime.ts';
import * as sealWire from './wire/seal.ts';
import * as turnWire from './wire/turn.ts';
import type { WireMessage } from './wire/wire.ts';

/** The public contracts by name, as they are published in `schemas/contracts`. A released name keeps its shape. */
export const PUBLIC_CONTRACTS = {
  Id,
  Purpose,
  Path,
  Ts,
  Hash,
  Revision,
  Address,
  AgentAddress,
  ProtocolError,
  ResourceRef: grants.ResourceRef,
  Capability: grants.Capability,
  CapabilityRequirement: grants.CapabilityRequirement,
  CapabilityConstraints: grants.CapabilityConstraints,
  CapabilityGrant: grants.CapabilityGrant,
  CapabilityRequest: grants.CapabilityRequest,
  CapabilityRequestPayload: grants.CapabilityRequestPayload,
  AccessContext: access.AccessContext,
  AuthorizationDecision: access.AuthorizationDecision,
  AuthoritySnapshot: access.AuthoritySnapshot,
  ReachResult: access.ReachResult,
  ResourceReach: access.ResourceReach,
  AgentCard,
  ReachSummary,
  AuditEvent: audit.AuditEvent,
  ToolDefinition: tools.ToolDefinition,
  ToolCall: tools.ToolCall,
  ToolResult: tools.ToolResult,
  PublishedTool: tools.PublishedTool,
  ToolCatalog: tools.ToolCatalog,
  ToolNamespaceDescriptor: toolNamespaces.ToolNamespaceDescriptor,
  ToolNamespaceCatalog: toolNamespaces.ToolNamespaceCatalog,
  ToolNamespaceUpdate: toolNamespaces.ToolNamespaceUpdate,
  ToolPolicy: toolNamespaces.ToolPolicy,
  ResourceOperation: operations.ResourceOperation,
  ResourceInvocationRequest: operations.ResourceInvocationRequest,
  ResourceResult: operations.ResourceResult,
  MessageEnvelope: messages.MessageEnvelope,
  DeliveryResult: messages.DeliveryResult,
  MessageRequestArguments,
  ContextCapsule,
  ApiErrorResponse,
  Health,
  ExecutionOptions: execution.ExecutionOptions,
  ExecutionRequest: execution.ExecutionRequest,
  RemoteExecutionRequest: execution.RemoteExecutionRequest,
  RuntimeExecutionRequest: execution.RuntimeExecutionRequest,
  ExecutionEvent: execution.ExecutionEvent,
  ExecutionResult: execution.ExecutionResult,
  Escalation: execution.Escalation,
  RuntimeManifest: execution.RuntimeManifest,
  RuntimeEvent: execution.RuntimeEvent,
  RuntimeTurnOutcome: execution.RuntimeTurnOutcome,
  RemoteDecision: runtimeWire.RemoteDecision,
  LogEvent: logWire.LogEvent,
  GrantEvent: logWire.GrantEvent,
  PolicyDocument: policyWire.PolicyDocument,
  PolicyEvent: policyWire.PolicyEvent,
  NamespaceSettings: settingsWire.NamespaceSettings,
  SettingsEvent: settingsWire.SettingsEvent,
  ToolSettingsEvent: toolSettingsWire.ToolSettingsEvent,
  McpEvent: mcpWire.McpEvent,
  AgentEvent: agentWire.AgentEvent,
  EscalationEvent: escalationWire.EscalationEvent,
  EscalationNotice: escalationWire.EscalationNotice,
} as const satisfies Readonly<Record<string, z.ZodType>>;

/** What a subject carries: the bodies published on it and, for a request, the body of the answer. */
export interface SubjectBodies {
  readonly carries: readonly WireMessage<unknown>[];
  readonly reply?: WireMessage<unknown>;
}

const bodies = (carries: readonly WireMessage<unknown>[], reply?: WireMessage<unknown>): SubjectBodies =>
  reply === undefined ? { carries } : { carries, reply };

/** One schema a subject: complete by its type, so a new row of the subject table cannot be left without its bodies. */
export const SUBJECT_BODIES: Readonly<Record<SubjectVerb, SubjectBodies>> = {
  'turn.request': bodies([turnWire.TurnRequest]),
  'turn.cancel': bodies([turnWire.TurnCancel], turnWire.TurnCancelReply),
  'turn.list': bodies([turnWire.TurnList], turnWire.TurnListReply),
  'turn.get': bodies([turnWire.TurnGet], turnWire.TurnGetReply),
  'turn.result': bodies([turnWire.TurnResult]),
  'turn.event': bodies([turnWire.TurnEvent]),
  'turn.refused': bodies([turnWire.TurnRefused]),
  'operation.show': bodies([operationWire.OperationShow], operationWire.OperationReply),
  'operation.list': bodies([operationWire.OperationList], operationWire.OperationListReply),
  'operation.resolve': bodies([operationWire.OperationResolve], operationWire.OperationReply),
  'turn.recipient': bodies([messageWire.RecipientTurn]),
  'runtime.step': bodies([runtimeWire.RuntimeStep], runtimeWire.RuntimeStepReply),
  'execution.control': bodies([turnWire.ExecutionControl], turnWire.ExecutionControlReply),
  'grant.issue': bodies([grantWire.GrantIssue], grantWire.GrantReply),
  'grant.derive': bodies([grantWire.GrantDerive], grantWire.GrantReply),
  'grant.revoke': bodies([grantWire.GrantRevoke], grantWire.GrantReply),
  'grant.get': bodies([grantWire.GrantGet], grantWire.GrantReply),
  'grant.list': bodies([grantWire.GrantList], grantWire.GrantListReply),
  'grant.tree': bodies([viewsWire.GrantTree], viewsWire.GrantTreeReply),
  'grant.watch': bodies([viewsWire.GrantWatch], viewsWire.GrantWatchReply),
  'grant.explain': bodies([viewsWire.GrantExplain], viewsWire.GrantExplainReply),
  'grant.who': bodies([viewsWire.GrantWho], viewsWire.GrantWhoReply),
  'policy.set': bodies([policyWire.PolicySetRequest], policyWire.PolicyReply),
  'policy.get': bodies([policyWire.PolicyGet], policyWire.PolicyReply),
  'policy.stop': bodies([policyWire.PolicyStop], policyWire.PolicyStopReply),
  'policy.resume': bodies([policyWire.PolicyResume], policyWire.PolicyReply),
  'settings.set': bodies([settingsWire.SettingsSetRequest], settingsWire.SettingsReply),
  'settings.get': bodies([settingsWire.SettingsGet], settingsWire.SettingsReply),
  'agent.register': bodies([agentWire.AgentRegister], agentWire.AgentReply),
  'agent.withdraw': bodies([agentWire.AgentWithdraw], agentWire.AgentReply),
  'agent.get': bodies([agentWire.AgentGet], agentWire.AgentReply),
  'tools.list': bodies([toolSettingsWire.ToolsList], toolSettingsWire.ToolsPageReply),
  'tools.namespaces': bodies([toolSettingsWire.ToolsNamespaces], toolSettingsWire.ToolNamespacesReply),
  'tools.update': bodies([toolSettingsWire.ToolsUpdate], toolSettingsWire.ToolNamespacesReply),
  'mcp.add': bodies([mcpWire.McpAdd], mcpWire.McpServersReply),
  'mcp.list': bodies([mcpWire.McpList], mcpWire.McpServersReply),
  'mcp.inspect': bodies([mcpWire.McpInspect], mcpWire.McpInspectReply),
  'mcp.approve': bodies([mcpWire.McpApprove], mcpWire.McpServersReply),
  'mcp.remove': bodies([mcpWire.McpRemove], mcpWire.McpServersReply),
  'mcp.secret': bodies([mcpWire.McpSecret], mcpWire.McpSecretReply),
  'escalation.list': bodies([escalationWire.EscalationList], escalationWire.EscalationListReply),
  'escalation.show': bodies([escalationWire.EscalationShow], escalationWire.EscalationReply),
  'escalation.resolve': bodies([escalationWire.EscalationResolve], escalationWire.EscalationReply),
  'escalation.open': bodies([escalationWire.EscalationOpen], escalationWire.EscalationOpenReply),
  'authority.open': bodies([authorityWire.AuthorityOpen], authorityWire.AuthorityOpenReply),
  'authority.decide': bodies([authorityWire.AuthorityDecide], authorityWire.AuthorityDecideReply),
  'authority.tools': bodies([toolSettingsWire.AuthorityTools], toolSettingsWire.AuthorityToolsReply),
  'authority.mcp': bodies([mcpWire.AuthorityMcp], mcpWire.AuthorityMcpReply),
  'authority.namespace': bodies([namespaceWire.AuthorityNamespace], namespaceWire.AuthorityNamespaceReply),
  'authority.reach': bodies([authorityWire.AuthorityReach], authorityWire.AuthorityReachReply),
  'authority.explain': bodies([viewsWire.AuthorityExplain], viewsWire.AuthorityExplainReply),
  'authority.who': bodies([viewsWire.AuthorityWho], viewsWire.AuthorityWhoReply),
  'authority.recompute': bodies([recomputeWire.AuthorityRecompute], recomputeWire.AuthorityRecomputeReply),
  'authority.retrace': bodies([recomputeWire.AuthorityRetrace], recomputeWire.AuthorityRetraceReply),
  'authority.lineage': bodies([recomputeWire.AuthorityLineage], recomputeWire.AuthorityLineageReply),
  'usage.distrust': bodies([authorityWire.UsageDistrust], authorityWire.UsageDistrustReply),
  'usage.held': bodies([authorityWire.UsageHeld], authorityWire.UsageHeldReply),
  'usage.release': bodies([authorityWire.UsageRelease], authorityWire.UsageReleaseReply),
  'message.send': bodies([messageWire.MessageSend], messageWire.MessageSendReply),
  'message.inbox': bodies([messageWire.MessageInbox], messageWire.MessageInboxReply),
  'message.ack': bodies([messageWire.MessageAck], messageWire.MessageAckReply),
  'message.rules': bodies([messageWire.MessageRules], messageWire.MessageRulesReply),
  'message.route': bodies([routeWire.MessageRoute], routeWire.MessageRouteReply),
  'message.status': bodies([deliveryWire.MessageStatus], deliveryWire.MessageStatusReply),
  'message.take': bodies([deliveryWire.MessageTake], deliveryWire.MessageTakeReply),
  'message.deliver': bodies([messageWire.MessageDeliver], messageWire.MessageDeliverReply),
  'message.answer': bodies([messageWire.MessageAnswer], messageWire.MessageAnswerReply),
  inbox: bodies([messageWire.InboxMessage]),
  inboxrules: bodies([messageWire.InboxRulesMessage]),
  route: bodies([routeWire.RouteRecord]),
  parked: bodies([deliveryWire.ParkedMessage]),
  reply: bodies([messageWire.ReplyMessage]),
  audit: bodies([recordsWire.AuditRecordMessage]),
  'feed.audit': bodies([recordsWire.AuditRecordMessage]),
  seal: bodies([sealWire.SealedHeadMessage]),
  'feed.seal': bodies([sealWire.SealedHeadMessage]),
  'records.replay': bodies([recordsWire.RecordsReplay], recordsWire.RecordsReplayReply),
  'records.summary': bodies([recordsWire.RecordsSummary], recordsWire.RecordsSummaryReply),
  'records.query': bodies([recordsWire.RecordsQuery], recordsWire.RecordsQueryReply),
  'records.recompute': bodies([recomputeWire.RecordsRecompute], recomputeWire.RecordsRecomputeReply),
  'records.explain': bodies([recomputeWire.RecordsExplain], recomputeWire.RecordsExplainReply),
  'records.blame': bodies([recomputeWire.RecordsBlame], recomputeWire.RecordsBlameReply),
  ledger: bodies([ledgerWire.LedgerRecordMessage, ledgerWire.UseClaimMessage, ledgerWire.UseReleasedMessage]),
  log: bodies([logWire.LogRecordMessage]),
};

/** Every body on the wire by its released name, the value of the `sharedos-schema` header. */
export const WIRE_MESSAGES: ReadonlyMap<string, WireMessage<unknown>> = new Map(
  Object.values(SUBJECT_BODIES)
    .flatMap(({ carries, reply }) => (reply === undefined ? carries : [...carries, reply]))
    .map((message) => [message.name, message]),
);
