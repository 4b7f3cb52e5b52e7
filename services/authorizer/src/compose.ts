import { type Route, route } from '@sharedos/bus';
import {
  AuthorityDecide,
  AuthorityDecideReply,
  AuthorityOpen,
  AuthorityOpenReply,
  AuthorityReach,
  AuthorityReachReply,
  GrantDerive,
  GrantGet,
  GrantIssue,
  GrantList,
  GrantListReply,
  GrantReply,
  GrantRevoke,
  UsageDistrust,
  UsageDistrustReply,
  UsageHeld,
  UsageHeldReply,
  UsageRelease,
  UsageReleaseReply,
} from '@sharedos/contracts';
import { decideAuthority } from './decide-authority.ts';
import { deriveGrant } from './derive-grant.ts';
import { distrustUsage } from './distrust-usage.ts';
import { issueGrant } from './issue-grant.ts';
import { openAuthority } from './open-authority.ts';
import type { Ports } from './ports.ts';
import { reachAuthority } from './reach-authority.ts';
import { heldUses, releaseUses } from './release-uses.ts';
import { getGrant, listGrants } from './read-grants.ts';
import { revokeGrant } from './revoke-grant.ts';
import { TurnAuthorities } from './turn-authorities.ts';

/** All that the authorizer answers, on one screen: commands on grants, and questions of open turns. */
export const composeAuthorizer = (ports: Ports): readonly Route[] => {
  const turns = new TurnAuthorities(ports.fold);
  return [
    route('grant.issue', { request: GrantIssue, reply: GrantReply, handle: issueGrant(ports) }),
    route('grant.derive', { request: GrantDerive, reply: GrantReply, handle: deriveGrant(ports) }),
    route('grant.revoke', { request: GrantRevoke, reply: GrantReply, handle: revokeGrant(ports) }),
    route('grant.get', { request: GrantGet, reply: GrantReply, handle: getGrant(ports) }),
    route('grant.list', { request: GrantList, reply: GrantListReply, handle: listGrants(ports) }),
    route('authority.open', { request: AuthorityOpen, reply: AuthorityOpenReply, handle: openAuthority(ports, turns) }),
    route('authority.decide', { request: AuthorityDecide, reply: AuthorityDecideReply, handle: decideAuthority(ports, turns) }),
    route('authority.reach', { request: AuthorityReach, reply: AuthorityReachReply, handle: reachAuthority(ports, turns) }),
    route('usage.distrust', { request: UsageDistrust, reply: UsageDistrustReply, handle: distrustUsage(ports) }),
    route('usage.held', { request: UsageHeld, reply: UsageHeldReply, handle: heldUses(ports) }),
    route('usage.release', { request: UsageRelease, reply: UsageReleaseReply, handle: releaseUses(ports) }),
  ];
};
