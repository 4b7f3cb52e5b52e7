import { z } from 'zod';
import { bounded } from '../bounded.ts';
import {
  AccessContext,
  AuthorityUnavailableCode,
  AuthoritySnapshot,
  AuthorizationDecision,
  ReachResult,
  ScopeMismatch,
} from '../access.ts';
import { AuditEvent } from '../audit.ts';
import { CapabilityRequirement } from '../grants.ts';
import { Action, Hash, Id } from '../scalars.ts';
import { Ts } from '../time.ts';
import { ToolNamespaceSelection } from '../tool-namespaces.ts';
import { RuntimeChoice } from './agent.ts';
import { Revision } from './revision.ts';
import { replyMessage, wireMessage } from './wire.ts';

/** An authenticated claim that a turn was opened: which, for what context, at which revision and instant, until when. */
export const TurnToken = bounded(z.string(), 1, 2048);

/**
 * Opens the authority of one turn, at or after every change acknowledged before the call.
 * `context.now` is the asker's clock; `validForMs` the longest the turn may last, grace included.
 */
export const AuthorityOpen = wireMessage(
  'authority.open/1',
  z.strictObject({ turnId: Id, context: AccessContext, validForMs: z.int().min(1).max(1_300_000), auditId: Id }),
);
export type AuthorityOpen = z.infer<typeof AuthorityOpen.schema>;

/** `runtime`: what the registration of the acting agent, in force at the revision, says of its runtime. */
const opened = {
  token: TurnToken,
  revision: Revision,
  admittedAt: Ts,
  validUntil: Ts,
  runtime: RuntimeChoice.optional(),
  /** Of the namespace's policy at that revision, where it has one that can be asked. */
  hostPolicyVersion: Id.optional(),
  /** Tool namespaces that are on at that revision; absent as long as nobody chose. */
  toolNamespaces: ToolNamespaceSelection.optional(),
  /** Whether a grant that the turn holds is bound to one call: then the digest of each call is to be stated. */
  boundCalls: z.literal(true).optional(),
  /** Whether the owner is to be asked about calls that no grant covers, by the namespace's settings at that revision. */
  asksAboutRefusedCalls: z.literal(true).optional(),
};

/** Authority that cannot be trusted is held too: the turn stays refused for its whole length. */
export const OpenedAuthority = z.discriminatedUnion('status', [
  z.strictObject({ status: z.literal('resolved'), ...opened, snapshot: AuthoritySnapshot }),
  z.strictObject({ status: z.literal('unavailable'), ...opened, code: AuthorityUnavailableCode, detail: ScopeMismatch.optional() }),
]);
export type OpenedAuthority = z.infer<typeof OpenedAuthority>;
export const AuthorityOpenReply = replyMessage('authority.open.reply/1', OpenedAuthority);

/**
 * The requirement of one operation, or why none could be made of its arguments. A failure is reported only to somebody who may
 * discover the tool, so it travels to the decision instead of being answered before it.
 */
export const ExactRequirement = z.union([
  z.strictObject({ requirement: CapabilityRequirement }),
  z.strictObject({ failure: z.enum(['invalid_tool_arguments', 'tool_requirement_resolution_failed']) }),
]);
export type ExactRequirement = z.infer<typeof ExactRequirement>;

/**
 * What is asked: a plain authorization, or a tool call (discovery of its ceiling, then its exact requirement).
 * `operation` names the one effect this decision is for: a retry with the same name takes no second use.
 */
export const AuthorityQuestion = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('authorize'),
    request: CapabilityRequirement,
    consume: z.boolean(),
    operation: Id.optional(),
    operationId: Id.optional(),
  }),
  z.strictObject({
    kind: z.literal('tool'),
    ceiling: CapabilityRequirement,
    exact: ExactRequirement,
    operation: Id,
    operationId: Id,
    /** Of the tool and its arguments, where a grant may be bound to a call. */
    callDigest: Hash.optional(),
  }),
]);
export type AuthorityQuestion = z.infer<typeof AuthorityQuestion>;

/** `auditIds`: ids of the records this decision makes, discovery first. A retry states the same ids. */
export const AuthorityDecide = wireMessage(
  'authority.decide/1',
  z.strictObject({ token: TurnToken, context: AccessContext, question: AuthorityQuestion, auditIds: z.tuple([Id, Id]) }),
);
export type AuthorityDecide = z.infer<typeof AuthorityDecide.schema>;

/** A use handed out by the counters. It is spent only once the ledger holds its claim. */
export const UseTaken = z.strictObject({ grantId: Id, ordinal: z.int().min(1), epoch: Id });
export type UseTaken = z.infer<typeof UseTaken>;

/** One use of each bounded ancestor, taken in the same step; only where the namespace shares budgets over delegation. */
export const UsesAbove = bounded(z.array(UseTaken), 1, 16);

/** The verdict on a question. `status`/`code` are what a caller hears; `cause` and the records are for audit alone. */
export const Verdict = z.strictObject({
  revision: Revision,
  status: z.enum(['allowed', 'denied', 'failed']),
  code: Id,
  cause: Id.optional(),
  decision: AuthorizationDecision.optional(),
  resource: CapabilityRequirement.shape.resource.optional(),
  action: Action.optional(),
  use: UseTaken.optional(),
  above: UsesAbove.optional(),
  audit: bounded(z.array(AuditEvent), 0, 2),
});
export type Verdict = z.infer<typeof Verdict>;
export const AuthorityDecideReply = replyMessage('authority.decide.reply/1', Verdict);

/** Where an open turn may operate, and which ceilings it may discover, in the order asked. */
export const AuthorityReach = wireMessage(
  'authority.reach/1',
  z.strictObject({ token: TurnToken, context: AccessContext, ceilings: bounded(z.array(CapabilityRequirement), 0, 512) }),
);
export type AuthorityReach = z.infer<typeof AuthorityReach.schema>;
export const ReachAndDiscovery = z.strictObject({
  revision: Revision,
  reach: ReachResult,
  discovered: bounded(z.array(z.strictObject({ allowed: z.boolean(), reasonCode: Id })), 0, 512),
});
export type ReachAndDiscovery = z.infer<typeof ReachAndDiscovery>;
export const AuthorityReachReply = replyMessage('authority.reach.reply/1', ReachAndDiscovery);

/** A use handed out in this epoch was already spent: its counters went back in time. They are closed and rebuilt. */
export const UsageDistrust = wireMessage('usage.distrust/1', z.strictObject({ epoch: Id }));
export type UsageDistrust = z.infer<typeof UsageDistrust.schema>;
export const UsageDistrustReply = replyMessage('usage.distrust.reply/1', z.strictObject({}));

/** The uses that one turn, or one send, was handed out and nobody gave back: those it spent, and those it only reserved. */
export const UsageHeld = wireMessage('usage.held/1', z.strictObject({ turn: Id }));
export type UsageHeld = z.infer<typeof UsageHeld.schema>;
export const HeldUse = z.strictObject({ grantId: Id, ordinal: z.int().min(1), operation: Id });
export type HeldUse = z.infer<typeof HeldUse>;
export const UsageHeldReply = replyMessage('usage.held.reply/1', z.strictObject({ epoch: Id, uses: bounded(z.array(HeldUse), 0, 20_000) }));

/** Gives reserved uses back to the counters, after the ledger says that nothing will ever run on them. */
export const UsageRelease = wireMessage(
  'usage.release/1',
  z.strictObject({ epoch: Id, turn: Id, uses: bounded(z.array(HeldUse), 1, 20_000) }),
);
export type UsageRelease = z.infer<typeof UsageRelease.schema>;
export const UsageReleaseReply = replyMessage('usage.release.reply/1', z.strictObject({}));
