import { z } from 'zod';
import { AccessContext, AuthorityUnavailableCode, AuthorizationDecision } from '../access.ts';
import { bounded } from '../bounded.ts';
import { CapabilityGrant, CapabilityRequirement, ResourceRef } from '../grants.ts';
import { Address } from '../principals.ts';
import { Action, Id, NameId, Purpose } from '../scalars.ts';
import { Ts } from '../time.ts';
import { Revision } from './revision.ts';
import { replyMessage, wireMessage } from './wire.ts';

/** Links from a grant to one derived from it that are followed: what is derived more often confers nothing. */
export const TREE_DEPTH_MAX = 16;

/**
 * A grant and what was derived from it, as it is now: each grant before what was derived from it, and that in the order of its
 * issue. `after` is the way to the last grant of the page before, from the grant asked for down.
 */
export const GrantTree = wireMessage(
  'grant.tree/1',
  z.strictObject({
    grantId: NameId,
    depth: z.int().min(0).max(TREE_DEPTH_MAX).optional(),
    limit: z.int().min(1).max(500).optional(),
    after: bounded(z.array(NameId), 1, TREE_DEPTH_MAX + 1).optional(),
    /** The answer holds at least this much of the log; everything acknowledged before the request when absent. */
    revision: Revision.optional(),
  }),
);
export type GrantTree = z.infer<typeof GrantTree.schema>;

const TreePage = z.strictObject({
  /** `depth`: links from the grant asked for, which is itself at 0. */
  nodes: bounded(z.array(z.strictObject({ depth: z.int().min(0).max(TREE_DEPTH_MAX), grant: CapabilityGrant })), 0, 500),
  next: bounded(z.array(NameId), 1, TREE_DEPTH_MAX + 1).optional(),
  revision: Revision,
});
export type TreePage = z.infer<typeof TreePage>;
export const GrantTreeReply = replyMessage('grant.tree.reply/1', TreePage);

/** Longest that a request may wait for a change, in milliseconds. */
export const WATCH_MS_MAX = 20_000;

/**
 * Waits until a grant that the caller issued or holds is issued or revoked after a revision, or until the time is over, or until
 * the replica would rather not wait. Asking on after the revision of each answer, one misses nothing.
 */
export const GrantWatch = wireMessage(
  'grant.watch/1',
  z.strictObject({
    after: Revision,
    waitMs: z.int().min(0).max(WATCH_MS_MAX).optional(),
    limit: z.int().min(1).max(500).optional(),
  }),
);
export type GrantWatch = z.infer<typeof GrantWatch.schema>;

const GrantChangesPage = z.strictObject({
  /** Each as it is now, in the order of its first change. */
  grants: bounded(z.array(CapabilityGrant), 0, 500),
  /** All changes up to here are told. */
  revision: Revision,
});
export type GrantChangesPage = z.infer<typeof GrantChangesPage>;
export const GrantWatchReply = replyMessage('grant.watch.reply/1', GrantChangesPage);

/** Why authority would answer a request as it does: now, or as it stood at a revision. */
export const GrantExplain = wireMessage(
  'grant.explain/1',
  z.strictObject({
    actor: Address,
    authority: Address,
    /** The caller when absent. Anybody else's needs the right to read authority. */
    owner: Address.optional(),
    purpose: Purpose,
    request: CapabilityRequirement,
    revision: Revision.optional(),
    /** The instant of the decision; the present when absent. */
    at: Ts.optional(),
  }),
);
export type GrantExplain = z.infer<typeof GrantExplain.schema>;

/** The same for a service, of the context that it decides in; `context.now` is the instant of the decision. */
export const AuthorityExplain = wireMessage(
  'authority.explain/1',
  z.strictObject({ context: AccessContext, request: CapabilityRequirement, revision: Revision.optional() }),
);
export type AuthorityExplain = z.infer<typeof AuthorityExplain.schema>;

export const REJECTIONS_MAX = 5_000;

export const Explanation = z.strictObject({
  revision: Revision,
  /** The instant that grants were judged at; never before anything that stands at the revision. */
  admittedAt: Ts,
  decision: AuthorizationDecision,
  /** Why authority could not be held at all; then there is nothing to reject. */
  unavailable: AuthorityUnavailableCode.optional(),
  grantsResolved: z.int().min(0),
  /** The grants that did not allow, in the order in which they were looked at; the rest are counted. */
  rejections: bounded(z.array(z.strictObject({ grantId: Id, reason: Id })), 0, REJECTIONS_MAX),
  omitted: z.int().min(0),
  /** Uses counted now, of the bounded grants that were asked about. A past count is not known. */
  usage: z.record(Id, z.int().min(0)),
});
export type Explanation = z.infer<typeof Explanation>;
export const GrantExplainReply = replyMessage('grant.explain.reply/1', Explanation);
export const AuthorityExplainReply = replyMessage('authority.explain.reply/1', Explanation);

/** Where a page of holders ended: among grants over the owner's resources alone, or among those over several owners', and after which. */
const WhoPlace = z.strictObject({ of: z.enum(['owner', 'several']), grantId: NameId.optional() });

const who = {
  action: Action,
  /** For some purpose of each grant when absent. */
  purpose: Purpose.optional(),
  revision: Revision.optional(),
  limit: z.int().min(1).max(200).optional(),
  after: WhoPlace.optional(),
};

/**
 * Which principals could do this to this resource: now, or as authority stood at a revision. The owner of the resource is the
 * caller when absent; anybody else's needs the right to read authority.
 */
export const GrantWho = wireMessage('grant.who/1', z.strictObject({ resource: ResourceRef, ...who }));
export type GrantWho = z.infer<typeof GrantWho.schema>;

/** The same for a service, of a resource whose owner is named. */
export const AuthorityWho = wireMessage('authority.who/1', z.strictObject({ resource: ResourceRef.required({ owner: true }), ...who }));
export type AuthorityWho = z.infer<typeof AuthorityWho.schema>;

export const WhoPage = z.strictObject({
  /** Who would be allowed, under whose authority, and by which grant. */
  holders: bounded(z.array(z.strictObject({ subject: Address, authority: Address, grantId: Id })), 0, 200),
  /** A page may hold fewer than asked, or none, and go on. */
  next: WhoPlace.optional(),
  revision: Revision,
});
export type WhoPage = z.infer<typeof WhoPage>;
export const GrantWhoReply = replyMessage('grant.who.reply/1', WhoPage);
export const AuthorityWhoReply = replyMessage('authority.who.reply/1', WhoPage);
