import { type Route, route } from '@sharedos/bus';
import {
  AgentGet,
  AgentRegister,
  AgentReply,
  AgentWithdraw,
  AuthorityDecide,
  AuthorityDecideReply,
  AuthorityExplain,
  AuthorityExplainReply,
  AuthorityLineage,
  AuthorityLineageReply,
  AuthorityMcp,
  AuthorityMcpReply,
  AuthorityNamespace,
  AuthorityNamespaceReply,
  AuthorityTools,
  AuthorityToolsReply,
  AuthorityOpen,
  AuthorityOpenReply,
  AuthorityReach,
  AuthorityReachReply,
  AuthorityRecompute,
  AuthorityRecomputeReply,
  AuthorityRetrace,
  AuthorityRetraceReply,
  AuthorityWho,
  AuthorityWhoReply,
  EscalationList,
  EscalationListReply,
  EscalationOpen,
  EscalationOpenReply,
  EscalationReply,
  EscalationResolve,
  EscalationShow,
  GrantDerive,
  GrantExplain,
  GrantExplainReply,
  GrantGet,
  GrantIssue,
  GrantList,
  GrantListReply,
  GrantReply,
  GrantRevoke,
  GrantTree,
  GrantTreeReply,
  GrantWatch,
  GrantWatchReply,
  GrantWho,
  GrantWhoReply,
  PolicyGet,
  PolicyReply,
  PolicyResume,
  PolicySetRequest,
  PolicyStop,
  PolicyStopReply,
  SettingsGet,
  SettingsReply,
  SettingsSetRequest,
  UsageDistrust,
  UsageDistrustReply,
  UsageHeld,
  UsageHeldReply,
  UsageRelease,
  UsageReleaseReply,
} from '@sharedos/contracts';
import { ActRecords } from './changes/act-records.ts';
import { chooseTools } from './changes/choose-tools.ts';
import { decideAuthority } from './turns/decide-authority.ts';
import { deriveGrant } from './changes/derive-grant.ts';
import { distrustUsage } from './turns/distrust-usage.ts';
import { openEscalation } from './escalations/open-escalation.ts';
import { listEscalations, showEscalation } from './escalations/read-escalations.ts';
import { resolveEscalation } from './escalations/resolve-escalation.ts';
import { reviewRight } from './escalations/review-right.ts';
import { NO_TIDINGS } from './escalations/tidings.ts';
import { explainForPrincipal, explainForService } from './turns/explain-authority.ts';
import { grantLineage } from './fold/grant-lineage.ts';
import { grantTree } from './fold/grant-tree.ts';
import { HostPolicies } from './fold/host-policies.ts';
import { issueGrant } from './changes/issue-grant.ts';
import { LogHistory } from './recompute/log-history.ts';
import { openAuthority } from './turns/open-authority.ts';
import type { CommandPorts, Ports } from './ports.ts';
import { reachAuthority } from './turns/reach-authority.ts';
import { recomputeDecisions } from './recompute/recompute-decisions.ts';
import { readNamespace } from './turns/read-namespace.ts';
import { getAgent, registerAgent, withdrawAgent } from './changes/register-agent.ts';
import { heldUses, releaseUses } from './turns/release-uses.ts';
import { getGrant, listGrants } from './views/read-grants.ts';
import { retraceDecision } from './recompute/retrace-decision.ts';
import { revokeGrant } from './changes/revoke-grant.ts';
import { ownMcpServers } from './changes/own-mcp-servers.ts';
import { getPolicy, resumeStopped, setPolicy } from './changes/set-policy.ts';
import { getSettings, setSettings } from './changes/set-settings.ts';
import { stopTarget } from './changes/stop-target.ts';
import { TurnAuthorities } from './turns/turn-authorities.ts';
import { watchGrants } from './views/watch-grants.ts';
import { whoForPrincipal, whoForService } from './views/who-holds.ts';

/**
 * All that the authorizer answers, on one screen: commands on grants and on what a namespace is beside them, and questions of open
 * turns.
 *
 * @param records Of acts; the caller keeps them when it has to know that they were written.
 * @param history Of the log; the caller keeps it to end it with the service.
 */
export const composeAuthorizer = (
  given: Ports,
  records: ActRecords = new ActRecords(given.audit),
  history: LogHistory = new LogHistory(given.store),
): readonly Route[] => {
  const ports: CommandPorts = { ...given, records };
  const turns = new TurnAuthorities(ports.fold, undefined, new HostPolicies(ports.fold, ports.policyLanguages));
  const { tidings = NO_TIDINGS } = ports;
  const mayReview = reviewRight(ports, turns);
  return [
    route('grant.issue', { request: GrantIssue, reply: GrantReply, handle: issueGrant(ports) }),
    route('grant.derive', { request: GrantDerive, reply: GrantReply, handle: deriveGrant(ports) }),
    route('grant.revoke', { request: GrantRevoke, reply: GrantReply, handle: revokeGrant(ports) }),
    route('grant.get', { request: GrantGet, reply: GrantReply, handle: getGrant(ports) }),
    route('grant.list', { request: GrantList, reply: GrantListReply, handle: listGrants(ports) }),
    route('grant.tree', { request: GrantTree, reply: GrantTreeReply, handle: grantTree(ports) }),
    route('grant.watch', { request: GrantWatch, reply: GrantWatchReply, handle: watchGrants(ports) }),
    route('grant.explain', { request: GrantExplain, reply: GrantExplainReply, handle: explainForPrincipal(ports, turns) }),
    route('grant.who', { request: GrantWho, reply: GrantWhoReply, handle: whoForPrincipal(ports, turns) }),
    route('policy.set', { request: PolicySetRequest, reply: PolicyReply, handle: setPolicy(ports, turns) }),
    route('policy.get', { request: PolicyGet, reply: PolicyReply, handle: getPolicy(ports, turns) }),
    route('policy.stop', { request: PolicyStop, reply: PolicyStopReply, handle: stopTarget(ports, turns) }),
    route('policy.resume', { request: PolicyResume, reply: PolicyReply, handle: resumeStopped(ports, turns) }),
    route('settings.set', { request: SettingsSetRequest, reply: SettingsReply, handle: setSettings(ports, turns) }),
    route('settings.get', { request: SettingsGet, reply: SettingsReply, handle: getSettings(ports, turns) }),
    route('agent.register', { request: AgentRegister, reply: AgentReply, handle: registerAgent(ports, turns) }),
    route('agent.withdraw', { request: AgentWithdraw, reply: AgentReply, handle: withdrawAgent(ports, turns) }),
    route('agent.get', { request: AgentGet, reply: AgentReply, handle: getAgent(ports, turns) }),
    route('escalation.open', { request: EscalationOpen, reply: EscalationOpenReply, handle: openEscalation(ports, tidings) }),
    route('escalation.list', { request: EscalationList, reply: EscalationListReply, handle: listEscalations(ports, mayReview) }),
    route('escalation.show', { request: EscalationShow, reply: EscalationReply, handle: showEscalation(ports, mayReview) }),
    route('escalation.resolve', {
      request: EscalationResolve,
      reply: EscalationReply,
      handle: resolveEscalation(ports, mayReview, tidings),
    }),
    route('authority.open', { request: AuthorityOpen, reply: AuthorityOpenReply, handle: openAuthority(ports, turns) }),
    route('authority.decide', { request: AuthorityDecide, reply: AuthorityDecideReply, handle: decideAuthority(ports, turns) }),
    route('authority.tools', { request: AuthorityTools, reply: AuthorityToolsReply, handle: chooseTools(ports, turns) }),
    route('authority.mcp', { request: AuthorityMcp, reply: AuthorityMcpReply, handle: ownMcpServers(ports) }),
    route('authority.namespace', { request: AuthorityNamespace, reply: AuthorityNamespaceReply, handle: readNamespace(ports) }),
    route('authority.explain', { request: AuthorityExplain, reply: AuthorityExplainReply, handle: explainForService(ports, turns) }),
    route('authority.who', { request: AuthorityWho, reply: AuthorityWhoReply, handle: whoForService(ports, turns) }),
    route('authority.recompute', {
      request: AuthorityRecompute,
      reply: AuthorityRecomputeReply,
      handle: recomputeDecisions(ports, history),
    }),
    route('authority.retrace', { request: AuthorityRetrace, reply: AuthorityRetraceReply, handle: retraceDecision(ports, history) }),
    route('authority.lineage', { request: AuthorityLineage, reply: AuthorityLineageReply, handle: grantLineage(ports) }),
    route('authority.reach', { request: AuthorityReach, reply: AuthorityReachReply, handle: reachAuthority(ports, turns) }),
    route('usage.distrust', { request: UsageDistrust, reply: UsageDistrustReply, handle: distrustUsage(ports) }),
    route('usage.held', { request: UsageHeld, reply: UsageHeldReply, handle: heldUses(ports) }),
    route('usage.release', { request: UsageRelease, reply: UsageReleaseReply, handle: releaseUses(ports) }),
  ];
};
